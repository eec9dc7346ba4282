"""The baselines' layers, against loops in float64 and against PyTorch Geometric."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from corginet.data.graph import InteractionGraph
from corginet.errors import UserError
from corginet.nn import neighbours
from corginet.nn.conv import Conv
from corginet.nn.conv_gat import GatConfig, GatConv
from corginet.nn.conv_linear import GcmcConv, GinConv, LightGcnConv, SageConv, levels_of
from corginet.nn.convs import GcnConv
from corginet.nn.layers import LastLayer, LstmOfLayers, MeanOfLayers

CHANNELS = 6
VALUES = (-1.0, -0.5, 0.0, 0.5, 1.0)


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def a_graph(levels: tuple[float, ...] = VALUES, seed: int = 1) -> InteractionGraph:
    """5 users, 4 items, 11 edges; user 4 and item 3 have none."""
    draw = torch.Generator().manual_seed(seed)
    cells = torch.randperm(12, generator=draw)[:11]
    values = torch.tensor(levels)[torch.randint(len(levels), (11,), generator=draw)]
    return InteractionGraph.build(cells // 3, cells % 3, values, 5, 4)


def neighbour_list(graph: InteractionGraph) -> list[list[tuple[int, float]]]:
    """Per node, its neighbours and the values between."""
    found: list[list[tuple[int, float]]] = [[] for _ in range(graph.n_nodes)]
    for user, item, value in zip(
        graph.users.tolist(), graph.items.tolist(), graph.values.tolist(), strict=True
    ):
        found[user].append((graph.n_users + item, value))
        found[graph.n_users + item].append((user, value))
    return found


def slow_sage(conv: SageConv, states: Tensor, around: list) -> Tensor:
    rows = []
    for i, found in enumerate(around):
        sent = [conv.from_state(states[j]) + v * conv.from_value for j, v in found]
        mean = sum(sent) / len(sent) if sent else torch.zeros(CHANNELS)
        row = torch.relu(conv.own(states[i]) + mean)
        rows.append(row / max(float(row.detach().norm()), 1e-12))
    return torch.stack(rows)


def slow_gin(conv: GinConv, states: Tensor, around: list) -> Tensor:
    rows = []
    for i, found in enumerate(around):
        own = (1 + conv.epsilon) * torch.cat([states[i], torch.zeros(1)])
        sent = [torch.cat([states[j], torch.tensor([v])]) for j, v in found]
        rows.append(torch.relu(conv.mlp(sum(sent, own))))
    return torch.stack(rows)


def slow_gat(conv: GatConv, states: Tensor, around: list) -> Tensor:
    width, rows = CHANNELS // conv.heads, []
    for i, found in enumerate(around):
        parts = []
        for h in range(conv.heads):
            part = slice(h * width, (h + 1) * width)
            sent = [
                (conv.from_state(states[j]) + v * conv.from_value)[part]
                for j, v in [*found, (i, 0.0)]
            ]
            asks = conv.receiver[h] @ conv.from_state(states[i])[part]
            raw = [float((conv.sender[h] @ m + asks).detach()) for m in sent]
            raised = [math.exp(x if x > 0 else 0.2 * x) for x in raw]
            parts.append(sum(r / sum(raised) * m for r, m in zip(raised, sent, strict=True)))
        rows.append(torch.relu(torch.cat(parts) + conv.bias))
    return torch.stack(rows)


def slow_gcmc(conv: GcmcConv, states: Tensor, around: list) -> Tensor:
    rows = []
    for found in around:
        by_level = torch.zeros(conv.n_levels, CHANNELS)
        for j, v in found:
            level = min(int((v + 1) / 2 * conv.n_levels), conv.n_levels - 1)
            by_level[level] = by_level[level] + states[j] @ conv.from_level[level] / len(found)
        rows.append(torch.relu(conv.dense(torch.relu(by_level).flatten())))
    return torch.stack(rows)


def slow_lightgcn(conv: LightGcnConv, states: Tensor, around: list) -> Tensor:
    rows = []
    for found in around:
        row = torch.zeros(CHANNELS)
        for j, _ in found:
            row = row + states[j] / math.sqrt(len(found) * len(around[j]))
        rows.append(row)
    return torch.stack(rows)


@pytest.mark.parametrize(
    ("make", "slow"),
    [
        (lambda: SageConv(CHANNELS, 32), slow_sage),
        (lambda: GinConv(CHANNELS), slow_gin),
        (lambda: GatConv(CHANNELS, 1), slow_gat),
        (lambda: GatConv(CHANNELS, 3), slow_gat),
        (lambda: GcmcConv(CHANNELS, 10), slow_gcmc),
        (lambda: GcmcConv(CHANNELS, 3), slow_gcmc),
        (lambda: LightGcnConv(), slow_lightgcn),
    ],
    ids=["sage", "gin", "gat", "gat-3-heads", "gcmc", "gcmc-3-levels", "lightgcn"],
)
def test_a_layer_equals_its_loop(make, slow) -> None:
    graph, layer = a_graph(), make()
    for parameter in layer.parameters():  # ε and biases start from 0: make them count
        nn.init.normal_(parameter)
    states = torch.randn(graph.n_nodes, CHANNELS)
    layer.eval()
    expected = slow(layer, states, neighbour_list(graph))
    assert (layer(graph, states) - expected).abs().max() <= 1e-10


@pytest.mark.parametrize("conv", [lambda: GatConv(4, 2), lambda: GcmcConv(4, 3), GinConv])
def test_gradients_are_those_of_differences(conv) -> None:
    graph = a_graph()
    layer = conv(4) if conv is GinConv else conv()
    parameters = list(layer.parameters())
    states = torch.randn(graph.n_nodes, 4, requires_grad=True)

    def run(states: Tensor, *_: Tensor) -> Tensor:
        return layer(graph, states)

    assert torch.autograd.gradcheck(run, (states, *parameters))


def of_geometric(name: str) -> type[nn.Module]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        geometric = pytest.importorskip("torch_geometric.nn")
    found: type[nn.Module] = getattr(geometric, name)
    return found


def without_values() -> tuple[InteractionGraph, Tensor, Tensor]:
    graph = a_graph((0.0,))
    edges = torch.stack([graph.sources, graph.targets])
    return graph, edges, torch.randn(graph.n_nodes, CHANNELS)


def copy(target: Tensor, source: Tensor) -> None:
    with torch.no_grad():
        target.copy_(source.view_as(target))


def test_gcn_equals_geometric() -> None:
    graph, edges, states = without_values()
    ours, theirs = GcnConv(CHANNELS), of_geometric("GCNConv")(CHANNELS, CHANNELS)
    nn.init.normal_(ours.bias)
    copy(theirs.lin.weight, ours.from_state.weight)
    copy(theirs.bias, ours.bias)
    assert torch.allclose(ours(graph, states), theirs(states, edges).relu(), atol=1e-6)


def test_sage_equals_geometric() -> None:
    graph, edges, states = without_values()
    ours, theirs = SageConv(CHANNELS, 32).eval(), of_geometric("SAGEConv")(CHANNELS, CHANNELS)
    copy(theirs.lin_l.weight, ours.from_state.weight)
    copy(theirs.lin_l.bias, ours.own.bias)
    copy(theirs.lin_r.weight, ours.own.weight)
    expected = nn.functional.normalize(theirs(states, edges).relu())
    assert torch.allclose(ours(graph, states), expected, atol=1e-6)


def test_gat_adds_content_to_the_senders_states() -> None:
    """Against a copy of each sender for every edge, with the content in its state."""
    graph, conv = a_graph(), GatConv(CHANNELS, 2)
    states, content = torch.randn(9, CHANNELS), torch.randn(2, 11, CHANNELS)
    found = conv(graph, states, (content[0], content[1]))
    for e in range(11):
        for way, (target, source) in enumerate(
            [(graph.users[e], 5 + graph.items[e]), (5 + graph.items[e], graph.users[e])]
        ):
            moved = content.clone()
            moved[1 - way], moved[way] = 0, 0
            moved[way, e] = content[way, e]
            alone = conv(graph, states, (moved[0], moved[1]))
            changed = states.clone()
            changed[source] += content[way, e]
            only = torch.zeros(11, dtype=torch.bool)
            only[e] = True
            one = graph.keep(only)
            by_state = conv(one, changed, (None, None))[target]
            by_content = conv(one, states, (moved[0][only], moved[1][only]))[target]
            assert torch.allclose(by_state, by_content, atol=1e-10)
            others = torch.arange(9) != target
            assert torch.equal(alone[others], conv(graph, states)[others])
    one_way = conv(graph, states, (content[0], None))
    assert torch.allclose(one_way[:5], found[:5], atol=1e-10)
    assert torch.allclose(one_way[5:], conv(graph, states)[5:], atol=1e-10)


@pytest.mark.parametrize("heads", [1, 3])
def test_gat_equals_geometric(heads: int) -> None:
    graph, edges, states = without_values()
    ours = GatConv(CHANNELS, heads)
    theirs = of_geometric("GATConv")(CHANNELS, CHANNELS // heads, heads=heads)
    nn.init.normal_(ours.bias)
    copy(theirs.lin.weight, ours.from_state.weight)
    copy(theirs.att_src, ours.sender)
    copy(theirs.att_dst, ours.receiver)
    copy(theirs.bias, ours.bias)
    assert torch.allclose(ours(graph, states), theirs(states, edges).relu(), atol=1e-6)


def test_gin_equals_geometric() -> None:
    graph, edges, states = without_values()
    ours = GinConv(CHANNELS)
    copy(ours.epsilon, torch.tensor(0.3))
    mlp = nn.Sequential(nn.Linear(CHANNELS, CHANNELS), *ours.mlp[1:])
    theirs = of_geometric("GINConv")(mlp, eps=0.3)  # draws the weights anew
    copy(mlp[0].weight, ours.mlp[0].weight[:, :CHANNELS].contiguous())
    copy(mlp[0].bias, ours.mlp[0].bias)
    assert torch.allclose(ours(graph, states), theirs(states, edges).relu(), atol=1e-6)


def test_jumping_knowledge_equals_geometric() -> None:
    layers = [torch.randn(9, CHANNELS) for _ in range(4)]
    ours = LstmOfLayers(CHANNELS, 3)
    theirs = of_geometric("JumpingKnowledge")("lstm", CHANNELS, 3)
    theirs.lstm.load_state_dict(ours.lstm.state_dict())
    theirs.att.load_state_dict(ours.score.state_dict())
    assert torch.allclose(ours(layers), theirs(layers[1:]), atol=1e-6)


def test_lightgcn_with_its_mean_of_layers_equals_geometric() -> None:
    graph, edges, states = without_values()
    theirs = of_geometric("LightGCN")(graph.n_nodes, CHANNELS, 2)
    copy(theirs.embedding.weight, states)
    once = LightGcnConv()(graph, states)
    ours = MeanOfLayers()([states, once, LightGcnConv()(graph, once)])
    assert torch.allclose(ours, theirs.get_embedding(edges), atol=1e-6)


def test_the_last_layer_is_the_last() -> None:
    assert torch.equal(LastLayer()([torch.zeros(2, 1), torch.ones(2, 1)]), torch.ones(2, 1))


def test_sage_draws_at_most_its_sample_in_training_and_repeats_itself_in_evaluation() -> None:
    users, items = torch.arange(40).repeat_interleave(3), torch.arange(3).repeat(40)
    graph = InteractionGraph.build(users, items, torch.randn(120), 40, 3)
    drawn = neighbours.sampled_mean(graph, torch.float64, 8).matrix.forward_csr
    counts = drawn.crow_indices().diff()
    assert counts[:40].tolist() == [3] * 40
    assert counts[40:].tolist() == [8] * 3
    assert torch.allclose(drawn @ torch.ones(43, 1), torch.ones(43, 1))
    assert all(len(set(row.tolist())) == 8 for row in drawn.col_indices()[120:].view(3, 8))
    conv, states = SageConv(CHANNELS, 8), torch.randn(43, CHANNELS)
    assert not torch.equal(conv(graph, states), conv(graph, states))
    conv.eval()
    assert torch.equal(conv(graph, states), conv(graph, states))


@pytest.mark.parametrize("n", range(2, 11))
def test_evenly_spaced_levels_have_a_bin_each(n: int) -> None:
    values = torch.linspace(-1, 1, n)
    bins = levels_of(values, 10)
    assert len(set(bins.tolist())) == n
    assert levels_of(values.float(), 10).tolist() == bins.tolist()


def test_any_number_has_a_bin() -> None:
    bins = levels_of(torch.linspace(-3, 3, 200), 10)
    assert set(bins.tolist()) == set(range(10))


@pytest.mark.parametrize(
    "conv",
    [SageConv(CHANNELS, 32), GatConv(CHANNELS, 2), GinConv(CHANNELS), GcmcConv(CHANNELS, 10)],
    ids=["sage", "gat", "gin", "gcmc"],
)
def test_a_layer_reads_the_values_and_survives_an_empty_graph(conv: Conv) -> None:
    conv.double().eval()
    graph, states = a_graph(), torch.randn(9, CHANNELS)
    other = graph.with_values(graph.values.flip(0) * 0.9)
    assert not torch.allclose(conv(graph, states), conv(other, states))
    none = graph.keep(torch.zeros(len(graph), dtype=torch.bool))
    assert conv(none, states).isfinite().all()


def test_heads_must_divide_the_channels() -> None:
    with pytest.raises(UserError, match="heads got 4, which does not divide the 6 channels"):
        GatConfig(heads=4).build(CHANNELS)
