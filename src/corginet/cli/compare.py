"""corginet compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from corginet.cli import experiments as shared
from corginet.cli.output import emit
from corginet.cli.reading import Reading
from corginet.errors import UserError

if TYPE_CHECKING:
    from corginet.experiment.contenders import Contender
    from corginet.experiment.plan import PlanConfig


def compare(
    ratings: Path,
    items: Path | None = None,
    /,
    *,
    recipes: str | None = None,
    variants: Path | None = None,
    split: str | None = None,
    out: Path | None = None,
    controls: bool = False,
    budget: shared.Budget | None = None,
    reading: Reading | None = None,
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
    variants
        TOML file of further contenders: a table each, with recipe, settings, and text = "none",
        "random" or "permuted" for a control.
    split
        rating, user, item or time.
    out
        Folder of rows, predictions and tables; a temporary one unless given.
    controls
        Add every recipe that reads text without text, with random vectors, and with other
        items' texts; says whether the content earned its cost.
    json
        Print one JSON document.
    """
    budget = budget or shared.Budget()
    if recipes is None and variants is None:
        raise UserError("nothing to compare; pass --recipes NAMES or --variants FILE")
    contenders, plan = _contenders(recipes, variants, split, budget)
    shared.check_has_texts(items, [contender.recipe for contender in contenders])
    dataset = (reading or Reading()).read(ratings, items)

    from corginet.experiment.summary import summarise
    from corginet.experiment.table import results_table
    from corginet.experiment.verdict import judge_texts, with_controls
    from corginet.report.table import save

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


def _contenders(
    recipes: str | None, variants: Path | None, split: str | None, budget: shared.Budget
) -> tuple[list[Contender], PlanConfig]:
    """The recipes by name, then the variants; the settings that all of them share."""
    from corginet.experiment.contenders import Contender
    from corginet.experiment.variants import read_variants

    names = shared.parse_recipes(recipes) if recipes is not None else []
    used = [*names, *(c.recipe for c in read_variants(variants, {}))] if variants else names
    changes = budget.changes(used)
    if split is not None:
        changes["split"] = split
    found = [Contender(name, changes) for name in names]
    if variants is not None:
        found += read_variants(variants, changes)
    return found, budget.plan(used)


def _show(table: str, summary: dict[str, Any]) -> None:
    print(table)
    print(summary["sentence"])
    if "text" in summary:
        print(summary["text"])
