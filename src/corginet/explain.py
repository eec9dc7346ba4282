"""Why a prediction is what it is, and a check that the explanation is true of the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from corginet.data.graph import InteractionGraph
from corginet.errors import UserError, did_you_mean
from corginet.estimator import Estimator
from corginet.models.inspect import attention_weights
from corginet.nn.content import Content
from corginet.nn.readout import Pairs
from corginet.nn.words import Words

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
    graph = _without(estimator.training_graph(), u, i)
    content = estimator.content()
    pair = Pairs(torch.tensor([u]), torch.tensor([i]))
    ask = _Asker(estimator, graph, pair, content)
    weights, source = _word_weights(ask, i)
    gap = _faithfulness(ask, i, weights, top, seed)
    return {
        "user": user,
        "item": item,
        "prediction": ask(graph, content),
        "source": source,
        "words": named_words(estimator, i, weights),
        "neighbours": _neighbours(ask, u, i),
        "faithfulness": gap,
        "faithfulness_meaning": MEANING,
    }


class _Asker:
    """The pair's prediction, under other graphs and other contents."""

    def __init__(
        self, estimator: Estimator, graph: InteractionGraph, pair: Pairs, content: Content
    ) -> None:
        self.estimator, self.graph, self.pair, self.content = estimator, graph, pair, content

    def __call__(self, graph: InteractionGraph, content: Content) -> float:
        return float(self.estimator._values(graph, self.pair, content)[0])

    def without_words(self, item: int, words: np.ndarray) -> float:
        """With some of the item's words taken out."""
        return self(self.graph, remove_words(self.content, item, words))


def remove_words(content: Content, item: int, words: np.ndarray) -> Content:
    """The content with some of one item's words gone; its average is that of the rest."""
    start, count = int(content.words.starts[item]), int(content.words.counts[item])
    left = np.setdiff1d(np.arange(count), words) + start
    kept = content.words.vectors[torch.from_numpy(left)]
    starts, counts = content.words.starts.clone(), content.words.counts.clone()
    starts[item], counts[item] = len(content.words.vectors), len(left)
    vectors = torch.cat([content.words.vectors, kept])
    summaries = {}
    for kind, table in content.summaries.items():
        summaries[kind] = table.clone()
        # the words kept may be fewer than the text has: shift by what the removal changes
        before = content.words.vectors[start : start + count].float().mean(0)
        after = kept.float().mean(0) if len(left) else torch.zeros_like(before)
        if before.shape == table[item].shape:
            summaries[kind][item] += (after - before).to(table.dtype)
    return Content(Words(vectors, starts, counts), summaries)


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


def _word_weights(ask: _Asker, item: int) -> tuple[np.ndarray, str]:
    """Attention at the last place where the model attends; else what removing a word changes."""
    count = int(ask.content.words.counts[item])
    found = attention_weights(ask.estimator.model, ask.graph, ask.pair, ask.content)
    if found:
        place, table = list(found.items())[-1]
        return table[0, :count].double().numpy(), f"attention at {place}"
    if not count:
        return np.zeros(0), "no words: this recipe reads no text, or the item has none"
    base = ask(ask.graph, ask.content)
    change = [abs(ask.without_words(item, np.array([k])) - base) for k in range(count)]
    return np.array(change) / max(sum(change), 1e-12), "change when the word is taken out"


def _faithfulness(ask: _Asker, item: int, weights: np.ndarray, top: int, seed: int) -> float:
    count = len(weights)
    top = min(top, count - 1)
    if top < 1:
        return 0.0
    base = ask(ask.graph, ask.content)
    leading = np.argsort(-weights, kind="stable")[:top]
    moved = abs(ask.without_words(item, leading) - base)
    rng = np.random.default_rng(seed)
    draws = [rng.choice(count, top, replace=False) for _ in range(N_RANDOM)]
    return moved - float(np.mean([abs(ask.without_words(item, d) - base) for d in draws]))


def named_words(estimator: Estimator, item: int, weights: np.ndarray) -> list[dict[str, Any]]:
    """Weights under the words as written; pieces of one word are put together."""
    if estimator.store is None or not len(weights):
        return []
    text = estimator.texts[item]
    (encoded,) = estimator.store.read([text])
    out: list[dict[str, Any]] = []
    for (start, end), weight in zip(encoded.spans.tolist(), weights.tolist(), strict=True):
        glued = out and start == out[-1]["end"] and text[start:end].isalnum()
        if glued and out[-1]["word"][-1:].isalnum():
            out[-1]["word"] += text[start:end]
            out[-1]["end"] = end
            out[-1]["weight"] += weight
        else:
            row = {"word": text[start:end], "weight": weight, "start": start, "end": end}
            out.append(row)
    return out


def _neighbours(ask: _Asker, user: int, item: int) -> list[dict[str, Any]]:
    """The ratings next to the pair whose absence would move the prediction most."""
    graph, r = ask.graph, ask.estimator.ratings
    base = ask(graph, ask.content)
    rows: list[dict[str, Any]] = []
    sides: list[tuple[str, Tensor]] = [
        ("user's rating of", torch.nonzero(graph.users == user).flatten()),
        ("item's rating by", torch.nonzero(graph.items == item).flatten()),
    ]
    for kind, edges in sides:
        for edge in edges[:MAX_NEIGHBOURS].tolist():
            keep = torch.ones(len(graph), dtype=torch.bool)
            keep[edge] = False
            other = int(graph.items[edge] if kind.startswith("user") else graph.users[edge])
            ids = r.item_ids if kind.startswith("user") else r.user_ids
            effect = ask(graph.keep(keep), ask.content) - base
            value = float(graph.values[edge])
            rows.append({"kind": kind, "id": ids.ids[other], "value": value, "effect": effect})
    return sorted(rows, key=lambda row: -abs(row["effect"]))[:MAX_NEIGHBOURS]
