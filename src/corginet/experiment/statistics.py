"""Means with their errors, t-tests, and the correction for asking many questions at once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

LEVELS = ((0.001, "**"), (0.05, "*"))  # p-values below these get the mark


def mean_and_error(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean, and one standard error of it (none from a single value)."""
    array = np.asarray(values, np.float64)
    if len(array) < 2:
        return float(array.mean()), None
    return float(array.mean()), float(array.std(ddof=1) / math.sqrt(len(array)))


def independent_p(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Two-sided p-value that both have one mean: Welch's t-test, the runs taken as unrelated."""
    from scipy import stats

    if min(len(a), len(b)) < 2:
        return None
    if np.ptp(a) == 0 and np.ptp(b) == 0:
        return 1.0 if a[0] == b[0] else 0.0
    return float(stats.ttest_ind(a, b, equal_var=False).pvalue)


def paired_p(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Two-sided p-value that the differences, seed by seed, have mean 0: the paired t-test."""
    from scipy import stats

    differences = np.asarray(a, np.float64) - np.asarray(b, np.float64)
    if len(differences) < 2:
        return None
    if np.ptp(differences) <= 1e-12 * np.abs(differences).max():
        return 1.0 if differences[0] == 0 else 0.0
    return float(stats.ttest_1samp(differences, 0.0).pvalue)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction; what is missing stays missing and does not count."""
    known = sorted((p, n) for n, p in enumerate(p_values) if p is not None)
    out: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, n) in enumerate(known):
        largest = max(largest, min(1.0, p * (len(known) - rank)))
        out[n] = largest
    return out


def stars(p: float | None) -> str:
    """The paper's marks: * below 0.05, ** below 0.001."""
    return next((mark for level, mark in LEVELS if p is not None and p < level), "")
