"""Every layer against the literal formulas in float64, values and gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from corginet.bench.attention import max_errors
from corginet.bench.literal import literal_attention, literal_forward
from corginet.data.graph import InteractionGraph
from corginet.data.task import Task
from corginet.models.graph_model import GraphModel
from corginet.nn.attention import ATTENTIONS, AdditiveAttention, DotProductAttention, PairBatches
from corginet.nn.content import Content
from corginet.nn.convs import EdgeStateConv, GcnConv
from corginet.nn.readout import Pairs, Readout
from corginet.nn.sparse import DropoutMasks, Incidence, SparseMatrix, dot_relu, sum_relu
from corginet.nn.words import WordProjection, Words
from corginet.recipes import recipe


@pytest.fixture(autouse=True)
def double() -> object:
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def graph_5_4() -> InteractionGraph:
    """5 users, 4 items, 7 edges; the last user and the last item have none."""
    users = torch.tensor([0, 1, 2, 3, 0, 1, 2])
    items = torch.tensor([2, 0, 1, 0, 1, 2, 2])
    return InteractionGraph.build(users, items, torch.tensor([1.0, 5, 3, 2, 4, 1, 5]), 5, 4)


def words_of_4() -> Words:
    """4 items with 3, 0, 1 and 2 words."""
    vectors = torch.randn(6, 11)
    return Words(vectors, torch.tensor([0, 3, 3, 4]), torch.tensor([3, 0, 1, 2]))


@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_is_the_direct_formula(name: str) -> None:
    assert max_errors(name) < 1e-10


@pytest.mark.parametrize("name", ATTENTIONS)
def test_content_of_an_item_without_words_is_zero(name: str) -> None:
    words, graph = words_of_4(), graph_5_4()
    attention = ATTENTIONS[name](6, 11)
    batches = PairBatches(graph.users, graph.items, words)
    out = attention(torch.randn(5, 6), words.vectors, batches)
    assert (out[graph.items == 1] == 0).all()
    assert (out[graph.items == 0] != 0).all()


def test_additive_attention_has_one_top_word_for_all_users() -> None:
    """The paper's additive form ranks words alike for everyone; the dot-product form does not."""
    words = Words(torch.randn(30, 8), torch.tensor([0]), torch.tensor([30]))
    users, items = torch.arange(200), torch.zeros(200, dtype=torch.long)
    tops = {}
    for kind in (AdditiveAttention, DotProductAttention):
        found = kind(6, 8).weights(
            torch.randn(200, 6) * 3, words.vectors, PairBatches(users, items, words)
        )
        tops[kind] = len({int(w.argmax()) for _, weights in found for w in weights[0]})
    assert tops[AdditiveAttention] == 1
    assert tops[DotProductAttention] > 5


def test_edge_state_convolution_by_loops() -> None:
    graph, conv = graph_5_4(), EdgeStateConv(6, "mean", 0.0)
    states, content = torch.randn(9, 6), torch.randn(7, 6)
    found = conv(graph, states, (content, content))
    for node in range(9):
        messages: list[Tensor] = []
        for edge in range(7):
            u, i = int(graph.users[edge]), int(graph.items[edge]) + 5
            if node not in (u, i):
                continue
            sender = states[i if node == u else u]
            lifted = conv.edge_state(sender) + graph.values[edge] * conv.edge_value
            state = torch.relu(lifted) + content[edge]
            messages.append(torch.relu(conv.from_state(sender) + conv.from_edge(state)))
        mean = torch.stack(messages).mean(0) if messages else torch.zeros(6)
        wanted = torch.relu(conv.update(torch.cat([states[node], mean])))
        assert (found[node] - wanted).abs().max() < 1e-10


@pytest.mark.parametrize("aggregate", ["sum", "max"])
def test_other_aggregations(aggregate: str) -> None:
    graph, conv = graph_5_4(), EdgeStateConv(6, aggregate, 0.0)  # type: ignore[arg-type]
    states = torch.randn(9, 6, requires_grad=True)
    out = conv(graph, states)
    assert out.shape == (9, 6)
    incidence = Incidence(graph.targets, 9)
    rows = torch.randn(14, 3)
    for node in range(9):
        mine = rows[graph.targets == node]
        wanted = mine.sum(0) if aggregate == "sum" else mine.max(0).values if len(mine) else 0
        got = (incidence.sum(rows) if aggregate == "sum" else incidence.max(rows))[node]
        assert torch.allclose(got, torch.as_tensor(wanted, dtype=got.dtype).expand(3))
    out.sum().backward()
    assert states.grad is not None


def test_gcn_against_pytorch_geometric() -> None:
    geometric = pytest.importorskip("torch_geometric.nn")
    graph, conv = graph_5_4(), GcnConv(6)
    states = torch.randn(9, 6)
    other = geometric.GCNConv(6, 6)
    other.lin.weight.data = conv.from_state.weight.data
    edges = torch.stack([graph.sources, graph.targets])
    wanted = torch.relu(other(states, edges))
    silent = graph.with_values(torch.zeros(7))
    assert (conv(silent, states) - wanted).abs().max() < 1e-10


def test_fused_moves_have_the_gradients_of_plain_ones() -> None:
    index, target = torch.randint(5, (300,)), torch.randint(7, (300,))
    a = torch.randn(5, 6, requires_grad=True)
    b = torch.randn(300, 6, requires_grad=True)
    w = torch.randn(6, requires_grad=True)
    hidden = torch.relu(a[index] + b)
    plain = [torch.zeros(7, 6).index_add(0, target, hidden), hidden @ w]
    fused = [sum_relu([a, b], [index, None], target, 7), dot_relu([a, b], [index, None], w)]
    for x, y in zip(plain, fused, strict=True):
        grad = torch.randn_like(x)
        wanted = torch.autograd.grad((x * grad).sum(), [a, b], retain_graph=True)
        got = torch.autograd.grad((y * grad).sum(), [a, b], retain_graph=True)
        assert torch.allclose(x, y)
        assert all(torch.allclose(p, q) for p, q in zip(wanted, got, strict=True))


def test_fused_dropout_is_the_same_backward_and_unbiased() -> None:
    torch.manual_seed(3)
    a = torch.rand(2000, 8) + 0.1
    a.requires_grad_()
    out = sum_relu([a], [torch.arange(2000)], torch.arange(2000), 2000, rate=0.3)
    (grad,) = torch.autograd.grad(out.sum(), [a])
    assert torch.allclose(out, grad * a)  # what was dropped forward gets no gradient
    assert abs(float((out == 0).double().mean()) - 0.3) < 0.02
    assert abs(float((out / a).detach().mean()) - 1) < 0.03
    assert DropoutMasks(0.5, torch.float64, 3).window(2, torch.Size([4, 5])).shape == (4, 5)


def test_sparse_matrix_multiplies_both_ways() -> None:
    rows, columns = torch.tensor([0, 2, 2]), torch.tensor([1, 0, 3])
    matrix = SparseMatrix(rows, columns, torch.tensor([1.0, 2, 3]), (3, 4))
    dense = torch.zeros(3, 4)
    dense[rows, columns] = torch.tensor([1.0, 2, 3])
    x = torch.randn(4, 2, requires_grad=True)
    out = matrix @ x
    assert torch.allclose(out, dense @ x)
    grad = torch.randn_like(out)
    assert torch.allclose(torch.autograd.grad((out * grad).sum(), x)[0], dense.t() @ grad)


def test_readout_is_the_formula() -> None:
    graph, readout = graph_5_4(), Readout(6, 10, 0.0)
    states, none = torch.randn(9, 6), Content(words_of_4())
    pairs = Pairs(torch.tensor([0, 4]), torch.tensor([3, 1]))
    found = readout(graph, states, pairs, none)
    for n, (u, i) in enumerate([(0, 8), (4, 6)]):
        hidden = torch.relu(readout.from_user(states[u]) + readout.from_item(states[i]))
        assert abs(float((found[n] - hidden @ readout.weight - readout.bias).detach())) < 1e-10


@pytest.mark.parametrize("name", ["corgi-co", "corgi-dp", "corgi-dynamic"])
def test_whole_network_is_the_literal_one(name: str) -> None:
    graph, words = graph_5_4(), words_of_4()
    task = Task(kind="rating", low=1, high=5)
    model = recipe(name).config.model.build(task, 5, 4, {"words": 11}, 0)
    assert isinstance(model, GraphModel)
    model.eval()
    pairs = Pairs(torch.tensor([0, 4, 2]), torch.tensor([3, 1, 2]))
    found = model(graph, pairs, Content(words))
    wanted = literal_forward(model, graph, pairs, Content(words), rate=0.0)
    assert (found - wanted).abs().max() < 1e-10
    grads = [
        torch.autograd.grad(x.square().sum(), list(model.parameters()), allow_unused=True)
        for x in (found, wanted)
    ]
    for a, b in zip(*grads, strict=True):
        assert (a is None) == (b is None)
        assert a is None or (a - b).abs().max() < 1e-9


def test_projection_of_words() -> None:
    words, project = words_of_4(), WordProjection(11, 3, n_layers=2)
    first, second = project(words)
    both = words.vectors @ project.weight.t()
    assert torch.allclose(torch.cat([first, second], 1), both)
    grad = torch.randn(6, 3)
    (found,) = torch.autograd.grad((second * grad).sum(), [project.weight])
    assert torch.allclose(found[3:], grad.t() @ words.vectors)
    assert (found[:3] == 0).all()


def test_bf16_words_train_in_bf16() -> None:
    torch.set_default_dtype(torch.float32)
    words, project = words_of_4(), WordProjection(11, 3)
    half = Words(words.vectors.float().bfloat16(), words.starts, words.counts)
    (projected,) = project(half)
    assert projected.dtype == torch.bfloat16
    projected.float().sum().backward()
    assert project.weight.grad is not None and project.weight.grad.dtype == torch.float32


def test_literal_attention_ignores_padding() -> None:
    attention = DotProductAttention(6, 11)
    words = words_of_4()
    users = torch.randn(5, 6)
    pairs = (torch.tensor([1, 1]), torch.tensor([2, 0]))
    both = literal_attention(attention, users, words.vectors, words, pairs)
    alone = literal_attention(attention, users, words.vectors, words, (pairs[0][:1], pairs[1][:1]))
    assert torch.allclose(both[:1], alone)
