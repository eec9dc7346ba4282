"""corginet tune."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from corginet.cli import experiments as shared
from corginet.cli.output import emit, say, table
from corginet.cli.reading import Reading
from corginet.config import DEFAULT_RECIPE
from corginet.errors import UserError


def tune(
    ratings: Path,
    items: Path | None = None,
    /,
    *,
    recipe: str = DEFAULT_RECIPE,
    trials: int = 30,
    out: Path = Path("tuning"),
    split: str | None = None,
    settings: list[str] | None = None,
    jobs: int = 0,
    seed: int = 0,
    reading: Reading | None = None,
    json: bool = False,
) -> None:
    """Search a recipe's settings by validation; the test part is never looked at.

    The first trial is the recipe as it is. Hopeless trials are stopped early. Interrupted, the
    same command goes on; the best settings are written as a config file for fit.

    Parameters
    ----------
    ratings
        Table of user, item, value (and time): .csv, .tsv, .parquet or .jsonl.
    items
        Table of item, text.
    recipe
        Name of a model: corginet recipes.
    trials
        Settings tried, in all.
    out
        Folder of the study (SQLite) and of best.toml.
    split
        rating, user, item or time.
    settings
        Settings that are fixed: name=value,name=value. May be repeated.
    jobs
        Processes at once, one thread each; 0 takes one per core.
    seed
        Seed of split, weights and search.
    json
        Print one JSON document.
    """
    if trials < 1:
        raise UserError(f"--trials got {trials}; ask for at least 1")
    fixed: dict[str, Any] = dict(shared.parse_settings(settings or [], "--settings"))
    if split is not None:
        fixed["split"] = split
    shared.check_has_texts(items, [recipe])
    dataset = (reading or Reading()).read(ratings, items)

    from corginet.experiment.contenders import Cell, Contender
    from corginet.experiment.preparation import Preparation
    from corginet.experiment.settings import check_known
    from corginet.experiment.tuning import Search, finished, run_search
    from corginet.experiment.workers import n_cores

    check_known([recipe], fixed, "--settings")
    contender = Contender(recipe, fixed)
    search = Search(dataset, contender, seed, out)
    _ = search.space
    Preparation(dataset, out, shared.Encoding()).encoder_of(Cell(contender, seed))
    study = run_search(search, trials, jobs or n_cores(), say)
    best = study.best_trial
    config = _write_config(out / "best.toml", recipe, fixed, best.params, search.seed)
    found = {
        "best": {"validation_loss": best.value, "trial": best.number, "settings": best.params},
        "default_validation_loss": study.trials[0].value,
        "trials": finished(study),
        "pruned": sum(t.state.name == "PRUNED" for t in study.trials),
        "config": str(config),
        "recipe": recipe,
    }
    emit(found, json, lambda: _show(found))


def _write_config(
    path: Path, recipe: str, fixed: dict[str, Any], params: dict[str, Any], seed: int
) -> Path:
    """The best settings as a file that fit --config takes."""
    import tomli_w

    from corginet.config import fields, override
    from corginet.recipes import recipe as find

    config = override(find(recipe).config, {**fixed, **params}, f"recipe '{recipe}'")
    tree: dict[str, Any] = {"recipe": recipe, "seed": seed}
    for dotted, _, value in fields(config):
        *parents, leaf = dotted.split(".")
        if leaf in params or leaf in fixed:
            node = tree
            for parent in parents:
                node = node.setdefault(parent, {})
            node[leaf] = value
    path.write_text(tomli_w.dumps(tree), encoding="utf-8")
    return path


def _show(found: dict[str, Any]) -> None:
    best = found["best"]
    title = f"{found['recipe']}: validation loss {best['validation_loss']:.4f}"
    table(title, ["setting", "best"], list(best["settings"].items()))
    default = found["default_validation_loss"]
    if default is not None:
        say(f"with the recipe's own settings: {default:.4f}")
    say(f"{found['trials']} trials; fit with --config {found['config']}")
