"""From the states of a user and an item to one number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from corginet.config import Config, searched
from corginet.data.graph import InteractionGraph
from corginet.nn.attention import ATTENTIONS, ContentAttention, PairBatches
from corginet.nn.content import Content
from corginet.nn.edge_content import Score
from corginet.nn.sparse import dot_relu, gather
from corginet.nn.words import WordProjection


class Pairs(NamedTuple):
    """The (user, item) pairs asked for, as rows of the graph."""

    users: Int[Tensor, " pair"]
    items: Int[Tensor, " pair"]


class ReadoutConfig(Config):
    """The last part of the network."""

    hidden: int = Field(256, ge=1, le=8192, description="width of the readout's hidden layer")
    readout_dropout: float = Field(
        0.1, ge=0, lt=1, description="dropout in the readout", json_schema_extra=searched(0.0, 0.7)
    )
    start: Literal["random", "zero"] = Field(
        "random", description="zero: before training the network adds nothing to its offset"
    )
    product: bool = Field(False, description="also read the product of both states")
    pair_score: Score | None = Field(
        None, description="the asked user's own attention on the asked item's words"
    )

    def build(self, channels: int, dim: int, more: Sequence[PairView] = ()) -> Readout:
        views = list(more)
        if self.product:
            views.append(StateProduct(channels, self.hidden))
        if self.pair_score is not None:
            views.append(WordReading(channels, self.hidden, self.pair_score, dim))
        readout = Readout(channels, self.hidden, self.readout_dropout, views)
        if self.start == "zero":
            nn.init.zeros_(readout.weight)
        return readout


class PairView(nn.Module):
    """Something about a pair beyond its two states, one row of the hidden layer per pair."""

    def forward(
        self,
        graph: InteractionGraph,
        users: Float[Tensor, "user channel"],
        items: Float[Tensor, "item channel"],
        pairs: Pairs,
        content: Content,
    ) -> Float[Tensor, "pair hidden"]:
        raise NotImplementedError


class Readout(nn.Module):
    """Predict a pair from both final states.

    raw = w . relu(W [h_u, h_m] + views + b) + b_out.  Source: CoRGi, eq. 10, with its hidden
    layer of 256.  The hidden layer's two halves are computed per node, not per pair.
    """

    def __init__(
        self, channels: int, hidden: int, dropout: float, views: Sequence[PairView] = ()
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.from_user = nn.Linear(channels, hidden)
        self.from_item = nn.Linear(channels, hidden, bias=False)
        self.weight = nn.Parameter(torch.randn(hidden) * hidden**-0.5)
        self.bias = nn.Parameter(torch.zeros(()))
        self.views = nn.ModuleList(views)

    def forward(
        self,
        graph: InteractionGraph,
        states: Float[Tensor, "node channel"],
        pairs: Pairs,
        content: Content,
    ) -> Float[Tensor, " pair"]:
        users, items = states[: graph.n_users], states[graph.n_users :]
        tables = [self.from_user(users), self.from_item(items)]
        indices: list[Tensor | None] = [pairs.users, pairs.items]
        for view in self.views:
            tables.append(view(graph, users, items, pairs, content))
            indices.append(None)
        rate = self.dropout if self.training else 0.0
        return dot_relu(tables, indices, self.weight, rate) + self.bias


class StateProduct(PairView):
    """Where both states are large together: a factorised interaction."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.map = nn.Linear(channels, hidden, bias=False)

    def forward(
        self,
        graph: InteractionGraph,
        users: Float[Tensor, "user channel"],
        items: Float[Tensor, "item channel"],
        pairs: Pairs,
        content: Content,
    ) -> Float[Tensor, "pair hidden"]:
        both: Tensor = self.map(gather(users, pairs.users) * gather(items, pairs.items))
        return both


class WordReading(PairView):
    """Let the asked user look at the asked item's words: the last word, for new pairs too.

    Deviation: beyond the paper, whose readout sees no text for a pair without an edge.
    """

    def __init__(self, channels: int, hidden: int, score: Score, dim: int) -> None:
        super().__init__()
        self.project = WordProjection(dim, channels)
        self.attention: ContentAttention = ATTENTIONS[score](channels, channels)
        self.from_content = nn.Linear(channels, hidden, bias=False)

    def forward(
        self,
        graph: InteractionGraph,
        users: Float[Tensor, "user channel"],
        items: Float[Tensor, "item channel"],
        pairs: Pairs,
        content: Content,
    ) -> Float[Tensor, "pair hidden"]:
        batches = PairBatches(pairs.users, pairs.items, content.words)
        (projected,) = self.project(content.words)
        read: Tensor = self.from_content(self.attention(users, projected, batches))
        return read
