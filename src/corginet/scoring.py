"""How good predictions are: metrics, by group of users and items, and intervals' coverage."""

from __future__ import annotations

from typing import Any

import numpy as np

from corginet.data.graph import InteractionGraph
from corginet.data.task import Task
from corginet.models.plain import BiasModel
from corginet.models.values import to_values
from corginet.nn.readout import Pairs
from corginet.training.intervals import bounds, conformal_radius, user_spreads
from corginet.training.metrics import by_degree, by_quadrant, metrics
from corginet.training.trainer import TrainingData, predict_raw

LITTLE = 0.005  # a smaller share of a plain model's loss saved is not worth a network


def grouped(
    predicted: np.ndarray,
    actual: np.ndarray,
    pairs: Pairs,
    graph: InteractionGraph,
    task: Task,
    interval: dict[str, Any] | None,
) -> dict[str, Any]:
    """Metrics overall, by the user's degree, by known or new user and item."""
    degrees = graph.degrees.numpy()
    of_users = degrees[pairs.users.numpy()]
    of_items = degrees[pairs.items.numpy() + graph.n_users]
    actual = actual.astype(np.float64)
    found: dict[str, Any] = {
        "metrics": metrics(predicted, actual, task),
        "by_degree": by_degree(predicted, actual, of_users, task),
        "by_quadrant": by_quadrant(predicted, actual, of_users > 0, of_items > 0, task),
    }
    if interval and len(actual):
        low, high = ends(predicted, pairs, graph, task, interval)
        inside = (low <= actual) & (actual <= high)
        measured = {"coverage": float(inside.mean()), "width": float((high - low).mean())}
        found["interval"] = {**interval, **measured}
    return found


def learn_interval(
    predicted: np.ndarray,
    actual: np.ndarray,
    pairs: Pairs,
    graph: InteractionGraph,
    task: Task,
    level: float,
) -> dict[str, Any] | None:
    """Level and radius, from the validation part; probabilities need none."""
    if task.binary:
        return None
    spreads = user_spreads(graph)[pairs.users.numpy()]
    return {"level": level, "radius": conformal_radius(predicted - actual, spreads, level)}


def ends(
    predicted: np.ndarray,
    pairs: Pairs,
    graph: InteractionGraph,
    task: Task,
    interval: dict[str, Any],
) -> tuple[np.ndarray, np.ndarray]:
    """Low and high end of every pair's interval."""
    spreads = user_spreads(graph)[pairs.users.numpy()]
    return bounds(predicted, spreads, interval["radius"], task)


def plain_alternative(data: TrainingData, found: dict[str, float]) -> dict[str, Any]:
    """What biases alone reach on the validation part, and whether they would do."""
    model = BiasModel(data.task)
    model.fit_closed_form(data)
    raw = predict_raw(model, data.graph, data.validation, data.content)
    predicted = to_values(raw, data.task).double().numpy()
    plain = metrics(predicted, data.validation_targets.double().numpy(), data.task)
    loss = "log_loss" if data.task.binary else "rmse"
    saved = 1 - found[loss] / plain[loss] if plain[loss] else 0.0
    return {"recipe": "bias", "validation": plain, "saved": saved, "would_do": saved < LITTLE}
