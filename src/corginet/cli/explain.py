"""corginet explain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from corginet.cli.output import emit, progress, table
from corginet.errors import UserError


def explain(
    run: Path,
    user: str | None = None,
    item: str | None = None,
    /,
    *,
    top: int = 3,
    study: int | None = None,
    seed: int = 0,
    json: bool = False,
) -> None:
    """Why a prediction is what it is: the words' weights, the neighbours, and a check of both.

    With --study in place of USER and ITEM, how far such explanations hold on this data.

    Parameters
    ----------
    run
        A run folder.
    user
        A user's id.
    item
        An item's id.
    top
        How many words the faithfulness check removes.
    study
        Check the explanations of this many random pairs of the test part.
    seed
        Seed of the random words that the check compares with.
    json
        Print one JSON document.
    """
    if top < 1:
        raise UserError(f"--top got {top}; remove at least 1 word")
    if study is not None:
        if user is not None:
            raise UserError("--study draws pairs by itself; leave USER and ITEM out")
        return _study(run, study, top, seed, json)
    if user is None or item is None:
        raise UserError("explain needs RUN USER ITEM, or RUN --study PAIRS")
    from corginet.estimator import Estimator
    from corginet.explain import explain_pair

    result = explain_pair(Estimator.load(run), user, item, top, seed)
    emit(result, json, lambda: _show(result))


def _study(run: Path, pairs: int, top: int, seed: int, json: bool) -> None:
    if pairs < 2:
        raise UserError(f"--study got {pairs}; ask for at least 2 pairs")
    from corginet.estimator import Estimator
    from corginet.experiment.faithfulness import study

    with progress("checking explanations") as bar:
        found = study(Estimator.load(run), pairs, top, seed, bar)
    rows = [(name.replace("_", " "), value) for name, value in found.items() if name != "p"]
    title = f"{run}: explanations checked"
    emit(found, json, lambda: table(title, ["", "measured"], [*rows[:-1], ("p", found["p"])]))


def _show(result: dict[str, Any]) -> None:
    title = f"{result['user']} and {result['item']}: {result['prediction']:.3f}"
    words = sorted(result["words"], key=lambda w: -w["weight"])[:15]
    table(title, ["word", "weight"], [(w["word"], w["weight"]) for w in words])
    rows = [(n["kind"], n["id"], n["value"], n["effect"]) for n in result["neighbours"]]
    table("without this rating the prediction would change by", ["", "id", "value", "by"], rows)
    print(f"weights come from: {result['source']}")
    print(f"faithfulness {result['faithfulness']:+.4f}: {result['faithfulness_meaning']}")
