"""Neighbour sampling: a small graph around the pairs of a batch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from corginet.data.graph import InteractionGraph


class NeighbourSampler:
    """Draws, for a batch of pairs, up to `fanout` edges per node and hop.

    The sampled subgraph holds the batch's nodes, their sampled neighbours, and the sampled
    edges; all layers run on it.  Source: GraphSAGE, as CoRGi uses it for its subgraph.
    """

    def __init__(self, graph: InteractionGraph, fanout: int, n_hops: int) -> None:
        self.graph, self.fanout, self.n_hops = graph, fanout, n_hops
        ends = np.concatenate([graph.users.numpy(), graph.items.numpy() + graph.n_users])
        self.order = np.argsort(ends, kind="stable") % max(1, len(graph))
        self.degrees = np.bincount(ends, minlength=graph.n_nodes)
        self.starts = np.cumsum(self.degrees) - self.degrees

    def sample(
        self, users: Tensor, items: Tensor, rng: np.random.Generator
    ) -> tuple[InteractionGraph, Tensor, Tensor]:
        """The subgraph, and the batch's users and items as its rows."""
        graph = self.graph
        frontier = np.unique(np.concatenate([users.numpy(), items.numpy() + graph.n_users]))
        seen, edges = frontier, np.empty(0, dtype=np.int64)
        for _ in range(self.n_hops):
            drawn = self._edges_of(frontier, rng)
            edges = np.union1d(edges, drawn)
            ends = np.concatenate(
                [graph.users.numpy()[drawn], graph.items.numpy()[drawn] + graph.n_users]
            )
            frontier = np.setdiff1d(ends, seen)
            seen = np.union1d(seen, frontier)
        return self._subgraph(seen, edges, users, items)

    def _edges_of(self, nodes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """All edges of small nodes, `fanout` drawn with replacement of large ones."""
        degrees = self.degrees[nodes]
        small, large = nodes[degrees <= self.fanout], nodes[degrees > self.fanout]
        counts = self.degrees[small]
        place = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        of_small = np.repeat(self.starts[small], counts) + place
        draw = rng.random((len(large), self.fanout)) * self.degrees[large, None]
        of_large = (self.starts[large, None] + draw.astype(np.int64)).ravel()
        return np.unique(self.order[np.concatenate([of_small, of_large])])

    def _subgraph(
        self, nodes: np.ndarray, edges: np.ndarray, users: Tensor, items: Tensor
    ) -> tuple[InteractionGraph, Tensor, Tensor]:
        graph = self.graph
        n_users = int(np.searchsorted(nodes, graph.n_users))
        local = torch.full((graph.n_nodes,), -1)
        local[torch.from_numpy(nodes)] = torch.arange(len(nodes))
        chosen = graph._pick(torch.from_numpy(edges), graph.key)
        sub = replace(
            chosen,
            users=local[chosen.users],
            items=local[chosen.items + graph.n_users] - n_users,
            n_users=n_users,
            n_items=len(nodes) - n_users,
            user_rows=graph.user_rows[torch.from_numpy(nodes[:n_users])],
            item_rows=graph.item_rows[torch.from_numpy(nodes[n_users:] - graph.n_users)],
        )
        return sub, local[users], local[items + graph.n_users] - n_users
