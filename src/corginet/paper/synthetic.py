"""The paper's synthetic experiment: can a model see what the user's focus word does?"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from corginet.data.splits import TEST
from corginet.data.synthetic import WORDS, Synthetic, make_synthetic
from corginet.estimator import Estimator
from corginet.experiment.settings import settings_for
from corginet.models.graph_model import GraphModel
from corginet.models.inspect import attention_weights
from corginet.nn.content import Content
from corginet.nn.readout import Pairs
from corginet.text.onehot import OneHotEncoder
from corginet.text.store import ContentStore

SETTINGS: dict[str, Any] = {
    "channels": 64,
    "hidden": 64,
    "hidden_share": 0.8,
    "validate_every": 5,
    "good_enough": 0.01,
    "epochs": 300,
    "patience": 100,
    "learning_rate": 0.01,
    "dropout": 0.0,
}
READING: dict[str, Any] = {"values": "hidden", "states": "trainable", "score": None}


@dataclass(frozen=True)
class Row:
    """One model of the experiment."""

    name: str
    label: str
    recipe: str
    settings: dict[str, Any]


ROWS = (
    Row(
        "gcn_text",
        "GCN, items start from their words",
        "gcn+average",
        {"values": "hidden", "states": "trainable"},
    ),
    Row("corgi_co", "CoRGi, additive", "corgi-co", {"values": "hidden", "states": "trainable"}),
    Row(
        "corgi_dp",
        "CoRGi, dot-product",
        "corgi-dp",
        {"values": "hidden", "states": "trainable", "channels": 32, "learning_rate": 0.02},
    ),
    Row(
        "corgi_co_random",
        "CoRGi, additive, fixed random states",
        "corgi-co",
        {"values": "hidden", "states": "random", "epochs": 60},
    ),
    Row(
        "corgi_dp_random",
        "CoRGi, dot-product, fixed random states",
        "corgi-dp",
        {"values": "hidden", "states": "random", "epochs": 60},
    ),
    Row(
        "corgi_read",
        "CoRGi, dot-product at the readout alone",
        "corgi-read",
        READING | {"hidden_share": 0.5, "learning_rate": 0.02},
    ),
    Row(
        "corgi_read_dynamic",
        "CoRGi, dynamic at the readout alone",
        "corgi-read",
        READING | {"pair_score": "dynamic"},
    ),
    Row("gcn_labels", "GCN, edge values are an input", "gcn", {"states": "trainable"}),
)


@dataclass(frozen=True, eq=False)
class Outcome:
    """A fitted model of the experiment, with what was measured on it."""

    row: Row
    estimator: Estimator
    accuracy: float
    seconds: float
    focus: dict[str, float]  # place → share of pairs whose largest weight is the focus word


def run_synthetic(
    folder: Path,
    seed: int = 0,
    size: tuple[int, int, int] = (1000, 1000, 100_000),
    rows: tuple[Row, ...] = ROWS,
    tell: Callable[[Row], None] = lambda _: None,
    **overrides: Any,
) -> tuple[Synthetic, list[Outcome]]:
    """Fit every row on the same data and split, one process of one thread per core.

    The words' store and the runs go into `folder`.
    """
    data = make_synthetic(*size, seed=seed)
    one_hot_store(data, folder / "content")
    fit = partial(_fit, folder, seed, size, overrides)
    found: dict[str, tuple[float, float]] = {}
    longest_first = sorted(rows, key=lambda row: "epochs" in row.settings)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(len(rows), os.cpu_count() or 1), spawn) as pool:
        running = {pool.submit(fit, row): row for row in longest_first}
        for done in as_completed(running):
            found[running[done].name] = done.result()
            tell(running[done])
    outcomes = []
    for row in rows:
        estimator = Estimator.load(folder / row.name)
        outcomes.append(Outcome(row, estimator, *found[row.name], focus_shares(estimator, data)))
    return data, outcomes


def _fit(
    folder: Path, seed: int, size: tuple[int, int, int], overrides: dict[str, Any], row: Row
) -> tuple[float, float]:
    """Fit one row and save it; answers its accuracy and seconds."""
    torch.set_num_threads(1)
    data = make_synthetic(*size, seed=seed)
    settings = {**SETTINGS, **row.settings, **overrides, "seed": seed}
    estimator = Estimator(row.recipe, **settings_for(row.recipe, settings))
    estimator.fit(data.dataset, store=ContentStore.open(folder / "content"))
    estimator.save(folder / row.name)
    report = estimator.report
    return report["metrics"]["accuracy"], report["seconds"]


def one_hot_store(data: Synthetic, folder: Path) -> ContentStore:
    """The five words as one-hot vectors."""
    encoder = OneHotEncoder(WORDS)
    store = ContentStore.create(folder, encoder.dim, "fp32", encoder.fingerprint())
    store.add(data.dataset.texts, encoder)
    return store


def test_pairs_with_focus(estimator: Estimator, data: Synthetic) -> Pairs:
    """The test pairs whose item holds the user's focus word."""
    rows = estimator.split.rows(TEST)
    rows = rows[data.dataset.ratings.values[rows] == 1]
    r = data.dataset.ratings
    return Pairs(torch.from_numpy(r.users[rows]), torch.from_numpy(r.items[rows]))


def focus_shares(estimator: Estimator, data: Synthetic) -> dict[str, float]:
    """Per place of attention, how often the largest weight falls on the focus word."""
    pairs = test_pairs_with_focus(estimator, data)
    content = estimator.content()
    found = attention_weights(estimator.model, estimator.training_graph(), pairs, content)
    if not found:
        return {}
    wanted = torch.from_numpy(data.focus)[pairs.users]
    words = word_numbers(content, pairs)
    shares = {}
    for place, weights in found.items():
        top = weights.argmax(1, keepdim=True)
        shares[place] = float((words.gather(1, top)[:, 0] == wanted).float().mean())
    return shares


def chance(data: Synthetic, estimator: Estimator) -> float:
    """The share that falls on the focus word when any of the item's words is drawn."""
    pairs = test_pairs_with_focus(estimator, data)
    return float((1 / data.holds.sum(1)[pairs.items.numpy()]).mean())


def word_numbers(content: Content, pairs: Pairs) -> torch.Tensor:
    """Which vocabulary word each padded word of each pair's item is."""
    rows, real = content.words.of(pairs.items)
    return content.words.vectors[rows].argmax(-1).masked_fill(~real, -1)


def example_pairs(estimator: Estimator, data: Synthetic) -> dict[str, tuple[int, int]]:
    """Two test pairs of items with four words: one with the user's focus word, one without."""
    r = data.dataset.ratings
    rows = estimator.split.rows(TEST)
    four = rows[data.holds.sum(1)[r.items[rows]] == 4]
    if not len(four):
        four = rows[data.holds.sum(1)[r.items[rows]] > 0]
    out = {}
    for name, value in (("with", 1.0), ("without", 0.0)):
        row = four[r.values[four] == value][0]
        out[name] = (int(r.users[row]), int(r.items[row]))
    return out


def node_maps(estimator: Estimator, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """t-SNE of the final states of items and of users."""
    from sklearn.manifold import TSNE

    graph, content = estimator.training_graph(), estimator.content()
    with torch.no_grad():
        assert isinstance(estimator.model, GraphModel)
        states = estimator.model.node_states(graph, content).numpy()
    perplexity = min(30, (min(graph.n_users, graph.n_items) - 1) // 3)
    maps = [
        TSNE(random_state=seed, perplexity=perplexity, init="pca").fit_transform(part)
        for part in (states[graph.n_users :], states[: graph.n_users])
    ]
    return maps[0], maps[1]
