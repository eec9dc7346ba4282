"""Small data whose sizes all differ (5 users, 4 items, 3 words), so that a swapped axis fails."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
# a content cache of this process's own, before any fixture runs
os.environ["CORGINET_CACHE"] = tempfile.mkdtemp(prefix="corginet-cache-")

from jaxtyping import install_import_hook

# shapes in signatures are checked while tests run
install_import_hook(["corginet.nn"], "beartype.beartype")

import numpy as np  # noqa: E402
import polars as pl  # noqa: E402
import torch  # noqa: E402

from corginet.data.dataset import Dataset  # noqa: E402

torch.set_num_threads(1)

WORDS = ["red", "blue", "green", "old", "new", "fast", "slow", "bright", "dim"]


def pytest_sessionfinish() -> None:
    shutil.rmtree(os.environ["CORGINET_CACHE"], ignore_errors=True)


def make_tables(
    n_users: int = 24, n_items: int = 18, n: int = 200, binary: bool = False, seed: int = 0
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Random ratings, and a text of a few words for each item; the last item has none."""
    rng = np.random.default_rng(seed)
    pairs = rng.choice(n_users * n_items, n, replace=False)
    users, items = pairs // n_items, pairs % n_items
    taste = rng.normal(size=n_users)[users] + rng.normal(size=n_items)[items]
    values = (taste > 0).astype(float) if binary else np.clip(np.round(3 + taste), 1, 5)
    texts = [" ".join(rng.choice(WORDS, rng.integers(1, 7))) for _ in range(n_items - 1)] + [""]
    ratings = pl.DataFrame(
        {"user": [f"u{x}" for x in users], "item": [f"i{x}" for x in items], "value": values}
    )
    return ratings, pl.DataFrame({"item": [f"i{x}" for x in range(n_items)], "text": texts})


@pytest.fixture
def tables() -> tuple[pl.DataFrame, pl.DataFrame]:
    return make_tables()


@pytest.fixture
def dataset() -> Dataset:
    return Dataset.read(*make_tables(), missing_text="allow")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """The tables as csv files."""
    ratings, items = make_tables()
    ratings.write_csv(tmp_path / "ratings.csv")
    items.write_csv(tmp_path / "items.csv")
    return tmp_path / "ratings.csv", tmp_path / "items.csv"


def in_this_process(
    work: Callable[[Any], dict[str, Any]],
    jobs: Sequence[Any],
    n_processes: int,
    finished: Callable[[Any, dict[str, Any]], None],
) -> None:
    """What the experiment engine's workers do, without their processes."""
    for job in jobs:
        finished(job, work(job))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Experiments run in the test's own process: a fresh one takes seconds to start."""
    from corginet.experiment import engine

    monkeypatch.setattr(engine, "run_each", in_this_process)
