"""Results as a table: mean ± one standard error, the best and the second marked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from corginet.experiment.engine import Results
from corginet.experiment.rows import Row
from corginet.experiment.statistics import independent_p, mean_and_error, stars
from corginet.experiment.summary import ALL_USERS, LOWER_IS_BETTER, metrics_of, ranked, values
from corginet.report.table import Cell, Mark, Table

Test = Callable[[Sequence[float], Sequence[float]], float | None]


def direction(metric: str) -> str:
    """The metric's name with the way that is better."""
    return f"{metric} {'↓' if metric in LOWER_IS_BETTER else '↑'}"


def cells(
    of: Mapping[str, Sequence[float]],
    metric: str,
    p_value: Test = independent_p,
    against: str | None = None,
) -> dict[str, Cell]:
    """One metric's column. The best has the stars of its test against the second (or another)."""
    means = {name: mean_and_error(found) for name, found in of.items() if len(found)}
    order = ranked({name: mean for name, (mean, _) in means.items()}, metric)
    marks: dict[str, Mark] = dict(zip(order, ("best", "second"), strict=False))
    out = {}
    for name, (mean, error) in means.items():
        rival = against or (order[1] if len(order) > 1 else name)
        tested = marks.get(name) == "best" and rival in of and rival != name
        p = p_value(of[name], of[rival]) if tested else None
        out[name] = Cell(mean, error, stars(p), marks.get(name, ""))
    return out


def results_table(
    results: Results, title: str, metrics: Sequence[str] = (), notes: Sequence[str] = ()
) -> Table:
    """A row per contender: its test metrics, and what it cost."""
    metrics = metrics or metrics_of(results.dataset.ratings.task)
    found = {metric: _column(results, metric) for metric in metrics}
    rows = []
    for name in results.names:
        mine = results.of(name)
        numbers = [found[metric].get(name, Cell(None)) for metric in metrics]
        rows.append([name, len(mine), *numbers, *_costs(mine)])
    columns = ["recipe", "seeds", *(direction(m) for m in metrics), "seconds", "peak GB"]
    return Table(title, columns, rows, [*notes, *failures(results)])


def _column(results: Results, metric: str) -> dict[str, Cell]:
    return cells(
        {n: list(values(results.of(n), metric, ALL_USERS).values()) for n in results.names}, metric
    )


def _costs(rows: Sequence[Row]) -> list[Cell]:
    seconds, memory = (mean_and_error([r[k] for r in rows])[0] for k in ("seconds", "peak_gb"))
    return [Cell(seconds, digits=1), Cell(memory, digits=2)]


def failures(results: Results) -> list[str]:
    """A note for every cell that could not be run."""
    return [f"{e['recipe']}, seed {e['seed']} failed: {e['error']}" for e in results.errors]
