"""What compare and paper share: contenders by name, options of a plan, progress, a folder."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from corginet.cli.output import say
from corginet.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from corginet.data.dataset import Dataset
    from corginet.experiment.engine import Event, Experiment
    from corginet.experiment.plan import PlanConfig

GROUPS = ("all", "paper", "plain")


def parse_recipes(text: str) -> list[str]:
    """'gcn,paper' as recipe names: names as they are, groups as their members."""
    names: list[str] = []
    for part in (p.strip() for p in text.split(",")):
        if part:
            names += _group(part)
    if not names:
        raise UserError("--recipes is empty; name some, separated by commas: corginet recipes")
    return list(dict.fromkeys(names))


def _group(name: str) -> list[str]:
    from corginet.experiment.settings import fields_of
    from corginet.paper.published import TABLE2
    from corginet.recipes import all_recipes, recipe, recipe_names

    match name:
        case "all":
            return recipe_names()
        case "paper":
            return [r.name for r in all_recipes() if r.paper_row in TABLE2]
        case "plain":
            outside = [r.name for r in all_recipes() if not r.paper_row]
            return [n for n in outside if "n_layers" not in fields_of(n)]  # no messages pass
    try:
        return [recipe(name).name]
    except UserError as error:
        near = did_you_mean(name, GROUPS)
        raise UserError(f"{error}" + (f" Groups: {', '.join(GROUPS)}." if near else "")) from None


def parse_settings(parts: Sequence[str], option: str = "--set") -> dict[str, str]:
    """'epochs=50,channels=32' as a mapping."""
    out = {}
    for part in (p for text in parts for p in text.split(",") if p):
        name, equals, value = part.partition("=")
        if not equals or not value:
            raise UserError(f"{option} got '{part}'; write {option} name=value,name=value")
        out[name.strip().replace("-", "_")] = value.strip()
    return out


def parse_grid(parts: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """'dropout=0.1,0.3' or 'paper', once per setting, as a grid."""
    from corginet.experiment.settings import PAPER_GRID

    out: dict[str, tuple[Any, ...]] = {}
    for part in parts:
        if part == "paper":
            out |= PAPER_GRID
            continue
        name, _, values = part.partition("=")
        offered = tuple(v.strip() for v in values.split(",") if v.strip())
        if not offered:
            raise UserError(f"--grid got '{part}'; write --grid name=value,value or --grid paper")
        out[name.strip().replace("-", "_")] = offered
    return out


@Parameter(name="*")
@dataclass(frozen=True)
class Budget:
    """What every recipe gets."""

    seeds: int | None = None
    """Runs of each recipe; a seed decides the split and the weights."""
    seed: int | None = None
    """The first seed; the others count up from it."""
    grid: Annotated[list[str] | None, Parameter(negative="")] = None
    """Values to try, chosen by validation: name=value,value, or paper; dropout is all of them."""
    tune_seeds: str | None = None
    """Choose on the first seed for all, or on every seed anew: first or every."""
    settings: Annotated[list[str] | None, Parameter(name="--set", negative="")] = None
    """Settings for the recipes that have them: name=value,name=value. May be repeated."""
    jobs: int | None = None
    """Processes at once, one thread each; all cores unless given."""

    def plan(self, recipes: Sequence[str], seeds: int | None = None) -> PlanConfig:
        """The plan; what was not given keeps the plan's own default, or the one passed here."""
        from corginet.config import override
        from corginet.experiment.plan import PlanConfig
        from corginet.experiment.settings import check_known

        grid = parse_grid(self.grid or [])
        check_known(recipes, grid, "--grid")
        wanted = self.seeds if self.seeds is not None else seeds
        options = {
            "seeds": wanted,
            "seed": self.seed,
            "grid": grid or None,
            "tune_seeds": self.tune_seeds,
            "jobs": self.jobs,
        }
        return override(
            PlanConfig(), {k: v for k, v in options.items() if v is not None}, "the plan"
        )

    def changes(self, recipes: Sequence[str]) -> dict[str, Any]:
        """The settings that are changed, known to one of the recipes at least."""
        from corginet.experiment.settings import check_known

        changes = parse_settings(self.settings or [])
        check_known(recipes, changes, "--set")
        return changes


@contextmanager
def folder_of(out: Path | None) -> Iterator[Path]:
    """The folder that was named, or one that goes when the work is done."""
    if out is not None:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="corginet-") as name:
        yield Path(name)


def tell(event: Event) -> None:
    """One line per finished cell, with the time left."""
    from corginet.experiment.engine import describe

    say(describe(event))


class Encoding:
    """Says now and then how far the encoding of texts is."""

    def __init__(self, every: int = 10) -> None:
        self.every, self.told = every, 0

    def __call__(self, done: int, total: int, speed: float) -> None:
        percent = 100 * done // max(1, total)
        self.told = min(self.told, percent)  # another encoder starts from 0
        if percent >= self.told + self.every or done == total:
            self.told = percent
            say(f"encoding texts: {done:,}/{total:,}, {speed:,.0f} words/s")


def make_experiment(
    dataset: Dataset, folder: Path, plan: PlanConfig, told: Callable[[Event], None] = tell
) -> Experiment:
    """An experiment that reports on stderr."""
    from corginet.experiment.engine import Experiment

    return Experiment(dataset, folder, plan, told, Encoding())


def check_has_texts(items: Path | None, recipes: Sequence[str]) -> None:
    """Refuse recipes that read text where there is none."""
    from corginet.recipes import recipe

    reading = [name for name in recipes if recipe(name).reads_text]
    if items is None and reading:
        raise UserError(
            f"recipe '{reading[0]}' reads texts; name an item table after the ratings, or leave "
            "that recipe out"
        )
