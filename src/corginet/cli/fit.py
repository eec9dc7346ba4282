"""corginet fit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from corginet.cli.output import emit, say, table, watched
from corginet.cli.reading import Reading
from corginet.config import DEFAULT_RECIPE
from corginet.errors import UserError


def fit(
    ratings: Path,
    items: Path | None = None,
    /,
    *,
    out: Path,
    recipe: str = DEFAULT_RECIPE,
    config: Path | None = None,
    content: Path | None = None,
    reading: Reading | None = None,
    resume: bool = False,
    overwrite: bool = False,
    seed: int | None = None,
    json: bool = False,
    **fields: Annotated[str, Parameter(help="Any setting of the recipe: corginet recipes NAME.")],
) -> None:
    """Train a model on ratings and item texts; keep the best; score the test part once.

    Parameters
    ----------
    ratings
        Table of user, item, value (and time): .csv, .tsv, .parquet or .jsonl.
    items
        Table of item, text. Recipes that read no text need none.
    out
        Folder for the run; it appears when everything in it is complete.
    recipe
        Name of a model: corginet recipes.
    config
        TOML file with settings.
    content
        Content store made by corginet encode, in place of the shared cache.
    resume
        Go on from the checkpoint of an interrupted fit.
    overwrite
        Replace the run that is there.
    seed
        Seed of split, weights and training.
    json
        Print one JSON document.
    """
    from corginet.config import read_toml
    from corginet.run import check_free

    check_free(out, overwrite)
    changes: dict[str, Any] = dict(fields) if seed is None else {**fields, "seed": seed}
    settings = read_toml(config) if config else {}

    from corginet.estimator import Estimator
    from corginet.recipes import recipe as find_recipe
    from corginet.text.store import ContentStore
    from corginet.training.trainer import Interrupted

    estimator = Estimator(settings.pop("recipe", recipe), settings, **changes)
    if items is None and find_recipe(estimator.config.recipe).reads_text:
        raise UserError(
            f"recipe '{estimator.config.recipe}' reads texts; name an item table after the "
            "ratings, or choose a recipe that reads none, for instance --recipe mf"
        )
    dataset = (reading or Reading()).read(ratings, items)
    checkpoint = out.with_name(out.name + ".checkpoint.safetensors")
    if not resume:
        checkpoint.unlink(missing_ok=True)
    elif not checkpoint.exists():
        raise UserError(f"nothing to resume: no {checkpoint}; run without --resume")
    store = ContentStore.open(content) if content else None
    try:
        with watched(estimator):
            estimator.fit(dataset, checkpoint=checkpoint, store=store)
    except Interrupted as stopped:
        say(f"{stopped}; go on with the same command and --resume")
        raise KeyboardInterrupt from None
    estimator.save(out, overwrite)
    checkpoint.unlink(missing_ok=True)
    show_verdict(estimator.report)
    emit(estimator.report, json, lambda: show_report(f"{out}: {recipe}", estimator.report))


def show_verdict(report: dict[str, Any]) -> None:
    """Whether the model earned its cost, and what its intervals held."""
    plain = report["plain"]
    if report["recipe"] != plain["recipe"]:
        share = f"{abs(plain['saved']):.1%} {'lower' if plain['saved'] >= 0 else 'higher'}"
        say(
            f"validation loss {share} than that of biases alone"
            + ("; --recipe bias would do" if plain["would_do"] else "")
        )
    if "interval" in report:
        i = report["interval"]
        say(f"{i['level']:.0%} intervals hold {i['coverage']:.1%} of the test values")


def show_report(title: str, report: dict[str, Any]) -> None:
    """Metrics for people: overall, by degree, by quadrant."""
    rows = [("all", report["metrics"]), *report["by_degree"].items()]
    rows += [(k.replace("_", " "), v) for k, v in report["by_quadrant"].items() if v["n"]]
    names = [name for name in report["metrics"] if name != "n"]
    table(
        title,
        ["part", "ratings", *names],
        [[name, m["n"], *(m.get(k, "") for k in names)] for name, m in rows if m["n"]],
    )
