"""Table 4: users unseen in training; which of two models is right where only one is?"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from corginet.experiment.engine import Results
from corginet.experiment.statistics import mean_and_error
from corginet.experiment.table import failures
from corginet.paper.published import TABLE4
from corginet.paper.request import Findings, Request
from corginet.recipes import recipe
from corginet.report.table import Table

if TYPE_CHECKING:
    import polars as pl

RATES = (0.5, 0.99)
RECIPES = ("grape", "gcn+sentence", "corgi-dp")


def table4(request: Request) -> Findings:
    """Each later model's wins over each earlier one, at both held-out rates."""
    names = list(dict.fromkeys([*RECIPES, *request.extra]))
    contenders = [
        replace(request.contender(name), held_out=rate, label=_label(name, rate))
        for rate in RATES
        for name in names
    ]
    results = request.run(contenders)
    records = [
        _record(results, one, other, rate)
        for other, one in combinations(names, 2)
        for rate in RATES
        if {_label(one, rate), _label(other, rate)} <= set(results.names)
    ]
    rows = [[one, *(_shown(records, one, other) for other in names[:-1])] for one in names[1:]]
    right = (
        "the predicted side of 0.5 is the value's"
        if request.kind == "binary"
        else "its prediction is closer to the value"
    )
    notes = [
        f"Of the pairs on which one model is right and the other is not ({right}), the share that "
        f"the row's model has right, at held-out rates {' / '.join(str(r) for r in RATES)}.",
        "Users held out are unseen in training; half of their values, ten at most, are given when "
        "the others are asked.",
        "In brackets: the paper's, on its Eedi data.",
        *failures(results),
    ]
    title = f"Table 4: win rates on unseen users, {request.dataset.name}"
    return Findings("table4", [Table(title, ["row wins over", *names[:-1]], rows, notes, records)])


def _label(name: str, rate: float) -> str:
    return f"{name} at {rate:g}"


def _record(results: Results, one: str, other: str, rate: float) -> dict[str, Any]:
    mine = {row["seed"]: row for row in results.of(_label(one, rate))}
    theirs = {row["seed"]: row for row in results.of(_label(other, rate))}
    found = [
        wins(results.predictions(mine[seed]), results.predictions(theirs[seed]))
        for seed in sorted(mine.keys() & theirs.keys())
    ]
    rates = [won / total for won, total in found if total]
    paper = TABLE4.get((recipe(one).paper_row, recipe(other).paper_row), {}).get(rate)
    mean, error = mean_and_error(rates) if rates else (None, None)
    return {
        "winner": one,
        "loser": other,
        "held_out": rate,
        "win_rate": mean,
        "se": error,
        "decided_pairs": sum(total for _, total in found),
        "paper": paper,
    }


def wins(mine: pl.DataFrame, theirs: pl.DataFrame) -> tuple[int, int]:
    """Test pairs that only the first has right, and those that only one of both has right.

    For yes/no values, right is the side of 0.5; for ratings, of two predictions the closer one.
    """
    import polars as pl

    keys = ["user", "item", "actual"]
    test = pl.col("part") == "test"
    both = mine.filter(test).join(theirs.filter(test), on=keys, suffix="_theirs")
    actual = both["actual"].to_numpy()
    first, second = both["prediction"].to_numpy(), both["prediction_theirs"].to_numpy()
    if np.isin(actual, (0.0, 1.0)).all():
        one, other = ((p >= 0.5) == (actual == 1) for p in (first, second))
    else:
        near, far = np.abs(first - actual), np.abs(second - actual)
        one, other = near < far, far < near
    return int((one & ~other).sum()), int((one != other).sum())


def _shown(records: list[dict[str, Any]], one: str, other: str) -> str:
    mine = [r for r in records if (r["winner"], r["loser"]) == (one, other)]
    known = [r for r in mine if r["win_rate"] is not None]
    if not known:
        return "—"
    ours = " / ".join(f"{r['win_rate']:.3f}" for r in known)
    papers = " / ".join(f"{r['paper']:.3f}" for r in known if r["paper"] is not None)
    return f"{ours} [{papers}]" if papers else ours
