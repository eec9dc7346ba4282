"""GAT: attention over a node's neighbours."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import leaky_relu

from corginet.config import Config
from corginet.data.graph import InteractionGraph
from corginet.errors import UserError
from corginet.nn.attention import SLOPE
from corginet.nn.conv import NO_CONTENT, Conv, EdgeContent, States
from corginet.nn.neighbours import once_per_graph
from corginet.nn.sparse import CHUNK, SparseMatrix


class GatConfig(Config):
    """Neighbours weighed by attention (GAT)."""

    carries_content: ClassVar[bool] = True
    kind: Literal["gat"] = "gat"
    heads: int = Field(1, ge=1, le=64, description="attention heads that share the channels")

    def build(self, channels: int, **_: object) -> Conv:
        return GatConv(channels, self.heads)


class GatConv(Conv):
    """Let a node choose which of its neighbours to listen to.

    m_ij = W [h_j, value_ij],   weight_ij = softmax over j in N(i) and i of
    leaky(p . m_ij + q . W [h_i, 0]),   new h_i = relu(sum over j of weight_ij m_ij + b),
    each head on its share of the channels, a node's own message with a value of 0. Content on an
    edge is added to its sender's state, h_j + content_ij: what a user reads in an item decides
    how much it is listened to, too.
    Source: GAT; content as CoRGi's outlook has it.  Deviation: the value beside the state; relu, as
    in CoRGi's experiments.
    """

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        if channels % heads:
            raise UserError(
                f"heads got {heads}, which does not divide the {channels} channels; "
                "change --heads or --channels"
            )
        self.heads, width = heads, channels // heads
        self.from_state = nn.Linear(channels, channels, bias=False)
        self.from_value = nn.Parameter(torch.randn(channels) * channels**-0.5)
        self.sender = nn.Parameter(torch.randn(heads, width) * width**-0.5)
        self.receiver = nn.Parameter(torch.randn(heads, width) * width**-0.5)
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(
        self,
        graph: InteractionGraph,
        states: States,
        content: tuple[EdgeContent | None, EdgeContent | None] = NO_CONTENT,
    ) -> States:
        routes = _routes(graph, states.dtype)
        messages = self.from_state(states).view(graph.n_nodes, self.heads, -1)
        of_value = self.from_value.view(self.heads, -1)
        scores = (messages * self.sender).sum(-1).index_select(0, routes.sources)
        scores = scores + routes.values[:, None] * (of_value * self.sender).sum(-1)
        scores = scores + (messages * self.receiver).sum(-1).index_select(0, routes.targets)
        read = self._read(content)
        if read is not None:
            own = scores.new_zeros(graph.n_nodes, self.heads)
            scores = scores + torch.cat([(read * self.sender).sum(-1), own])
        weights = routes.softmax(leaky_relu(scores, SLOPE))
        gathered = routes.sum(weights * routes.values[:, None])
        parts = [
            routes.weigh(weights[:, h].contiguous(), messages[:, h].contiguous())
            + gathered[:, h, None] * of_value[h]
            for h in range(self.heads)
        ]
        mixed = torch.cat(parts, dim=1)
        if read is not None:
            sent = (weights[: len(read), :, None] * read).flatten(1)
            mixed = mixed.index_add(0, graph.targets, sent)
        return torch.relu(mixed + self.bias)

    def _read(
        self, content: tuple[EdgeContent | None, EdgeContent | None]
    ) -> Float[Tensor, "edge_message head width"] | None:
        """W content_ij of every message along an edge; None where no message carries any."""
        known = [part for part in content if part is not None]
        if not known:
            return None
        none = torch.zeros_like(known[0])
        both = torch.cat([none if part is None else part for part in content])
        return self.from_state(both).view(len(both), *self.sender.shape)


class Routes:
    """All messages of a graph and one of each node to itself, for weights that are learned."""

    def __init__(self, graph: InteractionGraph, dtype: torch.dtype) -> None:
        own = torch.arange(graph.n_nodes)
        self.n_nodes = graph.n_nodes
        self.sources = torch.cat([graph.sources, own])
        self.targets = torch.cat([graph.targets, own])
        values = graph.values.to(dtype)
        self.values = torch.cat([values, values, values.new_zeros(graph.n_nodes)])
        # the weights' places in both CSR forms, found by sending their numbers through
        numbers = torch.arange(len(self.sources)).double()
        shape = (self.n_nodes, self.n_nodes)
        matrix = SparseMatrix(self.targets, self.sources, numbers, shape)
        self.forward_csr, self.backward_csr = matrix.forward_csr, matrix.backward_csr
        self.forward_order = self.forward_csr.values().long()
        self.backward_order = self.backward_csr.values().long()

    def sum(self, rows: Float[Tensor, "message head"]) -> Float[Tensor, "node head"]:
        return rows.new_zeros(self.n_nodes, rows.shape[1]).index_add(0, self.targets, rows)

    def softmax(self, scores: Float[Tensor, "message head"]) -> Float[Tensor, "message head"]:
        """Per receiving node; every node receives at least its own message."""
        with torch.no_grad():
            index = self.targets[:, None].expand_as(scores)
            largest = scores.new_full((self.n_nodes, scores.shape[1]), -torch.inf)
            largest = largest.scatter_reduce(0, index, scores, "amax")
        raised = (scores - largest.index_select(0, self.targets)).exp()
        return raised / self.sum(raised).index_select(0, self.targets)

    def weigh(
        self, weights: Float[Tensor, " message"], states: Float[Tensor, "node dim"]
    ) -> Float[Tensor, "node dim"]:
        """Per node, the weighted sum of what its neighbours send."""
        return _Weigh.apply(weights, states, self)


@once_per_graph
def _routes(graph: InteractionGraph, dtype: torch.dtype) -> Routes:
    return Routes(graph, dtype)


def _refilled(csr: Tensor, values: Tensor) -> Tensor:
    return torch.sparse_csr_tensor(
        csr.crow_indices(), csr.col_indices(), values, size=csr.shape, check_invariants=False
    )


class _Weigh(Function):
    """A sparse product with gradients for both sides, the weights' chunk by chunk."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, states: Tensor, routes: Routes) -> Tensor:
        ctx.routes = routes
        ctx.save_for_backward(weights, states)
        return _refilled(routes.forward_csr, weights[routes.forward_order]) @ states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        weights, states = ctx.saved_tensors
        routes: Routes = ctx.routes
        grad = grad.contiguous()
        to_states = _refilled(routes.backward_csr, weights[routes.backward_order]) @ grad
        to_weights = torch.empty_like(weights)
        step = max(1, CHUNK // states.shape[1])
        for start in range(0, len(weights), step):
            rows = slice(start, start + step)
            sent = states.index_select(0, routes.sources[rows])
            got = grad.index_select(0, routes.targets[rows])
            to_weights[rows] = sent.mul_(got).sum(1)
        return to_weights, to_states, None
