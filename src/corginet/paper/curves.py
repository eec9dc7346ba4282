"""Two curves: accuracy against the user's degree, and against the number of words kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corginet.experiment.engine import Results
from corginet.experiment.statistics import mean_and_error
from corginet.experiment.summary import values
from corginet.experiment.table import direction, failures
from corginet.paper.plots import Line, lines
from corginet.paper.request import Findings, Request
from corginet.paper.tables import SPARSITY_RECIPES
from corginet.report.table import Cell, Table

LENGTHS = (4, 8, 16, 32, 64, 128, 256)
WIDE_GROUPS = ("D<=10", "D>10")


def degree(request: Request) -> Findings:
    """The leading metric of several models for users with more and more training ratings."""
    names = list(dict.fromkeys([*SPARSITY_RECIPES, *request.extra]))
    results = request.run([request.contender(name) for name in names])
    metric = request.metrics[0]
    bins = _bins(results)
    rows, records, series = [], [], {}
    for name in results.names:
        points = []
        for place, group in enumerate(bins):
            found = list(values(results.of(name), metric, group).values())
            if found:
                points.append((place, *mean_and_error(found)))
                about = {"mean": points[-1][1], "se": points[-1][2]}
                pairs = sum(row["by_degree"][group]["n"] for row in results.of(name))
                records.append({"recipe": name, "degree": group, metric: about, "pairs": pairs})
        series[name] = Line(*([p[n] for p in points] for n in range(3)))  # type: ignore[arg-type]
        by_place = {place: Cell(mean, error) for place, mean, error in points}
        rows.append([name, *(by_place.get(place, Cell(None)) for place in range(len(bins)))])
    figure = lines(series, "training ratings of the user", f"test {metric}", bins)
    title = f"Test {direction(metric)} by the user's degree: {request.dataset.name}"
    table = Table(title, ["model", *bins], rows, failures(results), records)
    return Findings("degree", [table], {"degree": figure})


def _bins(results: Results) -> list[str]:
    """The finer groups by degree that have test pairs, from few to many."""
    found = {group for row in results.rows for group in row["by_degree"]} - set(WIDE_GROUPS)
    return sorted(found, key=lambda group: int(group.split("-")[0].rstrip("+")))


def truncation(request: Request) -> Findings:
    """CoRGi with the first 4, 8, … 256 words of each text."""
    contenders = [
        request.contender("corgi-dp", f"T = {length}", truncate=length) for length in LENGTHS
    ]
    results = request.run(contenders)
    metric = request.metrics[0]
    rows, records, points = [], [], []
    for length, contender in zip(LENGTHS, contenders, strict=True):
        mine = results.of(contender.name)
        if mine:
            mean, error = mean_and_error(list(values(mine, metric).values()))
            seconds = mean_and_error([row["epoch_seconds"] for row in mine])[0]
            points.append((float(length), mean, error))
            rows.append([length, Cell(mean, error), Cell(seconds, digits=2)])
            about: dict[str, Any] = {"mean": mean, "se": error}
            records.append({"truncate": length, metric: about, "epoch_seconds": seconds})
    line = Line([p[0] for p in points], [p[1] for p in points], [p[2] for p in points])
    figure = lines({"corgi-dp": line}, "words kept per text (T)", f"test {metric}", log_x=True)
    notes = [_words_note(request.dataset.texts), *failures(results)]
    columns = ["T", direction(metric), "seconds per epoch"]
    table = Table(f"Truncation: {request.dataset.name}", columns, rows, notes, records)
    return Findings("truncation", [table], {"truncation": figure})


def _words_note(texts: Sequence[str]) -> str:
    longest = max(len(text.split()) for text in texts)
    mean = sum(len(text.split()) for text in texts) / max(1, len(texts))
    return (
        f"Texts have {mean:.0f} words on average, {longest} at most; T counts the encoder's pieces."
    )
