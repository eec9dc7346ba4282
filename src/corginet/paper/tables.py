"""Tables 1, 2 and 3 of the paper, on the data at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corginet.data.dataset import Dataset
from corginet.data.synthetic import make_synthetic
from corginet.experiment.contenders import Contender
from corginet.experiment.engine import Results
from corginet.experiment.statistics import independent_p, paired_p
from corginet.experiment.summary import ALL_USERS, LOWER_IS_BETTER, values
from corginet.experiment.table import Test, cells, direction, failures
from corginet.paper.published import (
    TABLE1,
    TABLE1_COLUMNS,
    TABLE2,
    TABLE3,
    Published,
    stand_in_note,
)
from corginet.paper.request import Findings, Request
from corginet.recipes import all_recipes, recipe
from corginet.report.table import Cell, Table
from corginet.text.encoders import WORD

GROUPS = (ALL_USERS, "D>10", "D<=10")
SPARSITY_RECIPES = ("gcn", "gcn+sentence", "corgi-dp")


def table1(request: Request) -> Findings:
    """Dataset statistics beside the paper's."""
    rows = [_statistics(request.dataset, request.dataset.name)]
    rows.append(_statistics(make_synthetic().dataset, "Synthetic, here"))
    rows += [[f"{name}, paper", *numbers] for name, numbers in TABLE1.items()]
    notes = ["Words are runs of letters and digits, in lower case; every item counts."]
    return Findings("table1", [Table("Table 1: datasets", ["data", *TABLE1_COLUMNS], rows, notes)])


def _statistics(dataset: Dataset, name: str) -> list[Any]:
    r = dataset.ratings
    words = [[w.lower() for w in WORD.findall(text)] for text in dataset.texts]
    return [
        name,
        r.n_users,
        r.n_items,
        len(r),
        round(len(r) / r.n_users, 1),
        round(len(r) / r.n_items, 1),
        len({word for text in words for word in text}),
        round(float(np.mean([len(text) for text in words])), 2),
        round(len(r) / (r.n_users * r.n_items), 4),
        len(np.unique(r.values)),
    ]


def table2(request: Request) -> Findings:
    """The paper's rows in its order, then what was asked for besides."""
    by_row = {r.paper_row: r.name for r in all_recipes() if r.paper_row in TABLE2}
    names = list(dict.fromkeys([*(by_row[row] for row in TABLE2), *request.extra]))
    results = request.run([request.contender(name) for name in names])

    def published(name: str, metric: str) -> Published | None:
        row = TABLE2.get(recipe(name).paper_row)
        return row[request.published(metric)] if row else None

    title = f"Table 2: {request.dataset.name}"
    return Findings("table2", [beside_paper(request, results, title, published)])


def beside_paper(
    request: Request,
    results: Results,
    title: str,
    published: Callable[[str, str], Published | None],
    p_value: Test = independent_p,
    notes: Sequence[str] = (),
) -> Table:
    """A row per contender: our metrics, and the paper's of the data this stands in for."""
    ours = {
        metric: cells(
            {n: list(values(results.of(n), metric).values()) for n in results.names},
            metric,
            p_value,
        )
        for metric in request.metrics
    }
    rows, records = [], []
    for contender in results.contenders:
        if contender.name not in results.names:
            continue
        found = {m: published(contender.recipe, m) for m in request.metrics}
        mine = [ours[m].get(contender.name, Cell(None)) for m in request.metrics]
        about = recipe(contender.recipe)
        label = contender.label or about.paper_row or contender.recipe
        papers = [Cell(p.value, p.error, digits=3) if p else Cell(None) for p in found.values()]
        rows.append([label, "✓" if about.reads_text else "", *mine, *papers])
        records.append(
            _record(results, contender, dict(zip(request.metrics, mine, strict=True)), found)
        )
    columns = ["model", "text", *(direction(m) for m in request.metrics)]
    columns += [f"paper {m}" for m in request.metrics]
    seeds = f"{request.plan.seeds} seed" + ("s" if request.plan.seeds > 1 else "")
    notes = [f"Test part, {seeds}.", stand_in_note(request.kind), *notes, *failures(results)]
    return Table(title, columns, rows, notes, records)


def _record(
    results: Results,
    contender: Contender,
    ours: dict[str, Cell],
    papers: dict[str, Published | None],
) -> dict[str, Any]:
    rows = results.of(contender.name)
    return {
        "row": recipe(contender.recipe).paper_row or contender.recipe,
        "recipe": contender.name,
        "seeds": [row["seed"] for row in rows],
        **{m: {"mean": c.value, "se": c.error, "stars": c.stars} for m, c in ours.items()},
        "paper": {m: {"mean": p.value, "se": p.error} for m, p in papers.items() if p},
        "seconds": float(np.mean([row["seconds"] for row in rows])),
        "peak_gb": float(np.max([row["peak_gb"] for row in rows])),
        "deviation": recipe(contender.recipe).deviation,
    }


def table3(request: Request) -> Findings:
    """All users, those with more than 10 training ratings, and those with at most 10."""
    names = list(dict.fromkeys([*SPARSITY_RECIPES, *request.extra]))
    results = request.run([request.contender(name) for name in names])
    metric = request.metrics[0]
    against = "gcn+sentence"
    columns = {
        group: cells(
            {n: list(values(results.of(n), metric, group).values()) for n in results.names},
            metric,
            paired_p,
            against,
        )
        for group in GROUPS
    }
    rows, records = [], []
    for name in results.names:
        row = TABLE3.get(recipe(name).paper_row, {}).get(request.published(metric), {})
        ours = {group: columns[group].get(name, Cell(None)) for group in GROUPS}
        papers = [Cell(row[g].value, row[g].error, digits=3) if g in row else None for g in GROUPS]
        rows.append([recipe(name).paper_row or name, *ours.values(), *papers])
        numbers = {g: {"mean": c.value, "se": c.error, "stars": c.stars} for g, c in ours.items()}
        paper = {g: {"mean": p.value, "se": p.error} for g, p in row.items()}
        records.append({"recipe": name, "metric": metric, **numbers, "paper": paper})
    way = "lower" if metric in LOWER_IS_BETTER else "higher"
    notes = [
        f"Test {metric}, {way} is better; D: the user's training ratings; stars: paired "
        f"t-test of the best against {against}.",
        stand_in_note(request.kind),
        *failures(results),
    ]
    head = ["model", *GROUPS, *(f"paper {group}" for group in GROUPS)]
    return Findings(
        "table3", [Table(f"Table 3: {request.dataset.name}", head, rows, notes, records)]
    )
