"""What a model sees when it predicts: the observed ratings, with what came with the question."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch

from corginet.data.dataset import Dataset
from corginet.data.graph import InteractionGraph
from corginet.data.ratings import Ratings
from corginet.nn.content import Content
from corginet.nn.readout import Pairs
from corginet.nn.words import Words

if TYPE_CHECKING:
    import polars as pl

KNOWN_PAIR_PARTS = 10  # asked pairs that are observed are predicted in parts, each hidden


def extend_world(
    seen: Dataset,
    users: pl.Series,
    items: pl.Series,
    history: Ratings | None,
    new_texts: pl.DataFrame | None,
) -> Dataset:
    """Observed ratings and texts with new users, items, values and texts added to them.

    Known rows keep their numbers; new ones follow.
    """
    r = seen.ratings
    user_ids, item_ids = r.user_ids.extended(users), r.item_ids.extended(items)
    edges = [r.users, r.items, r.values]
    if history is not None:
        user_ids = user_ids.extended(history.user_ids.ids)
        item_ids = item_ids.extended(history.item_ids.ids)
        added = [
            user_ids.rows(history.user_ids.ids.gather(history.users)),
            item_ids.rows(history.item_ids.ids.gather(history.items)),
            history.values,
        ]
        edges = _later_wins(edges, added)
    texts = [*seen.texts, *[""] * (len(item_ids) - len(seen.texts))]
    if new_texts is not None:
        rows = item_ids.rows(new_texts["item"])
        for row, text in zip(rows.tolist(), new_texts["text"].to_list(), strict=True):
            if row >= 0:
                texts[row] = text
    grown = dataclasses.replace(
        r, users=edges[0], items=edges[1], values=edges[2], user_ids=user_ids, item_ids=item_ids
    )
    return Dataset(grown, texts)


def _later_wins(old: list[np.ndarray], new: list[np.ndarray]) -> list[np.ndarray]:
    """Add edges; where a pair is in both, the new value replaces the old one."""
    width = int(max(old[1].max(initial=0), new[1].max(initial=0))) + 1
    stays = ~np.isin(old[0] * width + old[1], new[0] * width + new[1])
    return [np.concatenate([a[stays], b]) for a, b in zip(old, new, strict=True)]


def graph_of(
    users: np.ndarray, items: np.ndarray, values: np.ndarray, n_users: int, n_items: int
) -> InteractionGraph:
    """Arrays as a graph."""
    return InteractionGraph.build(
        torch.from_numpy(np.ascontiguousarray(users)),
        torch.from_numpy(np.ascontiguousarray(items)),
        torch.from_numpy(np.ascontiguousarray(values)).to(torch.get_default_dtype()),
        n_users,
        n_items,
    )


def no_content(n_items: int) -> Content:
    """Items without words, for recipes that read none."""
    none = torch.zeros(n_items, dtype=torch.long)
    return Content(Words(torch.zeros(0, 0), none, none))


def predict_hiding_own(
    predict: Callable[[InteractionGraph, Pairs], np.ndarray], graph: InteractionGraph, pairs: Pairs
) -> np.ndarray:
    """Predict pairs; those that are themselves observed in parts, each part's edges taken away.

    A pair's part depends on the pair alone, so asking twice gives the same number.
    """
    asked = pairs.users * graph.n_items + pairs.items
    edges = graph.users * graph.n_items + graph.items
    own = torch.isin(asked, edges)
    out = np.empty(len(asked))
    new = torch.nonzero(~own).flatten()
    if len(new):
        out[new.numpy()] = predict(graph, Pairs(pairs.users[new], pairs.items[new]))
    observed = torch.nonzero(own).flatten()
    part_of = asked[observed] * 2654435761 % KNOWN_PAIR_PARTS
    for part in part_of.unique().tolist():
        rows = observed[part_of == part]
        rest = graph.keep(~torch.isin(edges, asked[rows]))
        out[rows.numpy()] = predict(rest, Pairs(pairs.users[rows], pairs.items[rows]))
    return out
