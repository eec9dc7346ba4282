"""What preparing a dataset yields: two tables, the counts on the way, the paper's beside ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

Progress = Callable[[int, int, str], None]  # done, total, note

PAPER: dict[str, dict[str, float]] = {
    "goodreads": {
        "users": 2243,
        "items": 2452,
        "edges": 114_839,
        "edges_per_user": 51,
        "edges_per_item": 47,
        "vocabulary": 35_111,
        "words_per_item": 132.32,
        "density": 0.021,
        "labels": 5,
    },
    "eedi": {
        "users": 35_073,
        "items": 22_931,
        "edges": 991_740,
        "edges_per_user": 28,
        "edges_per_item": 43,
        "vocabulary": 21_072,
        "words_per_item": 20.02,
        "density": 0.001,
        "labels": 2,
    },
}


@dataclass
class Prepared:
    """Ratings (user, item, value), items (item, text, title), and how they came about."""

    dataset: str
    ratings: pl.DataFrame
    items: pl.DataFrame
    steps: list[dict[str, Any]] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)

    def report(self) -> dict[str, Any]:
        """The counts after each step, and Table 1's row in the paper and here."""
        return {
            "dataset": self.dataset,
            "steps": self.steps,
            "counts": statistics(self.ratings, self.items),
            "paper": PAPER[self.dataset],
            "notes": self.notes,
        }

    def write(self, folder: Path) -> None:
        self.ratings.write_parquet(folder / "ratings.parquet")
        self.items.write_parquet(folder / "items.parquet")


def count_step(
    name: str, ratings: pl.DataFrame, user: str = "user", item: str = "item"
) -> dict[str, Any]:
    """Users, items and ratings that are left after a step."""
    return {
        "step": name,
        "users": ratings[user].n_unique(),
        "items": ratings[item].n_unique(),
        "ratings": ratings.height,
    }


def statistics(ratings: pl.DataFrame, items: pl.DataFrame) -> dict[str, float]:
    """The columns of the paper's Table 1; a word is a run of letters and digits, in lower case."""
    import polars as pl

    words = items["text"].str.to_lowercase().str.extract_all(r"\w+")
    users, n_items, edges = ratings["user"].n_unique(), items.height, ratings.height
    return {
        "users": users,
        "items": n_items,
        "edges": edges,
        "edges_per_user": edges / users,
        "edges_per_item": edges / n_items,
        "vocabulary": words.explode().drop_nulls().n_unique(),
        "words_per_item": float(words.list.len().cast(pl.Float64).sum()) / n_items,
        "density": edges / (users * n_items),
        "labels": ratings["value"].n_unique(),
    }
