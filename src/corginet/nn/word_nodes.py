"""Words as nodes of the graph, beside users and items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from corginet.config import Config
from corginet.data.graph import InteractionGraph
from corginet.nn.bag import number_of_stems
from corginet.nn.content import Content
from corginet.nn.states import random_rows

NodeStates = Float[Tensor, "node channel"]
JoinedStates = Float[Tensor, "joined channel"]
WORD_SEED = 2**40  # apart from the seeds of users' and items' states


class NodesConfig(Config):
    """Nodes beside users and items."""

    word_nodes: bool = Field(
        False, description="stems of the texts as nodes, linked to the items that hold them"
    )

    def build(self, channels: int, dims: Mapping[str, int], seed: int) -> Nodes:
        return WordNodes(number_of_stems(dims), channels, seed) if self.word_nodes else Nodes()


class Nodes(nn.Module):
    """Users and items are all nodes there are."""

    def join(
        self, graph: InteractionGraph, states: NodeStates, content: Content
    ) -> tuple[InteractionGraph, JoinedStates]:
        """The graph with further nodes, and the states of all of them."""
        return graph, states

    def leave(self, graph: InteractionGraph, states: JoinedStates) -> NodeStates:
        """The states of the graph's own users and items."""
        return states


class WordNodes(Nodes):
    """Let items that share words hear of each other, through any convolution.

    A stem is linked to every item whose text holds it, as if it were a user whose value is the
    middle of the range; it starts from a fixed random vector, as users do.
    Source: CoRGi's "GCN with WordNodes", after TextGCN.
    """

    def __init__(self, n_words: int, channels: int, seed: int) -> None:
        super().__init__()
        drawn = random_rows(n_words, channels, seed + WORD_SEED)
        self.register_buffer("words", drawn.to(torch.get_default_dtype()), persistent=False)
        self.words: Tensor

    def join(
        self, graph: InteractionGraph, states: NodeStates, content: Content
    ) -> tuple[InteractionGraph, JoinedStates]:
        bag = content.bag
        assert bag is not None
        items = torch.cat([graph.items, bag.items])
        order = torch.argsort(items, stable=True)
        first_id = int(graph.edge_ids.max()) + 1 if len(graph) else 0
        joined = replace(
            graph,
            users=torch.cat([graph.users, graph.n_users + bag.words])[order],
            items=items[order],
            values=torch.cat([graph.values, graph.values.new_zeros(len(bag.items))])[order],
            edge_ids=torch.cat([graph.edge_ids, first_id + torch.arange(len(bag.items))])[order],
            n_users=graph.n_users + bag.n_words,
            user_rows=torch.cat([graph.user_rows, -1 - torch.arange(bag.n_words)]),
        )
        users, rest = states[: graph.n_users], states[graph.n_users :]
        return joined, torch.cat([users, self.words.to(states.dtype), rest])

    def leave(self, graph: InteractionGraph, states: JoinedStates) -> NodeStates:
        return torch.cat([states[: graph.n_users], states[-graph.n_items :]])
