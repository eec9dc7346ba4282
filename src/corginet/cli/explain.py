"""corginet explain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from corginet.cli.output import emit, table


def explain(
    run: Path, user: str, item: str, /, *, top: int = 3, seed: int = 0, json: bool = False
) -> None:
    """Why a prediction is what it is: the words' weights, the neighbours, and a check of both.

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
    seed
        Seed of the random words that the check compares with.
    json
        Print one JSON document.
    """
    from corginet.estimator import Estimator
    from corginet.explain import explain_pair

    result = explain_pair(Estimator.load(run), user, item, top, seed)
    emit(result, json, lambda: _show(result))


def _show(result: dict[str, Any]) -> None:
    title = f"{result['user']} and {result['item']}: {result['prediction']:.3f}"
    words = sorted(result["words"], key=lambda w: -w["weight"])[:15]
    table(title, ["word", "weight"], [(w["word"], w["weight"]) for w in words])
    rows = [(n["kind"], n["id"], n["value"], n["effect"]) for n in result["neighbours"]]
    table("without this rating the prediction would change by", ["", "id", "value", "by"], rows)
    print(f"weights come from: {result['source']}")
    print(f"faithfulness {result['faithfulness']:+.4f}: {result['faithfulness_meaning']}")
