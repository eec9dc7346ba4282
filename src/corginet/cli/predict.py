"""corginet predict and recommend."""

from __future__ import annotations

from pathlib import Path

from corginet.cli.output import emit, say, table
from corginet.cli.parsing import parse_columns


def predict(
    run: Path,
    pairs: Path,
    /,
    *,
    out: Path,
    history: Path | None = None,
    items: Path | None = None,
    columns: str | None = None,
    seed: int = 0,
    json: bool = False,
) -> None:
    """Predict pairs of users and items, known or new.

    Parameters
    ----------
    run
        A run folder.
    pairs
        Table of user, item.
    out
        File for the predictions: .csv, .tsv, .parquet or .jsonl.
    history
        Ratings of new users (or more of known ones).
    items
        Texts of new items.
    columns
        Other column names: user=student,item=question.
    seed
        Accepted everywhere; prediction draws nothing.
    json
        Print one JSON document.
    """
    from corginet.data.writers import check_writable, write_table
    from corginet.estimator import Estimator

    check_writable(out)
    names = parse_columns(columns)
    estimator = Estimator.load(run)
    frame = estimator.predict(pairs, history=history, items=items, columns=names)
    write_table(frame, out)
    result = {
        "rows": frame.height,
        "out": str(out),
        "mean": frame["prediction"].mean(),
        "recipe": estimator.config.recipe,
    }
    emit(result, json, lambda: say(f"{frame.height:,} predictions in {out}"))


def recommend(run: Path, user: str, /, *, top: int = 10, seed: int = 0, json: bool = False) -> None:
    """The best unseen items of a user.

    Parameters
    ----------
    run
        A run folder.
    user
        A user's id.
    top
        How many items.
    seed
        Accepted everywhere; prediction draws nothing.
    json
        Print one JSON document.
    """
    from corginet.estimator import Estimator

    estimator = Estimator.load(run)
    frame = estimator.recommend(user, top)
    rows = frame.to_dicts()
    emit(
        {"user": user, "items": rows},
        json,
        lambda: table(
            f"best for {user}", ["item", "prediction"], [tuple(r.values()) for r in rows]
        ),
    )
