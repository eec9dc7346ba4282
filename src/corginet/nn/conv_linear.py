"""Convolutions whose messages are linear in the states: GraphSAGE, GIN, GC-MC, LightGCN."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Int
from pydantic import Field
from torch import Tensor, nn

from corginet.config import Config
from corginet.data.graph import InteractionGraph
from corginet.nn import neighbours
from corginet.nn.conv import NO_CONTENT, Conv, EdgeContent, States
from corginet.nn.sparse import SparseMatrix


class SageConfig(Config):
    """Each node's own state beside the average of a sample of its neighbours (GraphSAGE)."""

    kind: Literal["sage"] = "sage"
    sample: int = Field(32, ge=1, description="neighbours drawn per node in a training step")

    def build(self, channels: int, **_: object) -> Conv:
        return SageConv(channels, self.sample)


class SageConv(Conv):
    """Average a few neighbours, and keep what the node knew itself.

    h_i' = relu(W [h_i] + V mean over j of [h_j, value_ij] + b), new h_i = h_i' / |h_i'|. In
    training the mean is over a fresh sample of neighbours; in evaluation over all of them, so
    that a prediction is repeatable. A node without neighbours has a mean of 0.
    Source: GraphSAGE, algorithm 1, mean aggregator.  Deviation: the value beside the state.
    """

    def __init__(self, channels: int, sample: int) -> None:
        super().__init__()
        self.sample = sample
        self.own = nn.Linear(channels, channels)
        self.from_state = nn.Linear(channels, channels, bias=False)
        self.from_value = nn.Parameter(torch.randn(channels) * channels**-0.5)

    def forward(
        self,
        graph: InteractionGraph,
        states: States,
        content: tuple[EdgeContent | None, EdgeContent | None] = NO_CONTENT,
    ) -> States:
        matrix, values = self._mean(graph, states.dtype)
        mixed = matrix @ self.from_state(states) + values[:, None] * self.from_value
        return nn.functional.normalize(torch.relu(self.own(states) + mixed))

    def _mean(self, graph: InteractionGraph, dtype: torch.dtype) -> neighbours.Gathering:
        if self.training:
            return neighbours.sampled_mean(graph, dtype, self.sample)
        return neighbours.mean(graph, dtype)


class GinConfig(Config):
    """Sums of neighbours through a small network, the node's own weight learned (GIN-ε)."""

    kind: Literal["gin"] = "gin"

    def build(self, channels: int, **_: object) -> Conv:
        return GinConv(channels)


class GinConv(Conv):
    """Tell apart neighbourhoods that averages confuse.

    new h_i = relu(MLP((1 + ε) [h_i, 0] + sum over j of [h_j, value_ij])), ε learned, MLP of two
    layers with normalisation between.  Source: GIN-ε.  Deviation: the value beside the state;
    layer instead of batch normalisation, since sums grow with the edges observed, and evaluation
    observes more of them than training.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.epsilon = nn.Parameter(torch.zeros(()))
        self.mlp = nn.Sequential(
            nn.Linear(channels + 1, channels),
            nn.LayerNorm(channels),
            nn.ReLU(),
            nn.Linear(channels, channels),
        )

    def forward(
        self,
        graph: InteractionGraph,
        states: States,
        content: tuple[EdgeContent | None, EdgeContent | None] = NO_CONTENT,
    ) -> States:
        matrix, values = neighbours.total(graph, states.dtype)
        sums = (1 + self.epsilon) * states + matrix @ states
        return torch.relu(self.mlp(torch.cat([sums, values[:, None]], dim=1)))


class GcmcConfig(Config):
    """A message channel of its own for each level of the values (GC-MC)."""

    kind: Literal["gcmc"] = "gcmc"
    n_levels: int = Field(
        10, ge=2, le=10, description="equal bins of the value range, each with its channel"
    )

    def build(self, channels: int, **_: object) -> Conv:
        return GcmcConv(channels, self.n_levels)


class GcmcConv(Conv):
    """Let a high value speak another language than a low one.

    h_i' = relu(concatenation over levels r of sum over j with level r of W_r h_j / d_i),
    new h_i = relu(D h_i' + b).  Values fall into equal bins of their range: up to n_levels evenly
    spaced levels have a bin each, real numbers share bins, and an empty bin brings 0.
    Source: GC-MC with concatenation and without weight sharing.  Deviation: no side features.
    """

    def __init__(self, channels: int, n_levels: int) -> None:
        super().__init__()
        self.n_levels = n_levels
        self.from_level = nn.Parameter(torch.randn(n_levels, channels, channels) * channels**-0.5)
        self.dense = nn.Linear(n_levels * channels, channels)

    def forward(
        self,
        graph: InteractionGraph,
        states: States,
        content: tuple[EdgeContent | None, EdgeContent | None] = NO_CONTENT,
    ) -> States:
        rows = graph.targets * self.n_levels + levels_of(graph.values, self.n_levels).repeat(2)
        weights = graph.degrees.to(states.dtype).reciprocal()[graph.targets]
        shape = (graph.n_nodes * self.n_levels, graph.n_nodes)
        gathered = SparseMatrix(rows, graph.sources, weights, shape) @ states
        by_level = gathered.view(graph.n_nodes, self.n_levels, -1)
        channels = torch.einsum("nrc,rcd->nrd", by_level, self.from_level).flatten(1)
        return torch.relu(self.dense(torch.relu(channels)))


def levels_of(values: Tensor, n_levels: int) -> Int[Tensor, " edge"]:
    """The bin of each value between −1 and 1; a border belongs to the bin above it."""
    place = (values + 1) / 2 * n_levels + 1e-4  # so that rounding can't split a border's values
    return place.floor().long().clamp(0, n_levels - 1)


class LightGcnConfig(Config):
    """Neighbours' states added up, with nothing learned in between (LightGCN)."""

    kind: Literal["lightgcn"] = "lightgcn"

    def build(self, channels: int, **_: object) -> Conv:
        return LightGcnConv()


class LightGcnConv(Conv):
    """Smooth the nodes' own vectors over the graph: all that is learned is in those.

    new h_i = sum over j of h_j / sqrt(d_i d_j).  Source: LightGCN; values are not read.
    """

    def forward(
        self,
        graph: InteractionGraph,
        states: States,
        content: tuple[EdgeContent | None, EdgeContent | None] = NO_CONTENT,
    ) -> States:
        return neighbours.symmetric(graph, states.dtype).matrix @ states
