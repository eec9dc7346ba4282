"""corginet demo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from corginet.cli.output import emit, progress, say, table

if TYPE_CHECKING:
    from corginet.data.synthetic import Synthetic
    from corginet.paper.synthetic import Outcome

ABOUT = (
    "Every user looks for one word and likes the items that hold it. The word is hidden; the "
    "items' words are shown. A model that summarises an item before it knows who asks cannot "
    "tell; one that reads the item as each user does can."
)
ABOUT_FOCUS = (
    "The share of test pairs with the focus word in the item in which the largest weight falls "
    "on it. High accuracy does not need it: trainable states can learn the items' words by "
    "themselves. Additive attention ranks an item's words alike for every user, so it cannot "
    "be personal, whatever its accuracy."
)


def demo(*, out: Path = Path("demo"), seed: int = 0, json: bool = False) -> None:
    """The paper's synthetic experiment, whole: models, figures, a report.

    Parameters
    ----------
    out
        Folder for the report and figures.
    seed
        Seed of data, split, weights and training.
    json
        Print one JSON document.
    """
    import tempfile
    import time

    from corginet.errors import UserError
    from corginet.paper.figures import save_figures
    from corginet.paper.synthetic import ROWS, Row, chance, run_synthetic

    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out} is a file; name a folder")
    started = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    with progress("demo") as bar, tempfile.TemporaryDirectory(prefix="corginet-") as folder:
        done: list[str] = []

        def tell(row: Row) -> None:
            done.append(row.label)
            bar(len(done), len(ROWS), f"done: {row.label}")

        bar(0, len(ROWS), f"training {len(ROWS)} models")
        data, outcomes = run_synthetic(Path(folder), seed=seed, tell=tell)
        figures = save_figures(data, outcomes, out)
    result = {
        "accuracy": _accuracies(outcomes),
        "focus": {o.row.name: o.focus for o in outcomes if o.focus},
        "chance": chance(data, outcomes[0].estimator),
        "epochs": {o.row.name: o.estimator.fitted.epochs for o in outcomes},
        "model_seconds": {o.row.name: o.seconds for o in outcomes},
        "report": str(out / "report.html"),
        "seed": seed,
    }
    result["seconds"] = time.perf_counter() - started
    _write_report(out / "report.html", data, outcomes, result, figures)
    emit(result, json, lambda: _show(outcomes, result))


def _accuracies(outcomes: list[Outcome]) -> dict[str, float]:
    """By row; `corgi` is the weaker of the paper's two attentions."""
    found = {o.row.name: o.accuracy for o in outcomes}
    return {**found, "corgi": min(found["corgi_co"], found["corgi_dp"])}


def _focus_rows(outcomes: list[Outcome], result: dict[str, Any]) -> list[tuple[object, ...]]:
    return [
        (o.row.label, place, share, result["chance"])
        for o in outcomes
        for place, share in o.focus.items()
    ]


def _show(outcomes: list[Outcome], result: dict[str, Any]) -> None:
    rows = [(o.row.label, o.accuracy, f"{o.seconds:.0f}") for o in outcomes]
    table("test accuracy", ["model", "accuracy", "seconds"], rows)
    table(
        "largest weight on the focus word, where it is present",
        ["model", "place", "share", "chance"],
        _focus_rows(outcomes, result),
    )
    say(f"{result['report']} in {result['seconds']:.0f} s")


def _write_report(
    path: Path,
    data: Synthetic,
    outcomes: list[Outcome],
    result: dict[str, Any],
    figures: list[Path],
) -> None:
    from corginet.report.page import Page
    from corginet.runtime import versions

    accuracy, maps, bars = figures
    page = Page("Reading items as each user does")
    page.text(ABOUT)
    page.heading("Test accuracy")
    page.image(accuracy, "bars of test accuracies by model")
    page.heading("Final states of items and users")
    page.image(maps, "two t-SNE maps")
    page.heading("Attention of two pairs")
    page.image(bars, "bars of attention weights with and without the focus word")
    page.heading("Does the largest weight fall on the focus word?")
    page.text(ABOUT_FOCUS)
    page.table(["model", "place", "share", "chance"], _focus_rows(outcomes, result))
    r = data.dataset.ratings
    page.heading("How this was made")
    page.text(
        f"{r.n_users:,} users, {r.n_items:,} items, {len(r):,} pairs, split 8:1:1; seed "
        f"{result['seed']}; data {r.fingerprint()}; "
        + ", ".join(f"{k} {v}" for k, v in versions().items())
    )
    path.write_text(page.render(), encoding="utf-8")
