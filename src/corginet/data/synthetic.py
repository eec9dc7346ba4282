"""The paper's synthetic data: a user likes an item exactly when it holds the user's focus word."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from corginet.data.dataset import Dataset
from corginet.data.ratings import Ratings
from corginet.data.task import Task
from corginet.data.vocabulary import Vocabulary

WORDS = ("amber", "birch", "cobalt", "dune", "ember")


@dataclass(frozen=True, eq=False)
class Synthetic:
    """The dataset with what made it: which words an item holds, which word a user looks for."""

    dataset: Dataset
    holds: np.ndarray  # bool [item, word]
    focus: np.ndarray  # int [user]


def make_synthetic(
    n_users: int = 1000, n_items: int = 1000, n_edges: int = 100_000, seed: int = 0
) -> Synthetic:
    """Random pairs; value 1 where the item holds the user's focus word, else 0."""
    import polars as pl

    rng = np.random.default_rng(seed)
    holds = rng.random((n_items, len(WORDS))) < 0.5
    focus = rng.integers(len(WORDS), size=n_users)
    pairs = rng.choice(n_users * n_items, size=n_edges, replace=False)
    users, items = pairs // n_items, pairs % n_items
    values = holds[items, focus[users]].astype(np.float64)
    user_ids, item_ids = (
        Vocabulary(pl.Series([f"{letter}{i}" for i in range(n)]))
        for letter, n in (("u", n_users), ("i", n_items))
    )
    task = Task(kind="binary", low=0, high=1)
    ratings = Ratings(users, items, values, user_ids, item_ids, task)
    texts = [" ".join(w for w, has in zip(WORDS, row, strict=True) if has) for row in holds]
    return Synthetic(Dataset(ratings, texts, "synthetic"), holds, focus)
