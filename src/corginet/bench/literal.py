"""The paper's formulas written down literally, per edge, as message-passing libraries do it.

The reference that tests and benchmarks compare the fast layers with: it gathers [edge, word,
channel] tensors, shares nothing between edges, and leaves everything to autograd.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from corginet.data.graph import InteractionGraph
from corginet.models.graph_model import GraphModel
from corginet.nn.attention import SLOPE, AdditiveAttention, ContentAttention, DotProductAttention
from corginet.nn.content import Content
from corginet.nn.convs import EdgeStateConv
from corginet.nn.edge_content import AttentionAlongEdges
from corginet.nn.readout import Pairs
from corginet.nn.words import Words


def literal_attention(
    attention: ContentAttention,
    users: Tensor,
    projected: Tensor,
    words: Words,
    pairs: tuple[Tensor, Tensor],
) -> Tensor:
    """Eq. 5-9 for every pair: scores of the item's words, softmax, weighted sum."""
    rows, real = words.of(pairs[1])
    keys = projected[rows].to(users.dtype)  # [pair, word, channel]
    queries = attention.query(users)[pairs[0]][:, None].expand_as(keys)
    scores = _scores(attention, queries, keys).masked_fill(~real, -torch.inf)
    weights = scores.softmax(-1).nan_to_num()  # an item without words has weights 0 / 0
    return (weights[..., None] * keys).sum(1)


def _scores(attention: ContentAttention, queries: Tensor, keys: Tensor) -> Tensor:
    vectors = list(attention.scoring)
    if isinstance(attention, DotProductAttention):
        return leaky_relu((queries * keys).sum(-1), SLOPE)
    if isinstance(attention, AdditiveAttention):
        both = torch.cat([queries, keys], dim=-1)
        return leaky_relu(both @ torch.cat(vectors), SLOPE)
    return leaky_relu(queries + keys, SLOPE) @ vectors[0]


def literal_forward(
    model: GraphModel, graph: InteractionGraph, pairs: Pairs, content: Content, rate: float
) -> Tensor:
    """One forward pass of CoRGi with the given model's weights; dropout on messages, readout."""
    observed, graph = graph, model.values(graph, content)
    states = model.states(graph, content)
    along = model.along_edges
    assert isinstance(along, AttentionAlongEdges)
    vectors = content.words.vectors.to(states.dtype)
    weights = along.project.weight.chunk(along.project.n_layers)
    for layer, conv in enumerate(model.convs):
        assert isinstance(conv, EdgeStateConv)
        projected = vectors @ weights[layer].t()
        users = states[: graph.n_users]
        ends = (graph.users, graph.items)
        read = literal_attention(along.attention(layer), users, projected, content.words, ends)
        states = _literal_conv(conv, graph, states, read, rate)
    readout = model.readout
    hidden = readout.from_user(states[pairs.users])
    hidden = hidden + readout.from_item(states[graph.n_users + pairs.items])
    hidden = torch.nn.functional.dropout(hidden.relu(), rate, rate > 0)
    raw = hidden @ readout.weight + readout.bias
    return model.values.output(raw, observed, pairs, content)


def _literal_conv(
    conv: EdgeStateConv, graph: InteractionGraph, states: Tensor, read: Tensor, rate: float
) -> Tensor:
    """Eq. 1-3 and 10 on both directions of every edge."""
    sender = states[graph.sources]
    value = graph.values.repeat(2)[:, None]
    edge = torch.relu(conv.edge_state(sender) + value * conv.edge_value) + read.repeat(2, 1)
    messages = torch.relu(conv.from_state(sender) + conv.from_edge(edge))
    messages = torch.nn.functional.dropout(messages, rate, rate > 0)
    sums = states.new_zeros(graph.n_nodes, messages.shape[1])
    sums = sums.index_add(0, graph.targets, messages)
    mean = sums / graph.degrees.clamp(min=1)[:, None]
    return torch.relu(conv.update(torch.cat([states, mean], dim=1)))
