"""corginet evaluate."""

from __future__ import annotations

from pathlib import Path

from corginet.cli.output import emit
from corginet.cli.parsing import parse_columns


def evaluate(
    run: Path,
    ratings: Path | None = None,
    /,
    *,
    columns: str | None = None,
    seed: int = 0,
    json: bool = False,
) -> None:
    """Metrics overall, by user degree, and by known or new user and item.

    Parameters
    ----------
    run
        A run folder.
    ratings
        Other ratings to score; the run's own test part without it.
    columns
        Other column names: user=student,item=question,value=correct.
    seed
        Accepted everywhere; evaluation draws nothing.
    json
        Print one JSON document.
    """
    from corginet.cli.fit import show_report
    from corginet.estimator import Estimator

    estimator = Estimator.load(run)
    options = {"columns": parse_columns(columns)} if ratings else {}
    report = estimator.evaluate(ratings, **options)
    emit(report, json, lambda: show_report(f"{run}: {estimator.config.recipe}", report))
