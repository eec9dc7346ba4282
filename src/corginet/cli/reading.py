"""The options by which commands read tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import Parameter

from corginet.cli.output import say
from corginet.cli.parsing import parse_bounds, parse_columns
from corginet.errors import check_choice

if TYPE_CHECKING:
    from corginet.data.dataset import Dataset


@Parameter(name="*")
@dataclass(frozen=True)
class Reading:
    """How ratings and items are read."""

    columns: str | None = None
    """Other column names: user=student,item=question,value=correct."""
    task: str | None = None
    """binary or rating; inferred from the values unless given."""
    bounds: str | None = None
    """Smallest and largest possible value, LOW:HIGH."""
    duplicates: str = "error"
    """What to do with repeated pairs: error, last or mean."""
    missing: str = "error"
    """What to do with rows that have gaps: error or drop."""
    missing_text: str = "error"
    """Whether items may lack a text: error or allow."""

    def options(self) -> dict[str, Any]:
        """The options of Dataset.read, checked."""
        check_choice("--missing-text", self.missing_text, ("error", "allow"))
        return {
            "columns": parse_columns(self.columns),
            "task": self.task,
            "bounds": parse_bounds(self.bounds),
            "duplicates": self.duplicates,
            "missing": self.missing,
            "missing_text": self.missing_text,
        }

    def read(self, ratings: Path, items: Path | None) -> Dataset:
        """Both tables; says on stderr what was found in them."""
        from corginet.data.dataset import Dataset

        dataset = Dataset.read(ratings, items, **self.options())
        inferred = "" if self.task else " (inferred; --task states it)"
        say(dataset.ratings.summary() + inferred)
        return replace(dataset, name=f"{ratings.absolute().parent.name}/{ratings.name}")
