"""What several layers need of one graph, made once: message matrices and routes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor

from corginet.data.graph import InteractionGraph
from corginet.nn.sparse import SparseMatrix

T = TypeVar("T")


class Gathering(NamedTuple):
    """A linear way to gather messages [h_j, value_ij]: the states' part, and the values' part."""

    matrix: SparseMatrix
    values: Float[Tensor, " node"]


def once_per_graph(
    make: Callable[[InteractionGraph, torch.dtype], T],
) -> Callable[[InteractionGraph, torch.dtype], T]:
    """Let all layers of a pass share what one of them made; it is forgotten with the graph."""
    made: WeakKeyDictionary[InteractionGraph, dict[torch.dtype, T]] = WeakKeyDictionary()

    @wraps(make)
    def find(graph: InteractionGraph, dtype: torch.dtype) -> T:
        found = made.setdefault(graph, {})
        if dtype not in found:
            found[dtype] = make(graph, dtype)
        return found[dtype]

    return find


def gathering(
    graph: InteractionGraph, weights: Float[Tensor, " message"], rows: Tensor | None = None
) -> Gathering:
    """Weigh every message, or only those in `rows`, and add them up per node."""
    targets, sources, values = graph.targets, graph.sources, graph.values.repeat(2)
    if rows is not None:
        targets, sources, values = targets[rows], sources[rows], values[rows]
    matrix = SparseMatrix(targets, sources, weights, (graph.n_nodes, graph.n_nodes))
    zeros = weights.new_zeros(graph.n_nodes)
    return Gathering(matrix, zeros.index_add(0, targets, values.to(weights.dtype) * weights))


@once_per_graph
def mean(graph: InteractionGraph, dtype: torch.dtype) -> Gathering:
    """The average over a node's neighbours; 0 without any."""
    return gathering(graph, graph.degrees.to(dtype).reciprocal()[graph.targets])


@once_per_graph
def total(graph: InteractionGraph, dtype: torch.dtype) -> Gathering:
    """The sum over a node's neighbours."""
    return gathering(graph, torch.ones(2 * len(graph), dtype=dtype))


@once_per_graph
def symmetric(graph: InteractionGraph, dtype: torch.dtype) -> Gathering:
    """The sum over a node's neighbours, each divided by sqrt(d_i d_j)."""
    inverse = graph.degrees.to(dtype).rsqrt()
    return gathering(graph, inverse[graph.targets] * inverse[graph.sources])


def sampled_mean(graph: InteractionGraph, dtype: torch.dtype, size: int) -> Gathering:
    """The average over at most `size` neighbours of each node, drawn anew without replacement."""
    shuffled = torch.randperm(2 * len(graph))
    order = shuffled[torch.argsort(graph.targets[shuffled], stable=True)]
    starts = torch.cumsum(graph.degrees, 0) - graph.degrees
    place = torch.arange(len(order)) - starts[graph.targets[order]]
    rows = order[place < size]
    taken = graph.degrees.clamp(max=size).to(dtype)
    return gathering(graph, taken.reciprocal()[graph.targets[rows]], rows)
