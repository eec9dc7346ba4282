"""corginet paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from corginet.cli import experiments as shared
from corginet.cli.output import emit, say
from corginet.cli.reading import Reading
from corginet.errors import UserError

ONE_RUN = 1  # seeds, unless asked otherwise: the tables are long


def paper(
    what: str,
    /,
    *,
    ratings: Path | None = None,
    items: Path | None = None,
    out: Path = Path("paper"),
    recipes: str | None = None,
    vectors: Path | None = None,
    budget: shared.Budget | None = None,
    reading: Reading | None = None,
    json: bool = False,
) -> None:
    """A table or figure of the paper, on your data, with the paper's own numbers beside it.

    One seed unless --seeds asks for more. Interrupted, the same command goes on where it was;
    commands with one --out share their runs.

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
    recipes
        Further recipes, for table2, table3, table4 and degree; groups as in compare.
    vectors
        Static word vectors (word2vec or GloVe) for the NeuralBoW rows.
    json
        Print one JSON document.
    """
    from corginet.paper.commands import NEED_NO_DATA, command

    make = command(what)
    if what not in NEED_NO_DATA and (ratings is None or items is None):
        raise UserError(f"paper {what} is made from your data; pass --ratings TABLE --items TABLE")
    if vectors is not None and not vectors.is_file():
        raise UserError(f"--vectors {vectors}: no such file; give word2vec or GloVe vectors")

    from corginet.data.synthetic import make_synthetic
    from corginet.paper.request import Request
    from corginet.recipes import recipe_names

    budget, known = budget or shared.Budget(), recipe_names()
    extra = shared.parse_recipes(recipes) if recipes else []
    plan, changes = budget.plan(known, ONE_RUN), budget.changes(known)
    if ratings is not None:
        dataset = (reading or Reading()).read(ratings, items)
    else:
        dataset = make_synthetic(seed=plan.seed).dataset
    request = Request(dataset, out, plan, changes, vectors, extra, shared.tell, shared.Encoding())
    findings = make(request)
    files = findings.save(out)
    found = {"rows": findings.rows, **findings.extra, "files": [str(path) for path in files]}
    emit(found, json, lambda: _show(findings.tables, out))


def _show(tables: Any, out: Path) -> None:
    for table in tables:
        print(table.as_text())
    say(f"written to {out}")
