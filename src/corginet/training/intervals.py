"""Intervals that hold the true value as often as they say: conformal, on the validation part."""

from __future__ import annotations

import math

import numpy as np
import torch
from pydantic import Field

from corginet.config import Config
from corginet.data.graph import InteractionGraph
from corginet.data.task import Task

PRIOR = 5.0  # values of usual spread that a user's own spread starts from


class IntervalConfig(Config):
    """Intervals around predicted numbers."""

    level: float = Field(
        0.9, gt=0, lt=1, description="share of true values that an interval should hold"
    )


def user_spreads(graph: InteractionGraph) -> np.ndarray:
    """How far each user's observed values lie from the user's mean; the common spread for none."""
    values = graph.values.double()
    zeros = torch.zeros(graph.n_users, dtype=torch.float64)
    degrees = graph.degrees[: graph.n_users].double()
    means = zeros.index_add(0, graph.users, values) / degrees.clamp(min=1)
    squares = (values - means[graph.users]).square()
    usual = float(squares.sum() / max(1.0, float((degrees - 1).clamp(min=0).sum())))
    own = zeros.index_add(0, graph.users, squares)
    spread: np.ndarray = ((own + PRIOR * usual) / (degrees + PRIOR)).sqrt().numpy()
    return np.maximum(spread, 1e-6)


def conformal_radius(errors: np.ndarray, spreads: np.ndarray, level: float) -> float | None:
    """The error in units of the user's spread that enough validation pairs stay below.

    None where there are too few pairs to say: the interval is then the whole range.
    Source: split conformal prediction with normalised scores.
    """
    scores = np.sort(np.abs(errors) / spreads)
    rank = math.ceil((len(scores) + 1) * level)
    return float(scores[rank - 1]) if 1 <= rank <= len(scores) else None


def bounds(
    predicted: np.ndarray, spreads: np.ndarray, radius: float | None, task: Task
) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of each pair's interval, within the range of values."""
    width = (task.high - task.low) if radius is None else radius * spreads
    return task.clip(predicted - width), task.clip(predicted + width)
