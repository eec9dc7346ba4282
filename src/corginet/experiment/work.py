"""One cell's work: fit, predict validation and test pairs, keep the predictions, score them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from corginet.data.dataset import Dataset
from corginet.data.graph import InteractionGraph
from corginet.data.splits import TRAIN, VALIDATION
from corginet.data.task import Task
from corginet.estimator import Estimator
from corginet.experiment.contenders import Cell
from corginet.experiment.controls import TextFor, text_for
from corginet.experiment.division import Division, divide
from corginet.experiment.rows import Row, write_predictions
from corginet.nn.readout import Pairs
from corginet.runtime import peak_gb, versions
from corginet.scoring import ends
from corginet.training.metrics import by_degree, metrics
from corginet.world import graph_of

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class Job:
    """A cell with its data, and where its predictions (and its run) go."""

    cell: Cell
    name: str
    dataset: Dataset
    stores: Path
    predictions: Path
    scored: bool
    run: Path | None = None


def fit_cell(job: Job) -> Row:
    """Fit and predict. The test part is no part of the fit; it is scored only where asked."""
    started = time.perf_counter()
    cell, division = job.cell, divide(job.dataset, job.cell)
    text = text_for(cell, job.dataset, job.stores)
    estimator = fit(cell, division, text)
    seconds = time.perf_counter() - started
    frame = predict(estimator, division)
    write_predictions(frame, job.predictions)
    if job.run is not None:
        estimator.save(job.run, overwrite=True)
    ratings = job.dataset.ratings
    row = {
        "cell": job.name,
        "recipe": cell.contender.name,
        "seed": cell.seed,
        "text": cell.contender.text,
        "validation": _metrics(frame, "validation", ratings.task),
        "validation_loss": estimator.fitted.best_loss,
        "seconds": seconds,
        "epoch_seconds": _typical_epoch(estimator),
        "peak_gb": peak_gb(),
        "epochs": estimator.fitted.epochs,
        "best_epoch": estimator.fitted.best_epoch,
        "settings": {k: str(v) for k, v in cell.settings.items()},
        "split": {**cell.config.split.model_dump(), **division.counts},
        "data_hash": ratings.fingerprint(),
        "versions": versions(),
    }
    return row | scores(frame, ratings.task) if job.scored else row


def fit(cell: Cell, division: Division, text: TextFor) -> Estimator:
    """The cell's estimator, trained."""
    name = cell.contender.recipe
    estimator = Estimator(name, **{**cell.settings, "seed": cell.seed})
    return estimator.fit(text.dataset, split=division.split, store=text.store)


def predict(estimator: Estimator, division: Division) -> pl.DataFrame:
    """Validation pairs from the training graph; test pairs with what is given added to it."""
    import polars as pl

    train = estimator.split.rows(TRAIN)
    validation = _part(estimator, "validation", train, estimator.split.rows(VALIDATION))
    with_given = np.concatenate([train, division.given])
    return pl.concat([validation, _part(estimator, "test", with_given, division.asked)])


def _part(estimator: Estimator, name: str, observed: np.ndarray, asked: np.ndarray) -> pl.DataFrame:
    import polars as pl

    r = estimator.ratings
    graph = graph_of(r.users[observed], r.items[observed], r.values[observed], r.n_users, r.n_items)
    users, items = r.users[asked], r.items[asked]
    pairs = Pairs(torch.from_numpy(users), torch.from_numpy(items))
    predicted = _values(estimator, graph, pairs)
    columns = {
        "user": r.user_ids.ids.gather(users),
        "item": r.item_ids.ids.gather(items),
        "part": pl.Series([name] * len(asked), dtype=pl.String),
        "prediction": predicted,
        "actual": r.values[asked],
        "user_degree": graph.degrees.numpy()[users],
        "item_degree": graph.degrees.numpy()[items + r.n_users],
    }
    if estimator.interval:
        low, high = ends(predicted, pairs, graph, r.task, estimator.interval)
        columns |= {"low": low, "high": high}
    return pl.DataFrame(columns)


def _values(estimator: Estimator, graph: InteractionGraph, pairs: Pairs) -> np.ndarray:
    if not len(pairs.users):
        return np.zeros(0)
    return estimator._values(graph, pairs, estimator.content())


def _typical_epoch(estimator: Estimator) -> float:
    return float(np.median([row["seconds"] for row in estimator.fitted.history]))


def scores(frame: pl.DataFrame, task: Task) -> dict[str, Any]:
    """The one look at the test part: metrics, and metrics by the user's degree."""
    test = frame.filter(frame["part"] == "test")
    if not test.height:
        return {"test": {}, "by_degree": {}}
    predicted, actual = test["prediction"].to_numpy(), test["actual"].to_numpy()
    found: dict[str, Any] = {
        "test": metrics(predicted, actual, task),
        "by_degree": by_degree(predicted, actual, test["user_degree"].to_numpy(), task),
    }
    if "low" in test.columns:
        inside = test["actual"].is_between(test["low"], test["high"]).to_numpy()
        width = float((test["high"] - test["low"]).to_numpy().mean())
        found["interval"] = {"coverage": float(inside.mean()), "width": width}
    return found


def _metrics(frame: pl.DataFrame, part: str, task: Task) -> dict[str, float]:
    rows = frame.filter(frame["part"] == part)
    return metrics(rows["prediction"].to_numpy(), rows["actual"].to_numpy(), task)
