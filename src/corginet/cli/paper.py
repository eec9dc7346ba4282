"""corginet paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from corginet.cli.output import emit, say
from corginet.cli.parsing import reading_options
from corginet.errors import UserError

ONE_RUN = 1  # seeds, unless asked otherwise: the tables are long


def paper(
    what: str,
    /,
    *,
    ratings: Path | None = None,
    items: Path | None = None,
    out: Path = Path("paper"),
    seeds: int = ONE_RUN,
    recipes: str | None = None,
    grid: list[str] | None = None,
    tune_seeds: str | None = None,
    settings: Annotated[list[str] | None, Parameter(name="--set")] = None,
    vectors: Path | None = None,
    jobs: int | None = None,
    columns: str | None = None,
    task: str | None = None,
    bounds: str | None = None,
    duplicates: str = "error",
    missing: str = "error",
    missing_text: str = "error",
    seed: int | None = None,
    json: bool = False,
) -> None:
    """A table or figure of the paper, on your data, with the paper's own numbers beside it.

    Interrupted, the same command goes on where it was; commands with one --out share their runs.

    Parameters
    ----------
    what
        table1 (datasets), table2 (29 models), table3 and degree (by the user's degree), table4
        (unseen users), fig2 (synthetic data), attention (on one item's words), truncation,
        caching, combination, bidirectional.
    ratings
        Table of user, item, value (and time): .csv, .tsv, .parquet or .jsonl.
    items
        Table of item, text.
    out
        Folder of rows, tables and figures.
    seeds
        Runs of each model; the paper has 5.
    recipes
        Further recipes, for table2, table3, table4 and degree; groups as in compare.
    grid
        Values to try, chosen by validation: name=value,value, or paper. May be repeated.
    tune_seeds
        Choose on the first seed for all, or on every seed anew: first or every.
    settings
        Settings for the recipes that have them: name=value,name=value. May be repeated.
    vectors
        Static word vectors (word2vec or GloVe) for the NeuralBoW rows.
    jobs
        Processes at once, one thread each; all cores unless given.
    columns
        Other column names: user=student,item=question,value=correct.
    task
        binary or rating; inferred from the values unless given.
    bounds
        Smallest and largest possible value, LOW:HIGH.
    duplicates
        What to do with repeated pairs: error, last or mean.
    missing
        What to do with rows that have gaps: error or drop.
    missing_text
        Whether items may lack a text: error or allow.
    seed
        The first seed; the others count up from it.
    json
        Print one JSON document.
    """
    from corginet.cli import experiments as shared
    from corginet.paper.commands import NEED_NO_DATA, command

    make = command(what)
    changes: dict[str, Any] = shared.parse_settings(settings or [])
    extra = shared.parse_recipes(recipes) if recipes else []
    tried = shared.parse_grid(grid or [])
    reading = reading_options(columns, task, bounds, duplicates, missing, missing_text)
    if what not in NEED_NO_DATA and (ratings is None or items is None):
        raise UserError(f"paper {what} is made from your data; pass --ratings TABLE --items TABLE")
    if vectors is not None and not vectors.is_file():
        raise UserError(f"--vectors {vectors}: no such file; give word2vec or GloVe vectors")

    from corginet.data.dataset import Dataset
    from corginet.data.synthetic import make_synthetic
    from corginet.experiment.settings import check_known
    from corginet.paper.request import Request
    from corginet.recipes import recipe_names

    check_known(recipe_names(), changes, "--set")
    check_known(recipe_names(), tried, "--grid")
    budget = {"seeds": seeds, "seed": seed, "jobs": jobs, "tune_seeds": tune_seeds}
    plan = shared.make_plan({**budget, "grid": tried or None})
    if what in NEED_NO_DATA:
        dataset = make_synthetic(seed=plan.seed).dataset
    else:
        dataset = Dataset.read(ratings, items, **reading)
        say(dataset.ratings.summary() + ("" if task else " (inferred; --task states it)"))
    request = Request(dataset, out, plan, changes, vectors, extra, shared.tell, shared.Encoding())
    findings = make(request)
    files = findings.save(out)
    found = {"rows": findings.rows, **findings.extra, "files": [str(path) for path in files]}
    emit(found, json, lambda: _show(findings.tables, out))


def _show(tables: Any, out: Path) -> None:
    for table in tables:
        print(table.as_text())
    say(f"written to {out}")
