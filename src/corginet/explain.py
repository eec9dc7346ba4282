"""Why a prediction is what it is, and a check that the explanation is true of the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from corginet.data.graph import InteractionGraph
from corginet.edits import TextEdits
from corginet.errors import UserError, did_you_mean
from corginet.estimator import Estimator
from corginet.models.inspect import attention_weights
from corginet.models.values import to_values
from corginet.nn.content import Content
from corginet.nn.kindred import closeness
from corginet.nn.readout import Pairs

N_RANDOM = 10  # random removals that the top words are compared with
MAX_NEIGHBOURS = 10
MEANING = (
    "how much further the prediction moves when the top words are taken out than when as many "
    "random words are; above 0 the weights say something true of the model"
)


def explain_pair(
    estimator: Estimator, user: str, item: str, top: int = 3, seed: int = 0
) -> dict[str, Any]:
    """Words with weights, neighbours with what each contributes, and a faithfulness score."""
    u = _row(estimator, "user", user)
    i = _row(estimator, "item", item)
    ask = ask_about(estimator, estimator.content(), u, i)
    slopes = ask.gradients()
    weights, source = word_weights(ask, slopes)
    moved, by_chance = removals(ask, weights, top, seed)
    return {
        "user": user,
        "item": item,
        "prediction": ask.base,
        "source": source,
        "words": named_words(estimator, i, weights, slopes),
        "neighbours": _neighbours(ask, u, i),
        "faithfulness": moved - by_chance,
        "faithfulness_meaning": MEANING,
    }


def ask_about(estimator: Estimator, content: Content, user: int, item: int) -> Asker:
    """The pair's own value, where it is observed, is taken out of the graph."""
    graph = _without(estimator.training_graph(), user, item)
    return Asker(estimator, graph, Pairs(torch.tensor([user]), torch.tensor([item])), content)


class Asker:
    """The pair's prediction, under other graphs and other contents."""

    def __init__(
        self, estimator: Estimator, graph: InteractionGraph, pair: Pairs, content: Content
    ) -> None:
        self.estimator, self.graph, self.pair = estimator, graph, pair
        self.item = int(pair.items[0])
        self.edits = TextEdits(estimator, content, self.item)
        self.content = self.edits.content
        self.base = self(graph, self.content)

    def __call__(self, graph: InteractionGraph, content: Content) -> float:
        return float(self.estimator._values(graph, self.pair, content)[0])

    def without_words(self, words: np.ndarray) -> float:
        """With some of the item's words taken out."""
        return self(self.graph, self.edits.without(words))

    def gradients(self) -> np.ndarray:
        """Per word, the gradient of the prediction at its vector times what sets it apart."""
        if not self.edits.count or not self.estimator.config.model.reads_text:
            return np.zeros(self.edits.count)
        start = self.edits.start
        own = self.content.words.vectors[start : start + self.edits.count].clone()
        own.requires_grad_()
        with torch.enable_grad():
            raw = self.estimator.model(self.graph, self.pair, self.edits.with_own(own))
            if not raw.requires_grad:
                return np.zeros(len(own))
            value = to_values(raw, self.estimator.ratings.task).sum()
            (slopes,) = torch.autograd.grad(value, own, allow_unused=True)
        if slopes is None:
            return np.zeros(len(own))
        apart = own.detach().float() - own.detach().float().mean(0)
        return (slopes.float() * apart).sum(1).double().numpy()


def _row(estimator: Estimator, side: str, wanted: str) -> int:
    import polars as pl

    r = estimator.ratings
    vocabulary = r.user_ids if side == "user" else r.item_ids
    row = int(vocabulary.rows(pl.Series([wanted]))[0])
    if row < 0:
        near = did_you_mean(wanted, vocabulary.ids.head(10_000).to_list())
        raise UserError(f"unknown {side} '{wanted}'{near}; it was not in the training tables")
    return row


def _without(graph: InteractionGraph, user: int, item: int) -> InteractionGraph:
    return graph.keep((graph.users != user) | (graph.items != item))


def word_weights(ask: Asker, slopes: np.ndarray) -> tuple[np.ndarray, str]:
    """Attention at the last place where the model attends, else the sizes of the gradients.

    A model that reads nothing but stems has no gradients: there, what removing a word changes.
    """
    count = ask.edits.count
    found = attention_weights(ask.estimator.model, ask.graph, ask.pair, ask.content)
    if found:
        place, table = list(found.items())[-1]
        return table[0, :count].double().numpy(), f"attention at {place}"
    if not count:
        return np.zeros(0), "no words: this recipe reads no text, or the item has none"
    sizes, source = np.abs(slopes), "gradient at the word's vector"
    if not sizes.any():
        sizes = np.array([abs(ask.without_words(np.array([k])) - ask.base) for k in range(count)])
        source = "change when the word is taken out"
    return sizes / max(sizes.sum(), 1e-12), source


def removals(ask: Asker, weights: np.ndarray, top: int, seed: int) -> tuple[float, float]:
    """How far the prediction moves without the top words, and without as many random ones."""
    count = len(weights)
    top = min(top, count - 1)
    if top < 1:
        return 0.0, 0.0
    leading = np.argsort(-weights, kind="stable")[:top]
    moved = abs(ask.without_words(leading) - ask.base)
    rng = np.random.default_rng(seed)
    draws = [rng.choice(count, top, replace=False) for _ in range(N_RANDOM)]
    return moved, float(np.mean([abs(ask.without_words(d) - ask.base) for d in draws]))


def named_words(
    estimator: Estimator, item: int, weights: np.ndarray, slopes: np.ndarray | None = None
) -> list[dict[str, Any]]:
    """Weights (and gradients) under the words as written; pieces of one word are put together."""
    if estimator.reader.store is None or not len(weights):
        return []
    text = estimator.texts[item]
    (encoded,) = estimator.reader.store.read([text])
    out: list[dict[str, Any]] = []
    gradients = np.zeros(len(weights)) if slopes is None else slopes
    rows = zip(encoded.spans.tolist(), weights.tolist(), gradients.tolist(), strict=True)
    for (start, end), weight, gradient in rows:
        glued = out and start == out[-1]["end"] and text[start:end].isalnum()
        if glued and out[-1]["word"][-1:].isalnum():
            out[-1]["word"] += text[start:end]
            out[-1]["end"] = end
            out[-1]["weight"] += weight
            out[-1]["gradient"] += gradient
        else:
            place = {"start": start, "end": end}
            out.append({"word": text[start:end], "weight": weight, "gradient": gradient} | place)
    return out


def _neighbours(ask: Asker, user: int, item: int) -> list[dict[str, Any]]:
    """The ratings of either side that have most to tell, by how far the prediction moves without
    each."""
    graph, r = ask.graph, ask.estimator.ratings
    close = closeness(graph, ask.pair, ask.content)
    rows: list[dict[str, Any]] = []
    for kind, mine in (
        ("user's rating of", graph.users == user),
        ("item's rating by", graph.items == item),
    ):
        edges = torch.nonzero(mine).flatten()
        edges = edges[torch.argsort(-close[edges], stable=True)]
        for edge in edges[:MAX_NEIGHBOURS].tolist():
            keep = torch.ones(len(graph), dtype=torch.bool)
            keep[edge] = False
            other = int(graph.items[edge] if kind.startswith("user") else graph.users[edge])
            ids = r.item_ids if kind.startswith("user") else r.user_ids
            effect = ask(graph.keep(keep), ask.content) - ask.base
            value = float(graph.values[edge])
            rows.append({"kind": kind, "id": ids.ids[other], "value": value, "effect": effect})
    return sorted(rows, key=lambda row: -abs(row["effect"]))[:MAX_NEIGHBOURS]
