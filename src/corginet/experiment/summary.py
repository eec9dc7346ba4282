"""What rows say together: means, errors, the best, and whether differences could be chance."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from corginet.data.task import Task
from corginet.experiment.bootstrap import PER_PAIR, Resampled, difference, resample
from corginet.experiment.engine import Results
from corginet.experiment.rows import Row
from corginet.experiment.statistics import holm, independent_p, mean_and_error, paired_p

if TYPE_CHECKING:
    import polars as pl

METRICS = {
    "binary": ("log_loss", "accuracy", "auroc", "aupr", "ece"),
    "rating": ("rmse", "mae"),
}
LOWER_IS_BETTER = ("rmse", "mae", "log_loss", "ece")
ALL_USERS = "all"


def metrics_of(task: Task) -> tuple[str, ...]:
    """The metrics that are compared; the first one decides sentences."""
    return METRICS[task.kind]


def values(rows: Sequence[Row], metric: str, group: str = ALL_USERS) -> dict[int, float]:
    """A contender's test metric by seed, over all users or a group by degree."""
    out = {}
    for row in rows:
        found = row["test"] if group == ALL_USERS else row["by_degree"].get(group, {})
        if metric in found:
            out[row["seed"]] = float(found[metric])
    return out


def ranked(means: Mapping[str, float], metric: str) -> list[str]:
    """Names from best to worst."""
    return sorted(means, key=lambda name: means[name], reverse=metric not in LOWER_IS_BETTER)


def summarise(results: Results) -> dict[str, Any]:
    """Per contender and metric mean and error; all pairs' tests; the best; one sentence."""
    metrics = metrics_of(results.dataset.ratings.task)
    per_name = {name: _averages(results.of(name), metrics) for name in results.names}
    best = {}
    for metric in metrics:
        means = {n: found[metric]["mean"] for n, found in per_name.items() if metric in found}
        if means:
            best[metric] = ranked(means, metric)[0]
    comparisons = compare_all(results, metrics)
    summary = {
        "metric": metrics[0],
        "recipes": per_name,
        "best": best,
        "comparisons": comparisons,
        "errors": [{k: row[k] for k in ("recipe", "seed", "error")} for row in results.errors],
        "trials": len(results.trials),
    }
    return {**summary, "sentence": _sentence(summary)}


def _averages(rows: Sequence[Row], metrics: Sequence[str]) -> dict[str, Any]:
    out: dict[str, Any] = {"seeds": len(rows)}
    for metric in metrics:
        found = list(values(rows, metric).values())
        if found:
            mean, error = mean_and_error(found)
            out[metric] = {"mean": mean, "se": error}
    for cost in ("seconds", "peak_gb"):
        out[cost] = mean_and_error([row[cost] for row in rows])[0]
    return out


def compare_all(
    results: Results, metrics: Sequence[str], group: str = ALL_USERS
) -> list[dict[str, Any]]:
    """Every pair of contenders on every metric; Holm's correction is over the pairs."""
    out = []
    for metric in metrics:
        of = {name: values(results.of(name), metric, group) for name in results.names}
        draws = resampled(results, metric, group)
        pairs = [
            compare_two(of, draws, metric, *two)
            for two in itertools.combinations(results.names, 2)
            if of[two[0]].keys() & of[two[1]].keys()
        ]
        corrected = holm([pair["p_paired"] for pair in pairs])
        again = holm([pair.get("p_bootstrap") for pair in pairs])
        for pair, p, p_again in zip(pairs, corrected, again, strict=True):
            pair["p_paired_holm"] = p
            if p_again is not None:
                pair["p_bootstrap_holm"] = p_again
        out += pairs
    return out


def resampled(results: Results, metric: str, group: str) -> dict[str, Resampled]:
    """The bootstrap's draws of every contender, for metrics that are means over pairs."""
    if metric not in PER_PAIR:
        return {}
    frames = {
        name: [test_frame(results, row, group) for row in results.of(name)]
        for name in results.names
    }
    return resample(frames, metric)


def test_frame(results: Results, row: Row, group: str) -> pl.DataFrame:
    """A row's test predictions, of all users or a group by degree."""
    import polars as pl

    frame = results.predictions(row).filter(pl.col("part") == "test")
    if group == ALL_USERS:
        return frame
    few = pl.col("user_degree") <= 10
    return frame.filter(few if group == "D<=10" else ~few)


def compare_two(
    of: Mapping[str, dict[int, float]],
    draws: Mapping[str, Resampled],
    metric: str,
    a: str,
    b: str,
) -> dict[str, Any]:
    """a against b on the seeds that both have; difference is a − b."""
    both = sorted(of[a].keys() & of[b].keys())
    first, second = [of[a][seed] for seed in both], [of[b][seed] for seed in both]
    better = ranked({a: sum(first), b: sum(second)}, metric)[0]
    out: dict[str, Any] = {
        "metric": metric,
        "a": a,
        "b": b,
        "difference": (sum(first) - sum(second)) / len(both),
        "better": better if sum(first) != sum(second) else None,
        "seeds": len(both),
        "p_independent": independent_p(first, second),
        "p_paired": paired_p(first, second),
    }
    if a in draws and b in draws and of[a].keys() == of[b].keys():
        found = difference(draws[a], draws[b])
        out |= {"p_bootstrap": found.p, "interval": [found.low, found.high]}
    return out


def _sentence(summary: Mapping[str, Any]) -> str:
    """Who is best, and whether the second could be as good."""
    metric, per_name = summary["metric"], summary["recipes"]
    means = {name: found[metric]["mean"] for name, found in per_name.items() if metric in found}
    if not means:
        return "No test part was scored."
    order = ranked(means, metric)
    if len(order) == 1:
        return f"{order[0]}: test {metric} {means[order[0]]:.4f}."
    pair = next(c for c in summary["comparisons"] if _is_pair(c, metric, order[0], order[1]))
    p, how = verdict_p(pair)
    sure = "a difference unlikely to be chance" if p < 0.05 else "which may be chance"
    return (
        f"{order[0]} is best with test {metric} {means[order[0]]:.4f}, {order[1]} second with "
        f"{means[order[1]]:.4f}, {sure} (p = {p:.3g}, {how})."
    )


def verdict_p(pair: Mapping[str, Any]) -> tuple[float, str]:
    """The corrected p-value that decides: over seeds where there are three, else over users."""
    if pair["seeds"] >= 3 and pair["p_paired_holm"] is not None:
        return pair["p_paired_holm"], f"paired t-test over {pair['seeds']} seeds, Holm-corrected"
    if "p_bootstrap_holm" in pair:
        return pair["p_bootstrap_holm"], "paired bootstrap over users, Holm-corrected"
    return 1.0, "too few runs to test"


def _is_pair(found: Mapping[str, Any], metric: str, a: str, b: str) -> bool:
    return found["metric"] == metric and {found["a"], found["b"]} == {a, b}
