"""Convolutions with edge states (CoRGi, GRAPE), and GCN."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from corginet.config import Config, searched
from corginet.data.graph import InteractionGraph
from corginet.nn.conv import NO_CONTENT, Conv, EdgeContent, States
from corginet.nn.neighbours import once_per_graph
from corginet.nn.sparse import Incidence, SparseMatrix, gather, sum_relu

Aggregate = Literal["mean", "sum", "max"]


class EdgeStateConfig(Config):
    """Messages carry the state of their edge (GRAPE, CoRGi)."""

    carries_content: ClassVar[bool] = True
    kind: Literal["edge_states"] = "edge_states"
    combine: Literal["add", "concatenate"] = Field(
        "add", description="how an edge's state and its content are put together"
    )
    aggregate: Aggregate = Field("mean", description="how a node gathers its messages")
    message_dropout: float = Field(
        0.1, ge=0, lt=1, description="dropout on messages", json_schema_extra=searched(0.0, 0.7)
    )

    def build(self, channels: int) -> Conv:
        combine = EdgeStateConv if self.combine == "add" else ConcatenatingConv
        return combine(channels, self.aggregate, self.message_dropout)


class GcnConfig(Config):
    """Messages are the senders' states, weighted by both degrees, with the value beside them."""

    kind: Literal["gcn"] = "gcn"

    def build(self, channels: int) -> Conv:
        return GcnConv(channels)


class EdgeStateConv(Conv):
    """Let every message carry what its edge knows: the value, and the content for this pair.

    message m_ij = relu(P [h_j, e_ij]),   e_ij = relu(W [h_j, value_ij]) + content_ij,
    new h_i = relu(Q [h_i, aggregate over j of m_ij]); nothing arrives at a node without edges.
    The state part depends on (sender, value) alone, so it is computed once for each such pair.
    Source: CoRGi, eq. 1-3 and 10; without content, GRAPE.  Deviation: the layer reads the
    content that its own query asked for, so that no layer's attention is idle; the first
    layer's edges are lifted to the width of the others.
    """

    def __init__(self, channels: int, aggregate: Aggregate, dropout: float) -> None:
        super().__init__()
        self.aggregate, self.dropout = aggregate, dropout
        self.from_state = nn.Linear(channels, channels)
        self.from_edge = nn.Linear(channels, channels, bias=False)
        self.edge_state = nn.Linear(channels, channels)
        self.edge_value = nn.Parameter(torch.randn(channels) * channels**-0.5)
        self.update = nn.Linear(2 * channels, channels)

    def forward(
        self,
        graph: InteractionGraph,
        states: States,
        content: tuple[EdgeContent | None, EdgeContent | None] = NO_CONTENT,
    ) -> States:
        messages = self._messages(states, *sender_and_value(graph))
        lifted = _once(self.from_edge, content)
        n, both = len(graph), []
        for rows, extra, target, size in (
            (slice(0, n), lifted[0], graph.users, graph.n_users),
            (slice(n, 2 * n), lifted[1], graph.items, graph.n_items),
        ):
            tables = [messages] if extra is None else [messages, extra]
            indices = [message_rows(graph)[rows], None][: len(tables)]
            both.append(self._gather(tables, indices, target, size))
        return torch.relu(self.update(torch.cat([states, torch.cat(both)], dim=1)))

    def _messages(self, states: States, sender: Tensor, value: Tensor) -> Tensor:
        edge = gather(self.edge_state(states), sender) + value[:, None] * self.edge_value
        return gather(self.from_state(states), sender) + self.from_edge(edge.relu())

    def _gather(
        self, tables: list[Tensor], indices: list[Tensor | None], target: Tensor, size: int
    ) -> Tensor:
        rate = self.dropout if self.training else 0.0
        incidence = Incidence(target, size)
        if self.aggregate == "max":
            rows = [t if i is None else gather(t, i) for t, i in zip(tables, indices, strict=True)]
            dropped = nn.functional.dropout(torch.stack(rows).sum(0).relu(), rate)
            return incidence.max(dropped)
        sums = sum_relu(tables, indices, target, size, rate)
        return incidence.per_edge(sums) if self.aggregate == "mean" else sums


class ConcatenatingConv(EdgeStateConv):
    """The same with the edge's bare value and its content side by side: e_ij = [value, content].

    Source: CoRGi's appendix on combination methods.
    """

    def __init__(self, channels: int, aggregate: Aggregate, dropout: float) -> None:
        super().__init__(channels, aggregate, dropout)
        del self.edge_state

    def _messages(self, states: States, sender: Tensor, value: Tensor) -> Tensor:
        return gather(self.from_state(states), sender) + value[:, None] * self.edge_value


class GcnConv(Conv):
    """Average the neighbours, counting rare ones more.

    new h_i = relu(sum over j in N(i) and i of W [h_j, value_ij] / sqrt(d_i d_j)), with degrees
    that count the node itself.  Source: GCN, with the value beside the state as in CoRGi's
    experiments.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.from_state = nn.Linear(channels, channels, bias=False)
        self.from_value = nn.Parameter(torch.randn(channels) * channels**-0.5)
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(
        self,
        graph: InteractionGraph,
        states: States,
        content: tuple[EdgeContent | None, EdgeContent | None] = NO_CONTENT,
    ) -> States:
        matrix, values = _normalised(graph, states.dtype)
        mixed = matrix @ self.from_state(states) + values[:, None] * self.from_value
        return torch.relu(mixed + self.bias)


@once_per_graph
def _normalised(graph: InteractionGraph, dtype: torch.dtype) -> tuple[SparseMatrix, Tensor]:
    """The symmetric matrix with self-loops, and each node's weighted sum of edge values."""
    nodes = torch.arange(graph.n_nodes)
    inverse = (graph.degrees + 1).to(dtype).rsqrt()
    targets, sources = torch.cat([graph.targets, nodes]), torch.cat([graph.sources, nodes])
    weights = inverse[targets] * inverse[sources]
    matrix = SparseMatrix(targets, sources, weights, (graph.n_nodes, graph.n_nodes))
    twice = graph.values.to(dtype).repeat(2)
    sums = inverse.new_zeros(graph.n_nodes)
    return matrix, sums.index_add(0, graph.targets, twice * weights[: 2 * len(graph)])


def few_levels(graph: InteractionGraph) -> bool:
    """Whether a table over (node, value) is smaller than one over messages."""
    return len(graph.levels[0]) * graph.n_nodes <= 2 * len(graph)


def sender_and_value(graph: InteractionGraph) -> tuple[Int[Tensor, " row"], Float[Tensor, " row"]]:
    """The distinct (sender, value) pairs where that is a saving, else one row per message."""
    if not few_levels(graph):
        return graph.sources, graph.values.repeat(2)
    levels = graph.levels[0]
    nodes = torch.arange(graph.n_nodes)
    return nodes.repeat_interleave(len(levels)), levels.repeat(graph.n_nodes)


def message_rows(graph: InteractionGraph) -> Int[Tensor, " message"]:
    """Which row of sender_and_value each message reads."""
    if not few_levels(graph):
        return torch.arange(2 * len(graph))
    return graph.sources * len(graph.levels[0]) + graph.levels[1].repeat(2)


def _once(
    lift: nn.Module, content: tuple[Tensor | None, Tensor | None]
) -> tuple[Tensor | None, Tensor | None]:
    """Lift both directions' content, sharing the work where they are the same."""
    to_users, to_items = content
    lifted = None if to_users is None else lift(to_users)
    if to_items is to_users:
        return lifted, lifted
    return lifted, None if to_items is None else lift(to_items)
