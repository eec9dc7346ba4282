"""Metrics: overall, by user degree, and by known or new user and item."""

from __future__ import annotations

import numpy as np

from corginet.data.task import Task

DEGREE_BINS = (0, 1, 3, 6, 11, 21, 51, 101)
N_CALIBRATION_BINS = 15


def metrics(predicted: np.ndarray, actual: np.ndarray, task: Task) -> dict[str, float]:
    """Every metric that applies; ranking metrics need both outcomes."""
    if not len(actual):
        return {"n": 0}
    if not task.binary:
        error = predicted - actual
        return {
            "n": len(actual),
            "rmse": float(np.sqrt((error**2).mean())),
            "mae": float(np.abs(error).mean()),
        }
    safe = np.clip(predicted, 1e-7, 1 - 1e-7)
    out = {
        "n": len(actual),
        "accuracy": float(((predicted >= 0.5) == (actual == 1)).mean()),
        "log_loss": float(-(np.where(actual == 1, np.log(safe), np.log(1 - safe))).mean()),
        "ece": calibration_error(predicted, actual),
        "rmse": float(np.sqrt(((predicted - actual) ** 2).mean())),
        "mae": float(np.abs(predicted - actual).mean()),
    }
    if 0 < actual.sum() < len(actual):
        from sklearn.metrics import average_precision_score, roc_auc_score

        out["auroc"] = float(roc_auc_score(actual, predicted))
        out["aupr"] = float(average_precision_score(actual, predicted))
    return out


def calibration_error(predicted: np.ndarray, actual: np.ndarray) -> float:
    """How far stated probabilities lie from observed shares, averaged over 15 equal bins."""
    bins = np.minimum((predicted * N_CALIBRATION_BINS).astype(int), N_CALIBRATION_BINS - 1)
    sums = np.bincount(bins, weights=predicted - actual, minlength=N_CALIBRATION_BINS)
    return float(np.abs(sums).sum() / len(actual))


def by_degree(
    predicted: np.ndarray, actual: np.ndarray, degrees: np.ndarray, task: Task
) -> dict[str, dict[str, float]]:
    """Metrics of the paper's two groups of users, then of finer ones."""
    out = {
        "D<=10": metrics(predicted[degrees <= 10], actual[degrees <= 10], task),
        "D>10": metrics(predicted[degrees > 10], actual[degrees > 10], task),
    }
    for low, high in zip(DEGREE_BINS, [*DEGREE_BINS[1:], None], strict=True):
        inside = (degrees >= low) & (degrees < (high or np.inf))
        name = f"{low}+" if high is None else str(low) if high == low + 1 else f"{low}-{high - 1}"
        if inside.any():
            out[name] = metrics(predicted[inside], actual[inside], task)
    return out


def by_quadrant(
    predicted: np.ndarray,
    actual: np.ndarray,
    known_user: np.ndarray,
    known_item: np.ndarray,
    task: Task,
) -> dict[str, dict[str, float]]:
    """Metrics of known/new user × known/new item; known means: has a training rating."""
    out = {}
    for user, u in (("known", known_user), ("new", ~known_user)):
        for item, i in (("known", known_item), ("new", ~known_item)):
            out[f"{user}_user_{item}_item"] = metrics(predicted[u & i], actual[u & i], task)
    return out
