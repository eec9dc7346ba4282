"""corginet compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from corginet.cli.output import emit, say
from corginet.cli.parsing import reading_options


def compare(
    ratings: Path,
    items: Path | None = None,
    /,
    *,
    recipes: str,
    seeds: int | None = None,
    split: str | None = None,
    out: Path | None = None,
    controls: bool = False,
    grid: list[str] | None = None,
    tune_seeds: str | None = None,
    settings: Annotated[list[str] | None, Parameter(name="--set")] = None,
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
    """Recipes on the same splits with the same budget: a table with errors and tests.

    Interrupted, the same command with the same --out goes on where it was.

    Parameters
    ----------
    ratings
        Table of user, item, value (and time): .csv, .tsv, .parquet or .jsonl.
    items
        Table of item, text. Recipes that read no text need none.
    recipes
        Names separated by commas; all, paper (its Table 2) and plain stand for groups.
    seeds
        Runs of each recipe; a seed decides the split and the weights.
    split
        rating, user, item or time.
    out
        Folder of rows, predictions and tables; a temporary one unless given.
    controls
        Add every recipe that reads text without text, with random vectors, and with other
        items' texts; says whether the content earned its cost.
    grid
        Values to try, chosen by validation: name=value,value, or paper (dropout 0.1, 0.3, 0.5,
        0.7). 'dropout' stands for every dropout of a recipe. May be repeated.
    tune_seeds
        Choose on the first seed for all, or on every seed anew: first or every.
    settings
        Settings for the recipes that have them: name=value,name=value. May be repeated.
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

    names = shared.parse_recipes(recipes)
    changes: dict[str, Any] = shared.parse_settings(settings or [])
    if split is not None:
        changes["split"] = split
    tried = shared.parse_grid(grid or [])
    reading = reading_options(columns, task, bounds, duplicates, missing, missing_text)

    from corginet.data.dataset import Dataset
    from corginet.experiment.contenders import Contender
    from corginet.experiment.settings import check_known
    from corginet.experiment.summary import summarise
    from corginet.experiment.table import results_table
    from corginet.experiment.verdict import judge_texts, with_controls
    from corginet.report.table import save

    check_known(names, changes, "--set")
    check_known(names, tried, "--grid")
    budget = {"seeds": seeds, "seed": seed, "jobs": jobs, "tune_seeds": tune_seeds}
    plan = shared.make_plan({**budget, "grid": tried or None})
    shared.check_has_texts(items, names)
    dataset = Dataset.read(ratings, items, **reading)
    say(dataset.ratings.summary() + ("" if task else " (inferred; --task states it)"))
    contenders = [Contender(name, changes) for name in names]
    if controls:
        contenders = with_controls(contenders)
    with shared.folder_of(out) as folder:
        results = shared.make_experiment(dataset, folder, plan).run(contenders)
        summary = summarise(results)
        if controls:
            summary |= judge_texts(results)
        table = results_table(results, f"{dataset.name}: {dataset.ratings.summary()}")
        if out is not None:
            save(table, folder, "table")
    found = {"rows": [*results.rows, *results.errors], "summary": summary}
    emit({**found, "out": out and str(out)}, json, lambda: _show(table.as_text(), summary))


def _show(table: str, summary: dict[str, Any]) -> None:
    print(table)
    print(summary["sentence"])
    if "text" in summary:
        print(summary["text"])
