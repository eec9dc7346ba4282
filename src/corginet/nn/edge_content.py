"""Content attention along the edges: what a user reads in an item travels with the message."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from corginet.config import Config
from corginet.data.graph import InteractionGraph
from corginet.nn.attention import ATTENTIONS, ContentAttention, PairBatches
from corginet.nn.words import WordProjection, Words

Score = Literal["additive", "dot_product", "dynamic"]
EdgeVectors = Float[Tensor, "edge channel"]
Both = tuple[EdgeVectors | None, EdgeVectors | None]


class AlongEdgesConfig(Config):
    """Whether and how messages carry what the user reads in the item."""

    score: Score | None = Field(None, description="attention along edges; none leaves it out")
    both_ways: bool = Field(True, description="also on messages from users to items")
    cached: bool = Field(
        False, description="only the last layer attends; earlier ones read its previous values"
    )

    def build(self, dim: int, channels: int, n_layers: int) -> AlongEdges:
        if self.score is None:
            return AlongEdges()
        kind = CachedAttentionAlongEdges if self.cached else AttentionAlongEdges
        return kind(self.score, self.both_ways, dim, channels, n_layers)


class AlongEdges(nn.Module):
    """Nothing travels along the edges but states and values."""

    n_passes = 1  # how many passes over the layers an evaluation takes

    def start(self, graph: InteractionGraph, words: Words, first_pass: bool) -> None:
        """Prepare for one pass over the layers."""

    def at(self, layer: int, users: Float[Tensor, "user channel"]) -> Both:
        """The content of every edge, for messages to users and for messages to items."""
        return None, None


class AttentionAlongEdges(AlongEdges):
    """Every layer attends anew, with the users' states before it as queries.

    All layers' projections of the words are one product.
    """

    def __init__(
        self, score: Score, both_ways: bool, dim: int, channels: int, n_layers: int
    ) -> None:
        super().__init__()
        n_attending = self.attending(n_layers)
        self.both_ways, self.n_layers = both_ways, n_layers
        self.project = WordProjection(dim, channels, n_attending)
        self.attentions = nn.ModuleList(
            ATTENTIONS[score](channels, channels) for _ in range(n_attending)
        )

    @staticmethod
    def attending(n_layers: int) -> int:
        return n_layers

    def start(self, graph: InteractionGraph, words: Words, first_pass: bool) -> None:
        self.projected = self.project(words)
        self.batches = PairBatches(graph.users, graph.items, words)

    def at(self, layer: int, users: Float[Tensor, "user channel"]) -> Both:
        return self._directed(self.read(layer, users))

    def read(self, layer: int, users: Float[Tensor, "user channel"]) -> EdgeVectors:
        content: EdgeVectors = self.attention(layer)(users, self.projected[layer], self.batches)
        return content

    def attention(self, layer: int) -> ContentAttention:
        found = self.attentions[layer]
        assert isinstance(found, ContentAttention)
        return found

    def _directed(self, content: EdgeVectors) -> Both:
        return content, content if self.both_ways else None


class CachedAttentionAlongEdges(AttentionAlongEdges):
    """Attend in the last layer alone; earlier layers read what it found one step before.

    A step reads and writes the rows of its graph's key: what was found while a value was
    observed is never read while that value is hidden. A graph without a key, as in evaluation,
    starts from zeros and takes a second pass, so a prediction depends on nothing stored.
    Source: CoRGi's caching trick.
    """

    def __init__(
        self, score: Score, both_ways: bool, dim: int, channels: int, n_layers: int
    ) -> None:
        super().__init__(score, both_ways, dim, channels, n_layers)
        self.channels = channels
        self.stored: dict[str, Tensor] = {}

    n_passes = 2

    @staticmethod
    def attending(n_layers: int) -> int:
        return 1

    def start(self, graph: InteractionGraph, words: Words, first_pass: bool) -> None:
        super().start(graph, words, first_pass)
        self.graph = graph
        if graph.key is None or not self.training:
            if first_pass:
                self.passing = torch.zeros(len(graph), self.channels)
            self.earlier = self.passing
        else:
            self.earlier = self._rows(graph.key, graph)

    def _rows(self, key: str, graph: InteractionGraph) -> Tensor:
        needed = int(graph.edge_ids.max()) + 1 if len(graph) else 0
        table = self.stored.get(key)
        if table is None or len(table) < needed:
            grown = torch.zeros(needed, self.channels)
            if table is not None:
                grown[: len(table)] = table
            table = self.stored[key] = grown
        return table.index_select(0, graph.edge_ids)

    def at(self, layer: int, users: Float[Tensor, "user channel"]) -> Both:
        if layer < self.n_layers - 1:
            return self._directed(self.earlier)
        content = self.read(0, users)
        found = content.detach()
        if self.graph.key is None or not self.training:
            self.passing = found
        else:
            self.stored[self.graph.key].index_copy_(0, self.graph.edge_ids, found)
        return self._directed(content)
