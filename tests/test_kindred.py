"""What kindred users and items tell of a pair, against loops."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from corginet.data.graph import InteractionGraph
from corginet.nn import kindred
from corginet.nn.alike import Source
from corginet.nn.biases import damped_biases
from corginet.nn.content import Content
from corginet.nn.kindred import JUDGED, MET, Kindred, Scope
from corginet.nn.readout import Pairs
from corginet.world import no_content
from test_plus import N_ITEMS, N_USERS, a_graph, all_pairs

PLAIN = Scope.of(N_USERS, N_ITEMS)
READING = Scope.of(N_USERS, N_ITEMS, Source("average", N_ITEMS, N_USERS))


def a_content() -> Content:
    """One item has no text."""
    torch.manual_seed(5)
    vectors = torch.randn(N_ITEMS, 3, dtype=torch.float64)
    vectors[3] = 0
    return replace(no_content(N_ITEMS), summaries={"average": vectors})


def shrunk_cosines(matrix: torch.Tensor, shrinkage: float, usual: float) -> torch.Tensor:
    """Of the columns, entry by entry; the fourth power of what is above 0."""
    n = matrix.shape[1]
    out = torch.zeros(n, n, dtype=matrix.dtype)
    for i in range(n):
        for j in range(n):
            if i != j:
                sizes = [float(matrix[:, k].square().sum()) + shrinkage * usual for k in (i, j)]
                cosine = float(matrix[:, i] @ matrix[:, j]) / max(1e-9, sizes[0] * sizes[1]) ** 0.5
                out[i, j] = max(0.0, cosine) ** 4
    return out


def by_loops(model: Kindred, graph: InteractionGraph, content: Content) -> torch.Tensor:
    rest = graph.values - damped_biases(graph, 5.0, 5.0).of(graph.users, graph.items)
    given = torch.zeros(N_USERS, N_ITEMS, dtype=torch.float64)
    seen = torch.zeros_like(given)
    given[graph.users, graph.items], seen[graph.users, graph.items] = rest, 1.0
    usual = float(rest.square().mean())
    judged = shrunk_cosines(given, JUDGED, usual)
    agreeing = shrunk_cosines(given.t(), JUDGED, usual)
    met = shrunk_cosines(seen, MET, 1.0)
    read = shrunk_cosines(content.summaries["average"].t(), 0.0, 0.0) if model.scope.source else met
    out = []
    for u in range(N_USERS):
        for m in range(N_ITEMS):
            total = 0.0
            for k, table in enumerate([judged, agreeing, met, read][: len(model.weights)]):
                others = range(N_USERS) if k == 1 else range(N_ITEMS)
                own = m if k != 1 else u
                cells = [(j, (j, m) if k == 1 else (u, j)) for j in others]
                there = [(float(table[j, own]), cell) for j, cell in cells if seen[cell]]
                sums = sum(s * float(given[cell]) for s, cell in there)
                weight = sum(s for s, _ in there) + float(model.dampings[k].detach())
                total += float(model.weights[k].detach()) * sums / weight
            out.append(total)
    return torch.tensor(out, dtype=torch.float64)


@pytest.mark.parametrize("scope", [READING, PLAIN], ids=["with texts", "without"])
def test_kin_tell_what_their_loops_tell(scope: Scope) -> None:
    graph = a_graph()
    graph = graph.keep((graph.users != 2) & (graph.items != 1))  # nothing is known of these
    model, content = Kindred(scope).double(), a_content()
    with torch.no_grad():
        model.log_dampings += 0.03 * torch.arange(len(model.weights))
    found = model(graph, all_pairs(), content)
    assert torch.allclose(found, by_loops(model, graph, content), atol=1e-10)
    some = torch.tensor([28, 3, 3, 11])  # few columns of the tables are made
    few = model(graph, Pairs(*(ends[some] for ends in all_pairs())), content)
    assert torch.allclose(few, found[some], atol=1e-12)
    found.sum().backward()
    for parameter in model.parameters():
        assert parameter.grad is not None and parameter.grad.abs().min() > 0


def test_too_many_to_compare_and_nothing_to_compare_tell_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, content = a_graph(), a_content()
    none = graph.keep(torch.zeros(17, dtype=torch.bool))
    assert not Kindred(READING).double()(none, all_pairs(), content).any()
    monkeypatch.setattr(kindred, "TABLE", N_USERS**2 - 1)
    told = kindred.told_by_kin(graph, all_pairs(), content, Scope.of(N_USERS, N_ITEMS))
    assert told.sums[0].any() and not told.sums[1].any() and told.sums[2].any()
    monkeypatch.setattr(kindred, "TABLE", N_ITEMS * N_USERS - 1)
    nobody = Kindred(Scope.of(N_USERS, N_ITEMS)).double()
    assert not nobody(graph, all_pairs(), content).any()


def test_networks_that_take_turns_share_what_kin_tell() -> None:
    graph, content, pairs = a_graph(), a_content(), all_pairs()
    first = kindred.told_by_kin(graph, pairs, content, READING)
    assert kindred.told_by_kin(graph, pairs, content, READING) is first
    assert kindred.told_by_kin(graph, pairs, content, PLAIN) is not first
    other = kindred.told_by_kin(graph, all_pairs(), content, READING)
    assert other is not first and torch.equal(other.sums, first.sums)


def test_closeness_is_what_kin_weigh_times_what_they_say() -> None:
    graph, content = a_graph(), a_content()
    pair = Pairs(torch.tensor([4]), torch.tensor([2]))
    graph = graph.keep((graph.users != 4) | (graph.items != 2))
    rest = graph.values - damped_biases(graph, 5.0, 5.0).of(graph.users, graph.items)
    close = kindred.closeness(graph, pair, content)
    told = kindred.told_by_kin(graph, pair, content, PLAIN)
    mine = graph.users == 4
    assert not close[(graph.users != 4) & (graph.items != 2)].any()
    # both item kinds together, as absolute values would add up
    signs = rest.sign()
    assert float((close * signs)[mine].sum()) == pytest.approx(float(told.sums[[0, 2]].sum()))
    assert float((close * signs)[~mine].sum()) == pytest.approx(float(told.sums[1].sum()))
