"""Splits: which ratings are for training, validation and test. Seeded, disjoint, complete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from corginet.config import Config
from corginet.data.ratings import Ratings
from corginet.errors import UserError

PARTS = ("train", "validation", "test")
TRAIN, VALIDATION, TEST = range(3)


class SplitConfig(Config):
    """How ratings are divided."""

    split: Literal["rating", "user", "item", "time"] = Field(
        "rating",
        description="what a part holds: random ratings; all ratings of some users or of some "
        "items, unseen in training; the latest ratings",
    )
    validation_share: float = Field(0.1, gt=0, lt=0.9, description="share for early stopping")
    test_share: float = Field(0.1, ge=0, lt=0.9, description="share scored once, at the end")


@dataclass(frozen=True, eq=False)
class Split:
    """One part number per rating."""

    part: np.ndarray

    def rows(self, part: int) -> np.ndarray:
        return np.flatnonzero(self.part == part)


def make_split(ratings: Ratings, config: SplitConfig, seed: int) -> Split:
    """Divide ratings as configured; a part that would be empty is an error."""
    if config.validation_share + config.test_share >= 0.95:
        raise UserError("validation_share and test_share leave nothing to train on; lower them")
    if config.split == "time":
        if ratings.times is None:
            raise UserError(
                "split 'time' needs a column 'time' in the ratings; add it (--columns "
                "time=YOUR_COLUMN) or use --split rating"
            )
        order = np.argsort(ratings.times, kind="stable")[::-1]  # the latest become test
        part = _cut(order, config)
    else:
        rng = np.random.default_rng(seed)
        group = {"user": ratings.users, "item": ratings.items}.get(config.split)
        if group is None:
            part = _cut(rng.permutation(len(ratings)), config)
        else:
            present = np.unique(group)
            part_of = np.zeros(int(group.max()) + 1, dtype=np.int8)
            part_of[present] = _cut(rng.permutation(len(present)), config)
            part = part_of[group]
    empty = [PARTS[p] for p in (TRAIN, VALIDATION) if not (part == p).any()]
    if empty:
        raise UserError(
            f"{len(ratings)} ratings are too few to split by {config.split}: no {empty[0]} part "
            "would be left; add data or change --validation-share"
        )
    return Split(part)


def _cut(order: np.ndarray, config: SplitConfig) -> np.ndarray:
    """The first of the order become test, the next validation, the rest training."""
    n = len(order)
    n_test = round(n * config.test_share)
    n_validation = max(1, round(n * config.validation_share)) if n > 1 else 0
    part = np.full(n, TRAIN, dtype=np.int8)
    part[order[:n_test]] = TEST
    part[order[n_test : n_test + n_validation]] = VALIDATION
    return part
