"""The appendix's comparisons of CoRGi with itself: caching, combination, direction."""

from __future__ import annotations

from typing import Any

import numpy as np

from corginet.experiment.summary import values
from corginet.experiment.table import cells, direction, failures
from corginet.paper.published import (
    ADDED,
    CACHING,
    VARIANTS,
    Published,
    stand_in_note,
)
from corginet.paper.request import Findings, Request
from corginet.paper.tables import beside_paper
from corginet.report.table import Cell, Table

SCORES = {"co": "additive", "dp": "dot-product"}
EVERY = 5  # epochs between validations when steps are timed: the typical epoch then has none


def combination(request: Request) -> Findings:
    """Content added to the edge's state, or concatenated with its input."""
    contenders = [
        request.contender(f"corgi-{short}{ending}", f"{score}, {way}")
        for short, score in SCORES.items()
        for ending, way in (("", "added"), ("-concatenate", "concatenated"))
    ]
    results = request.run(contenders)

    def published(name: str, metric: str) -> Published | None:
        one_way = ADDED.get(f"{name}-one-way", VARIANTS.get(name, {}))
        return one_way.get(request.published(metric))

    note = "The paper's numbers are of the one-way form; ours attend both ways."
    title = f"Combination of content and edge state: {request.dataset.name}"
    table = beside_paper(request, results, title, published, notes=[note])
    return Findings("combination", [table])


def bidirectional(request: Request) -> Findings:
    """Content on messages to users alone, or both ways."""
    contenders = [
        request.contender(f"corgi-{short}{ending}", f"{score}, {way}")
        for short, score in SCORES.items()
        for ending, way in (("-one-way", "one way"), ("", "both ways"))
    ]
    results = request.run(contenders)

    def published(name: str, metric: str) -> Published | None:
        return VARIANTS.get(name, {}).get(request.published(metric))

    title = f"Content one way and both ways: {request.dataset.name}"
    return Findings("bidirectional", [beside_paper(request, results, title, published)])


def caching(request: Request) -> Findings:
    """Accuracy and seconds per iteration with and without the cache, one fit at a time."""
    shared = {"policy": "folds", "validate_every": EVERY}
    contenders = [
        request.contender(f"corgi-{short}{ending}", f"{score}, {way} caching", **shared)
        for short, score in SCORES.items()
        for ending, way in (("-cached", "with"), ("", "without"))
    ]
    results = request.run(contenders, jobs=1)
    metric = request.metrics[0]
    found = cells({n: list(values(results.of(n), metric).values()) for n in results.names}, metric)
    rows, records = [], []
    for name in results.names:
        seconds = float(np.mean([row["epoch_seconds"] for row in results.of(name)]))
        paper = CACHING[name.split(", ")[1]]
        theirs = Cell(paper["rmse"] if metric == "rmse" else None, digits=3)
        rows.append([name, found[name], Cell(seconds, digits=3), theirs, paper["seconds"]])
        about: dict[str, Any] = {"mean": found[name].value, "se": found[name].error}
        records.append({"model": name, metric: about, "seconds": seconds, "paper": paper})
    notes = [
        "Seconds: the median training step, one thread. Here the cache is kept per fold of hidden "
        "edges, so that no value reaches a step in which it is hidden; both rows train on folds.",
        stand_in_note("rating"),
        *failures(results),
    ]
    columns = ["model", direction(metric), "seconds per iteration", "paper rmse", "paper seconds"]
    title = f"Caching: {request.dataset.name}"
    return Findings("caching", [Table(title, columns, rows, notes, records)])
