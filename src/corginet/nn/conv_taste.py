"""A convolution that passes on what neighbours are like, and which of them are liked."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from corginet.config import Config, searched
from corginet.data.graph import InteractionGraph
from corginet.nn.conv import NO_CONTENT, Conv, EdgeContent, States
from corginet.nn.neighbours import once_per_graph
from corginet.nn.sparse import Incidence, SparseMatrix, sum_relu

LIKED_SCALE = 0.4  # of the liked part's first weights: its sums grow with the degree
DAMPING = 5.0  # edges added to a node's own under the root


class TasteConfig(Config):
    """Messages are what the neighbours are like and, by the edges' values, which are liked."""

    kind: Literal["taste"] = "taste"
    state_dropout: float = Field(
        0.2,
        ge=0,
        lt=1,
        description="dropout before every update",
        json_schema_extra=searched(0.0, 0.4),
    )

    message_dropout: float = Field(0.0, ge=0, lt=1, description="dropout on messages")

    def build(self, channels: int) -> Conv:
        return TasteConv(channels, self.state_dropout, self.message_dropout)


class TasteConv(Conv):
    """Let a user become the sum of what they like, less what they do not.

    new h_i = relu(Q drop [h_i, mean over j of relu(P h_j + value_ij p),
                           sum over j of value_ij V h_j / sqrt(d_i + 5)]),
    with weights of their own for users and for items. Values are residuals, around 0: the last
    part is what factorisation computes of a user's history, at the cost of a sparse product.
    """

    def __init__(self, channels: int, dropout: float, message_dropout: float = 0.0) -> None:
        super().__init__()
        self.to_users = Direction(channels, dropout, message_dropout)
        self.to_items = Direction(channels, dropout, message_dropout)

    def forward(
        self,
        graph: InteractionGraph,
        states: States,
        content: tuple[EdgeContent | None, EdgeContent | None] = NO_CONTENT,
    ) -> States:
        users, items = states.split([graph.n_users, graph.n_items])
        values = value_matrix(graph, states.dtype)
        new_users = self.to_users(users, items, graph.users, graph.items, graph.values, values)
        new_items = self.to_items(items, users, graph.items, graph.users, graph.values, values.t)
        return torch.cat([new_users, new_items])


@once_per_graph
def value_matrix(graph: InteractionGraph, dtype: torch.dtype) -> SparseMatrix:
    """Users × items, of the observed values."""
    shape = (graph.n_users, graph.n_items)
    return SparseMatrix(graph.users, graph.items, graph.values.to(dtype), shape)


class Direction(nn.Module):
    """Messages from one side of the graph to the other."""

    def __init__(self, channels: int, dropout: float, message_dropout: float) -> None:
        super().__init__()
        self.message_dropout = message_dropout
        self.like = nn.Linear(channels, channels)
        self.by_value = nn.Parameter(torch.randn(channels) * channels**-0.5)
        self.liked = nn.Linear(channels, channels, bias=False)
        self.update = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(3 * channels, channels), nn.ReLU()
        )
        with torch.no_grad():
            self.liked.weight *= LIKED_SCALE

    def forward(
        self,
        own: Float[Tensor, "own channel"],
        others: Float[Tensor, "other channel"],
        targets: Int[Tensor, " edge"],
        sources: Int[Tensor, " edge"],
        values: Float[Tensor, " edge"],
        matrix: SparseMatrix,
    ) -> Float[Tensor, "own channel"]:
        incidence = Incidence(targets, len(own))
        tables = [torch.outer(values, self.by_value), self.like(others)]
        rate = self.message_dropout if self.training else 0.0
        met = incidence.per_edge(sum_relu(tables, [None, sources], targets, len(own), rate))
        scale = (incidence.degrees + DAMPING).to(values.dtype).rsqrt()
        liked = scale[:, None] * (matrix @ self.liked(others))
        new: Tensor = self.update(torch.cat([own, met, liked], dim=1))
        return new
