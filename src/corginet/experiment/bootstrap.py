"""Paired bootstrap over users: would the difference stand if other users had been asked?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import polars as pl

DRAWS = 2000
DRAWS_AT_ONCE = 100
Frames = Sequence["pl.DataFrame"]  # test predictions, one frame per seed


def _log_loss(predicted: np.ndarray, actual: np.ndarray) -> np.ndarray:
    safe = np.clip(predicted, 1e-7, 1 - 1e-7)
    return -np.where(actual == 1, np.log(safe), np.log(1 - safe))


# per metric: the number of each pair, and what is made of their mean
PER_PAIR: dict[str, tuple[Callable[[np.ndarray, np.ndarray], np.ndarray], bool]] = {
    "rmse": (lambda p, y: (p - y) ** 2, True),
    "mae": (lambda p, y: np.abs(p - y), False),
    "log_loss": (_log_loss, False),
    "accuracy": (lambda p, y: ((p >= 0.5) == (y == 1)).astype(float), False),
}


class Resampled(NamedTuple):
    """A contender's metric in every draw of users, and on the users as they are."""

    draws: np.ndarray
    observed: float


class Difference(NamedTuple):
    """The first minus the second, with a 95% interval of the draws and a two-sided p-value.

    The p-value is the normal one for the draws' spread: counted draws could not go below one
    in their number, which a correction for many pairs would turn into nothing.
    """

    observed: float
    low: float
    high: float
    p: float


def resample(frames: Mapping[str, Frames], metric: str, seed: int = 0) -> dict[str, Resampled]:
    """Draw users with replacement, the same ones for every contender.

    All seeds' pairs of a drawn user come along; the metric is over all of them.
    """
    numbers, root = PER_PAIR[metric]
    users = sorted({u for per_seed in frames.values() for f in per_seed for u in f["user"]})
    row_of = {user: row for row, user in enumerate(users)}
    totals = np.zeros((len(users), len(frames)))
    counts = np.zeros_like(totals)
    for column, per_seed in enumerate(frames.values()):
        for frame in per_seed:
            rows = np.array([row_of[u] for u in frame["user"]], np.int64)
            found = numbers(frame["prediction"].to_numpy(), frame["actual"].to_numpy())
            totals[:, column] += np.bincount(rows, found, minlength=len(users))
            counts[:, column] += np.bincount(rows, minlength=len(users))
    rng, drawn = np.random.default_rng(seed), []
    for _ in range(0, DRAWS, DRAWS_AT_ONCE):
        chances = np.full(len(users), 1 / max(1, len(users)))
        weights = rng.multinomial(len(users), chances, DRAWS_AT_ONCE).astype(np.float64)
        drawn.append((weights @ totals) / np.maximum(weights @ counts, 1))
    means = np.concatenate(drawn)
    observed = totals.sum(0) / np.maximum(counts.sum(0), 1)
    if root:
        means, observed = np.sqrt(means), np.sqrt(observed)
    return {n: Resampled(means[:, c], float(observed[c])) for c, n in enumerate(frames)}


def difference(a: Resampled, b: Resampled) -> Difference:
    """What the draws say about a − b."""
    differences = a.draws - b.draws
    low, high = np.percentile(differences, [2.5, 97.5])
    observed, spread = a.observed - b.observed, float(differences.std())
    if spread > 0:
        p = math.erfc(abs(observed) / spread / math.sqrt(2))
    else:
        p = 1.0 if observed == 0 else 0.0
    return Difference(observed, float(low), float(high), p)
