"""The engine: plan cells, skip what is finished, run the rest in processes, keep every row."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from corginet.data.dataset import Dataset
from corginet.errors import UserError, plural
from corginet.experiment.contenders import Cell, Contender, cell_id, data_digest
from corginet.experiment.division import divide
from corginet.experiment.plan import PlanConfig
from corginet.experiment.preparation import Preparation
from corginet.experiment.rows import Journal, Row, opened
from corginet.experiment.work import Job, fit_cell, scores
from corginet.experiment.workers import Outcome, run_each
from corginet.text.store import Progress

if TYPE_CHECKING:
    import polars as pl

Finished = list[tuple[Cell, Row]]


@dataclass(frozen=True)
class Event:
    """What just happened, for whoever watches."""

    done: int
    total: int
    row: Row
    seconds_left: float
    reused: bool = False


@dataclass(frozen=True, eq=False)
class Results:
    """The scored rows, in the order of contenders and seeds; what failed; what was tried."""

    dataset: Dataset
    journal: Journal
    contenders: Sequence[Contender]
    rows: list[Row] = field(default_factory=list)
    errors: list[Row] = field(default_factory=list)
    trials: list[Row] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The contenders that have at least one scored row."""
        scored = {row["recipe"] for row in self.rows}
        return [c.name for c in self.contenders if c.name in scored]

    def of(self, contender: str) -> list[Row]:
        return [row for row in self.rows if row["recipe"] == contender]

    def predictions(self, row: Row) -> pl.DataFrame:
        return self.journal.predictions(row["cell"])

    def run_folder(self, row: Row) -> Path:
        """Where the fitted model is, in experiments that keep them."""
        return self.journal.folder / "runs" / str(row["cell"])


class Experiment:
    """Contenders × seeds on one dataset, resumable: the folder holds all that was finished."""

    def __init__(
        self,
        dataset: Dataset,
        folder: Path,
        plan: PlanConfig,
        listen: Callable[[Event], None] = lambda _: None,
        on_encode: Progress | None = None,
        keep_runs: bool = False,
    ) -> None:
        self.dataset, self.folder, self.plan = dataset, folder, plan
        self.listen, self.on_encode, self.keep_runs = listen, on_encode, keep_runs

    def run(self, contenders: Sequence[Contender]) -> Results:
        """Run what is not finished yet; answers all rows, old and new."""
        names = [c.name for c in contenders]
        if len(set(names)) < len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise UserError(f"'{twice}' is asked for twice; name every recipe once")
        trials = {c.name: self.plan.trials(c) for c in contenders}
        seeds = self.plan.all_seeds
        sure = [c for c in contenders if not trials[c.name]]
        tuned = [c for c in contenders if trials[c.name]]
        first = [self.plan.final(c, seed, []) for c in sure for seed in seeds]
        tried = [cell for c in tuned for cell in trials[c.name]]
        for cell in [*first, *tried]:
            divide(self.dataset, cell)  # what cannot be divided is said before anything is run
        with opened(self.folder) as journal:
            results = Results(self.dataset, journal, contenders)
            campaign = _Campaign(self, results, len(first) + len(tried) + len(tuned) * len(seeds))
            done = campaign.run(first, scored=True)
            found = campaign.run(tried, scored=False)
            done += campaign.run(self._chosen(tuned, found), scored=True)
        order = {name: n for n, name in enumerate(names)}
        results.rows.extend(row for _, row in done)
        results.rows.sort(key=lambda row: (order[row["recipe"]], row["seed"]))
        results.trials.extend(row for _, row in found)
        if results.errors and not results.rows:
            raise UserError(f"nothing could be run; first problem: {results.errors[0]['error']}")
        return results

    def _chosen(self, tuned: Sequence[Contender], found: Finished) -> list[Cell]:
        """A contender whose trials all failed is left out: their errors are in the results."""
        cells: list[Cell] = []
        for contender in tuned:
            mine = [(c, row) for c, row in found if c.contender is contender]
            seeds = {cell.seed for cell, _ in mine}
            asked = [s for s in self.plan.all_seeds if self.plan.tuned_on(s) in seeds]
            cells += [self.plan.final(contender, seed, mine) for seed in asked]
        return cells


class _Campaign:
    """One call of `Experiment.run`: counts, tells, appends."""

    def __init__(self, experiment: Experiment, results: Results, total: int) -> None:
        self.e, self.results, self.total, self.done = experiment, results, total, 0
        self.digest = data_digest(experiment.dataset)
        stores = experiment.folder / "content"
        self.preparation = Preparation(experiment.dataset, stores, experiment.on_encode)
        self.started, self.ran = time.perf_counter(), 0

    def run(self, cells: Sequence[Cell], scored: bool) -> Finished:
        """Rows of all the cells that succeed."""
        journal, waiting = self.results.journal, {}
        longest_first = sorted(cells, key=lambda cell: -cell.config.encoder.truncate)
        for cell in longest_first:  # shorter texts are cut from longer ones
            self.preparation.encoder_of(cell)
        names = [self._name(cell) for cell in cells]
        for name, cell in zip(names, cells, strict=True):
            if not self._reuse(name, cell, scored) and name not in waiting:
                waiting[name] = self._job(name, cell, scored)
        run_each(fit_cell, list(waiting.values()), self.e.plan.n_processes, self._finished)
        return [
            (cell, {**row, "recipe": cell.contender.name})
            for name, cell in zip(names, cells, strict=True)
            if (row := journal.finished(name, scored)) is not None
        ]

    def _name(self, cell: Cell) -> str:
        return cell_id(cell, self.digest, self.preparation.encoder_of(cell))

    def _reuse(self, name: str, cell: Cell, scored: bool) -> bool:
        """Whether the cell is finished; a finished trial that is chosen only needs its score."""
        journal = self.results.journal
        row = journal.finished(name, scored)
        tried = journal.finished(name, scored=False)
        if row is None and tried is not None:
            row = tried | scores(journal.predictions(name), self.e.dataset.ratings.task)
            journal.append(row)
        if row is not None and self.e.keep_runs:
            row = row if self.results.run_folder(row).is_dir() else None
        if row is not None:
            self._tell({**row, "recipe": cell.contender.name}, reused=True)
        return row is not None

    def _job(self, name: str, cell: Cell, scored: bool) -> Job:
        journal, folder = self.results.journal, self.e.folder
        return Job(
            cell,
            name,
            self.e.dataset,
            folder / "content",
            journal.predictions_path(name),
            scored,
            folder / "runs" / name if self.e.keep_runs else None,
        )

    def _finished(self, job: Job, outcome: Outcome) -> None:
        cell = job.cell
        row = outcome
        if "error" in outcome:
            row = {"cell": job.name, "recipe": cell.contender.name, "seed": cell.seed, **outcome}
            self.results.errors.append(row)
        self.results.journal.append(row)
        self.ran += 1
        self._tell(row)

    def _tell(self, row: Row, reused: bool = False) -> None:
        self.done += 1
        pace = (time.perf_counter() - self.started) / self.ran if self.ran else 0.0
        left = pace * max(0, self.total - self.done)
        self.e.listen(Event(min(self.done, self.total), self.total, row, left, reused))


def describe(event: Event) -> str:
    """One line for people."""
    row = event.row
    head = f"{event.done}/{event.total} {row['recipe']}, seed {row['seed']}: "
    if "error" in row:
        return f"{head}FAILED: {row['error']}"
    part = "test" if "test" in row else "validation"
    shown = [f"{k} {v:.4f}" for k, v in row[part].items() if k != "n"][:1]
    times = "finished before" if event.reused else f"{row['seconds']:.0f} s"
    return head + ", ".join([*(f"{part} {x}" for x in shown), times]) + _left(event.seconds_left)


def _left(seconds: float) -> str:
    """'; about 3 minutes left', or '' where it is not known or there is none."""
    if not seconds:
        return ""
    inexact = plural(round(seconds / 60), "minute") if seconds > 90 else f"{seconds:.0f} s"
    return f"; about {inexact} left"
