"""Metrics against hand-worked numbers."""

from __future__ import annotations

import numpy as np
import pytest

from corginet.data.task import Task
from corginet.training.metrics import by_degree, by_quadrant, calibration_error, metrics

BINARY = Task(kind="binary", low=0, high=1)
STARS = Task(kind="rating", low=1, high=5)


def test_real_values() -> None:
    found = metrics(np.array([1.0, 2, 5]), np.array([1.0, 4, 4]), STARS)
    assert found == {"n": 3, "rmse": pytest.approx((5 / 3) ** 0.5), "mae": pytest.approx(1.0)}


def test_binary_values() -> None:
    found = metrics(np.array([0.9, 0.2, 0.6, 0.4]), np.array([1.0, 0, 0, 1]), BINARY)
    assert found["accuracy"] == 0.5
    assert found["auroc"] == 0.75
    assert found["log_loss"] == pytest.approx(-np.log([0.9, 0.8, 0.4, 0.4]).mean())
    only_ones = metrics(np.array([0.9]), np.array([1.0]), BINARY)
    assert "auroc" not in only_ones


def test_calibration() -> None:
    half = np.full(100, 0.5)
    assert calibration_error(half, np.repeat([0.0, 1.0], 50)) == 0
    assert calibration_error(half, np.ones(100)) == 0.5


def test_groups() -> None:
    predicted, actual = np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 3, 5])
    degrees = np.array([0, 10, 11, 200])
    found = by_degree(predicted, actual, degrees, STARS)
    assert found["D<=10"]["n"] == found["D>10"]["n"] == 2
    assert found["101+"]["rmse"] == 1
    assert found["0"]["n"] == found["6-10"]["n"] == found["11-20"]["n"] == 1
    quadrants = by_quadrant(
        predicted, actual, np.array([1, 1, 0, 0]) > 0, np.array([1, 0, 1, 0]) > 0, STARS
    )
    assert [q["n"] for q in quadrants.values()] == [1, 1, 1, 1]
    assert quadrants["new_user_new_item"]["rmse"] == 1
