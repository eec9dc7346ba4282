"""The attention figure: what users with right and with wrong answers read in one item."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
import torch

from corginet.errors import UserError
from corginet.estimator import Estimator
from corginet.explain import named_words
from corginet.models.inspect import attention_weights
from corginet.nn.readout import Pairs
from corginet.paper.plots import CYCLE, finish
from corginet.paper.request import Findings, Request
from corginet.report.table import Cell, Table

matplotlib.use("Agg")
import matplotlib.pyplot as plt

RECIPE = "corgi-dp"
FEWEST_WORDS = 3


def attention(request: Request) -> Findings:
    """Average weights of both groups of users on the words of the item that most of both met."""
    results = request.run([request.contender(RECIPE)], keep_runs=True)
    estimator = Estimator.load(results.run_folder(results.rows[0]))
    item, right, wrong = _item(estimator)
    place, words = _average_weights(estimator, item, right)
    _, others = _average_weights(estimator, item, wrong)
    names = _groups(request)
    records = [
        {"word": a["word"], names[0]: a["weight"], names[1]: b["weight"]}
        for a, b in zip(words, others, strict=True)
    ]
    rows = [[r["word"], *(Cell(r[name]) for name in names)] for r in records]
    item_id = estimator.ratings.item_ids.ids[item]
    notes = [
        f"Item '{item_id}': {estimator.texts[item][:200]}",
        f"{len(right)} users with {names[0]}, {len(wrong)} with {names[1]}; attention at {place}. "
        "Pieces of one word are added up; special tokens such as [CLS] are no words here.",
    ]
    figure = _plot(records, names)
    table = Table(
        f"Attention on one item: {request.dataset.name}", ["word", *names], rows, notes, records
    )
    about = {"item": item_id, "place": place, "users": [len(right), len(wrong)]}
    return Findings("attention", [table], {"attention": figure}, about)


def _groups(request: Request) -> tuple[str, str]:
    if request.kind == "binary":
        return "answer 1", "answer 0"
    return "a rating above its mean", "a rating below its mean"


def _item(estimator: Estimator) -> tuple[int, np.ndarray, np.ndarray]:
    """The item with the most users on the smaller side, and the users of both sides."""
    r, counts = estimator.ratings, estimator.content().words.counts.numpy()
    n = np.bincount(r.items, minlength=r.n_items)
    mean = np.bincount(r.items, r.values, r.n_items) / np.maximum(n, 1)
    above, below = r.values > mean[r.items], r.values < mean[r.items]
    sides = [np.bincount(r.items[side], minlength=r.n_items) for side in (above, below)]
    smaller = np.where(counts >= FEWEST_WORDS, np.minimum(*sides), -1)
    item = int(smaller.argmax())
    if smaller[item] < 1:
        raise UserError(
            f"no item with {FEWEST_WORDS} words or more has values on both sides of its mean; "
            "paper attention needs one"
        )
    return item, r.users[above & (r.items == item)], r.users[below & (r.items == item)]


def _average_weights(
    estimator: Estimator, item: int, users: np.ndarray
) -> tuple[str, list[dict[str, Any]]]:
    pairs = Pairs(torch.from_numpy(users), torch.full((len(users),), item))
    found = attention_weights(
        estimator.model, estimator.training_graph(), pairs, estimator.content()
    )
    place, table = list(found.items())[-1]
    count = int(estimator.content().words.counts[item])
    weights = table[:, :count].double().mean(0).numpy()
    return place, named_words(estimator, item, weights)


def _plot(records: list[dict[str, Any]], names: tuple[str, str]) -> Any:
    figure, axes = plt.subplots(figsize=(max(6.0, 0.28 * len(records)), 3.6))
    places = range(len(records))
    for name, colour, marker in zip(names, (CYCLE[1], CYCLE[2]), ("o", "x"), strict=True):
        axes.plot(places, [r[name] for r in records], color=colour, marker=marker, label=name)
    axes.set_xticks(places, [r["word"] for r in records], rotation=60, ha="right", fontsize=8)
    axes.set_ylim(bottom=0)
    finish(axes, "", "average attention weight")
    return figure
