"""Which ratings a cell trains on, stops on, is given when asked, and is asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from corginet.data.dataset import Dataset
from corginet.data.splits import TEST, TRAIN, VALIDATION, Split, make_split
from corginet.errors import UserError, plural
from corginet.experiment.contenders import Cell

WITHHELD = 3  # the part number of ratings that the fit does not get to see in any part
MOST_GIVEN = 10  # values of an unseen user that are observed when the others are asked


@dataclass(frozen=True, eq=False)
class Division:
    """The split that training sees, and the rows of what it does not."""

    split: Split
    given: np.ndarray
    asked: np.ndarray

    @property
    def counts(self) -> dict[str, int]:
        return {
            "train": len(self.split.rows(TRAIN)),
            "validation": len(self.split.rows(VALIDATION)),
            "test": len(self.asked),
            **({"given": len(self.given)} if len(self.given) else {}),
        }


def divide(dataset: Dataset, cell: Cell) -> Division:
    """By seed alone, so that every contender gets the same."""
    if cell.contender.held_out:
        return _hold_out_users(dataset, cell)
    part = make_split(dataset.ratings, cell.config.split, cell.seed).part.copy()
    asked = np.flatnonzero(part == TEST)
    part[asked] = WITHHELD
    return Division(Split(part), np.zeros(0, np.int64), asked)


def _hold_out_users(dataset: Dataset, cell: Cell) -> Division:
    """A share of the users is unseen in training.

    Half of an unseen user's values, at most ten, are given when the others are asked. Of the
    seen users' values, the split's validation share is for early stopping.
    """
    r, rng = dataset.ratings, np.random.default_rng(cell.seed)
    present = np.unique(r.users)
    n_unseen = min(round(len(present) * cell.contender.held_out), len(present) - 1)
    unseen = np.isin(r.users, rng.permutation(present)[:n_unseen])
    part = np.full(len(r), TRAIN, np.int8)
    part[unseen] = WITHHELD
    seen = rng.permutation(np.flatnonzero(~unseen))
    n_validation = max(1, round(len(seen) * cell.config.split.validation_share))
    part[seen[:n_validation]] = VALIDATION
    if n_validation >= len(seen):
        raise UserError(
            f"holding {cell.contender.held_out:g} of the users out leaves "
            f"{plural(len(seen), 'rating')} to train and stop on; give more ratings"
        )
    given = _few_of_each(r.users, rng.permutation(np.flatnonzero(unseen)))
    asked = np.setdiff1d(np.flatnonzero(unseen), given)
    return Division(Split(part), given, asked)


def _few_of_each(users: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The first half of each user's rows, ten at most."""
    rows = rows[np.argsort(users[rows], kind="stable")]
    _, starts, counts = np.unique(users[rows], return_index=True, return_counts=True)
    place = np.arange(len(rows)) - np.repeat(starts, counts)
    few = np.minimum(counts // 2, MOST_GIVEN)
    return np.sort(rows[place < np.repeat(few, counts)])
