"""What a table or figure of the paper is made from, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corginet.data.dataset import Dataset
from corginet.experiment.contenders import Contender
from corginet.experiment.engine import Event, Experiment, Results
from corginet.experiment.plan import PlanConfig
from corginet.paper.published import DATASETS
from corginet.recipes import recipe
from corginet.report.page import Page
from corginet.report.table import Table, save
from corginet.text.store import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = {"rating": ("rmse",), "binary": ("accuracy", "auroc", "aupr")}  # as the paper shows them


@dataclass(frozen=True, eq=False)
class Request:
    """The data, the plan, and what the user set; every run goes through the one engine."""

    dataset: Dataset
    folder: Path
    plan: PlanConfig
    settings: Mapping[str, Any] = field(default_factory=dict)
    vectors: Path | None = None
    extra: Sequence[str] = ()
    listen: Callable[[Event], None] = lambda _: None
    on_encode: Progress | None = None

    @property
    def kind(self) -> str:
        return self.dataset.ratings.task.kind

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that the paper shows for such data; the first one leads."""
        return SHOWN[self.kind]

    def published(self, metric: str) -> str:
        """The paper's name of a metric on the data that this stands in for."""
        return f"{DATASETS[self.kind]} {metric}"

    def contender(self, name: str, label: str = "", **settings: Any) -> Contender:
        """A recipe with the user's settings; static vectors come from the user's file."""
        static = recipe(name).config.encoder.encoder == "static"
        given = {"encoder": f"static:{self.vectors}"} if static and self.vectors else {}
        return Contender(name, {**given, **settings, **self.settings}, label=label)

    def run(
        self, contenders: Sequence[Contender], keep_runs: bool = False, jobs: int | None = None
    ) -> Results:
        """All seeds of the contenders, from the folder's rows where they are finished."""
        plan = self.plan if jobs is None else self.plan.model_copy(update={"jobs": jobs})
        return Experiment(
            self.dataset, self.folder, plan, self.listen, self.on_encode, keep_runs
        ).run(contenders)


@dataclass(frozen=True, eq=False)
class Findings:
    """A table or figure of the paper: its rows, tables, figures, and what to know about it."""

    name: str
    tables: Sequence[Table]
    figures: Mapping[str, Figure] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [record for table in self.tables for record in table.as_records()]

    def save(self, folder: Path) -> list[Path]:
        """Tables in every form, figures as PNG and SVG, and one page with all of it."""
        from corginet.paper.plots import save_figure

        page = Page(self.tables[0].title)
        files = []
        for name, figure in self.figures.items():
            written = save_figure(figure, folder, name)
            page.image(next(p for p in written if p.suffix == ".png"), name)
            files += written
        for number, table in enumerate(self.tables):
            name = self.name if number == 0 else f"{self.name}-{number + 1}"
            files += save(table, folder, name)
            if number:
                page.heading(table.title)
            page.show(table)
        (folder / f"{self.name}.html").write_text(page.render(), encoding="utf-8")
        return files
