"""What alike texts say of an item, and of a user's taste for it, against loops."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from corginet.models.residuals import ReadingResiduals, ResidualValues
from corginet.nn import alike, histories
from corginet.nn.alike import FAINT, Source, taste_for, text_means
from corginet.nn.readout import Pairs
from corginet.world import no_content
from test_plus import N_ITEMS, N_USERS, RATING, a_graph, all_pairs

AVERAGE = Source("average", N_ITEMS, N_USERS)


def test_means_over_alike_texts_equal_their_loop() -> None:
    """Two neighbours per item, of five; one item has no text, and one neighbour no edges."""
    torch.manual_seed(2)
    vectors = torch.randn(N_ITEMS, 3, dtype=torch.float64)
    vectors[2] = 0
    content = replace(no_content(N_ITEMS), summaries={"average": vectors})
    graph = a_graph()
    graph = graph.keep(graph.items != 4)
    numbers = torch.randn(N_ITEMS, dtype=torch.float64)
    found = text_means(numbers, graph, content, AVERAGE, 2)
    unit = vectors / vectors.norm(dim=1, keepdim=True)
    for m in range(N_ITEMS):
        others = [j for j in range(N_ITEMS) if j not in (m, 2)]
        others = sorted(others, key=lambda j: -float(unit[m] @ unit[j]))[:2] if m != 2 else []
        degrees = {j: int((graph.items == j).sum()) for j in others}
        kernel = {j: float(torch.exp(8 * (unit[m] @ unit[j] - 1))) for j in others}
        w = {j: kernel[j] * degrees[j] / (degrees[j] + 5) for j in others}
        expected = sum(w[j] * float(numbers[j]) for j in others) / max(FAINT, sum(w.values()))
        assert float(found[m]) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("table", [2**26, 0], ids=["table", "computed"])
def test_tastes_equal_their_loop(table: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike, "TABLE", table)
    monkeypatch.setattr(histories, "CHUNK", 7)  # in several parts
    torch.manual_seed(3)
    vectors = torch.randn(N_ITEMS, 3, dtype=torch.float64)
    vectors[1] = 0
    content = replace(no_content(N_ITEMS), summaries={"average": vectors})
    graph, pairs = a_graph(), all_pairs()
    graph = graph.keep(graph.users != 3)  # a user without values
    values = torch.randn(len(graph), dtype=torch.float64)
    found = taste_for(values, graph, pairs, content, AVERAGE)
    unit = vectors / vectors.norm(dim=1, keepdim=True).clamp(min=1e-9)
    k = (6 * (unit @ unit.t() - 1)).exp()
    k[1], k[:, 1] = 0, 0
    k.fill_diagonal_(0)
    usual = float(k.mean(0)[graph.items].sum()) / N_USERS
    for row, (u, m) in enumerate(zip(*(x.tolist() for x in pairs), strict=True)):
        mine = torch.nonzero(graph.users == u).flatten()
        weights = k[m, graph.items[mine]]
        expected = float(weights @ values[mine]) / (float(weights.sum()) + 2 * usual + FAINT)
        assert float(found[row]) == pytest.approx(expected, abs=1e-10)
    none = Pairs(pairs.users[:0], pairs.items[:0])
    assert len(taste_for(values, graph, none, content, AVERAGE)) == 0


def test_biases_lean_on_alike_texts_where_values_are_few() -> None:
    """Item 0 is new and reads like item 1; its own bias is what item 1's says."""
    vectors = torch.eye(N_ITEMS, dtype=torch.float64)
    vectors[0] = vectors[1] + 0.01
    content = replace(no_content(N_ITEMS), summaries={"average": vectors})
    graph = a_graph()
    new = graph.keep(graph.items != 0)
    plain, reading = ResidualValues(RATING).double(), ReadingResiduals(RATING, AVERAGE).double()
    nn.init.zeros_(reading.taste)
    asked = Pairs(torch.tensor([2, 2]), torch.tensor([0, 1]))
    zero = torch.zeros(2, dtype=torch.float64)
    before, after = (v.output(zero, new, asked, content).detach() for v in (plain, reading))
    bias = plain._biases(new, content).items.detach()
    assert float(bias[0]) == 0 and float(bias[1].abs()) > 0.05
    assert float(after[0] - before[0]) == pytest.approx(float(bias[1]), rel=1e-2)
    assert abs(float(after[1] - before[1])) < abs(float(after[0] - before[0]))
    # an item takes no part in its own mean
    for m in range(N_ITEMS):
        alone = torch.zeros(N_ITEMS, dtype=torch.float64).index_fill(0, torch.tensor([m]), 1.0)
        assert float(text_means(alone, graph, content, AVERAGE, 3)[m]) == 0
