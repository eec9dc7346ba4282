"""The blocks beyond the paper: residual values, taste messages, text components, ensembles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import torch
from torch import nn

from conftest import make_tables
from corginet.data.dataset import Dataset
from corginet.data.graph import InteractionGraph
from corginet.data.task import Task
from corginet.estimator import Estimator
from corginet.models.calibration import fit_calibration
from corginet.models.ensemble import Ensemble
from corginet.models.residuals import ResidualValues
from corginet.nn.components import NAME, TextComponents
from corginet.nn.content import Content
from corginet.nn.conv_taste import DAMPING, Direction, TasteConv
from corginet.nn.readout import Pairs
from corginet.nn.words import Words
from corginet.text.stems import Stems
from corginet.training.observation import ObservationConfig
from corginet.world import no_content

RATING, BINARY = Task(kind="rating", low=1, high=5), Task(kind="binary", low=0, high=1)
N_USERS, N_ITEMS = 6, 5
TEXTS = ["red cars and red roads", "a blue car", "old roads", "blue and old", "", "new red car"]


def a_graph(n: int = 17, binary: bool = False) -> InteractionGraph:
    draw = torch.Generator().manual_seed(4)
    cells = torch.randperm(N_USERS * N_ITEMS, generator=draw)[:n]
    values = torch.randint(0, 2, (n,)) if binary else torch.randint(1, 6, (n,), generator=draw)
    return InteractionGraph.build(
        cells // N_ITEMS, cells % N_ITEMS, values.double(), N_USERS, N_ITEMS
    )


def all_pairs() -> Pairs:
    cells = torch.arange(N_USERS * N_ITEMS)
    return Pairs(cells // N_ITEMS, cells % N_ITEMS)


def text_content(texts: list[str], stems: Stems) -> Content:
    vectors = torch.zeros(len(texts), 4)
    for row, text in enumerate(texts):
        for word in text.split():
            vectors[row, sum(map(ord, word)) % 4] += 1
    none = torch.zeros(len(texts), dtype=torch.long)
    return Content(Words(torch.zeros(0, 0), none, none), {"average": vectors}, stems.bag(texts))


def slow_direction(
    d: Direction, own: torch.Tensor, others: torch.Tensor, edges: list[tuple[int, int, float]]
) -> torch.Tensor:
    out = []
    for node in range(len(own)):
        mine = [(s, v) for t, s, v in edges if t == node]
        met = [torch.relu(d.like(others[s]) + v * d.by_value) for s, v in mine]
        liked = [v * d.liked(others[s]) for s, v in mine]
        zero = torch.zeros_like(own[0])
        parts = [own[node], sum(met, zero) / max(1, len(mine))]
        parts.append(sum(liked, zero) / (len(mine) + DAMPING) ** 0.5)
        out.append(d.update(torch.cat(parts)))
    return torch.stack(out)


def test_taste_messages_equal_their_loop() -> None:
    torch.manual_seed(0)
    conv, graph = TasteConv(3, 0.2).double().eval(), a_graph()
    graph = graph.with_values(graph.values - 3)
    states = torch.randn(N_USERS + N_ITEMS, 3, dtype=torch.float64, requires_grad=True)
    users, items = states.split([N_USERS, N_ITEMS])
    rows = list(zip(graph.users.tolist(), graph.items.tolist(), graph.values.tolist(), strict=True))
    slow = torch.cat(
        [
            slow_direction(conv.to_users, users, items, rows),
            slow_direction(conv.to_items, items, users, [(i, u, v) for u, i, v in rows]),
        ]
    )
    fast = conv(graph, states)
    assert torch.allclose(fast, slow, atol=1e-10)
    weigh = torch.randn_like(fast)
    grads = [
        torch.autograd.grad((x * weigh).sum(), [states, *conv.parameters()], retain_graph=True)
        for x in (fast, slow)
    ]
    for a, b in zip(*grads, strict=True):
        assert torch.allclose(a, b, atol=1e-10)


@pytest.mark.parametrize("task", [RATING, BINARY], ids=["rating", "binary"])
def test_outputs_start_from_biases_of_what_is_observed(task: Task) -> None:
    values, graph = ResidualValues(task).double(), a_graph(binary=task.binary)
    content = no_content(N_ITEMS)
    seen = values(graph, content)
    assert float(seen.values.square().mean()) == pytest.approx(1)
    assert seen.statistics is not None and seen.statistics.shape == (N_USERS + N_ITEMS, 5)
    raw = values.output(torch.zeros(30, dtype=torch.float64), graph, all_pairs(), content)
    assert raw.shape == (30,) and raw.isfinite().all() and raw.std() > 0
    raw.sum().backward()
    assert values.log_dampings.grad is not None and values.log_dampings.grad.abs().sum() > 0


def test_without_edges_the_output_is_the_middle() -> None:
    graph = a_graph().keep(torch.zeros(17, dtype=torch.bool))
    values, content = ResidualValues(RATING).double(), no_content(N_ITEMS)
    raw = values.output(torch.zeros(30, dtype=torch.float64), graph, all_pairs(), content)
    assert torch.allclose(raw, torch.full_like(raw, 3.0))
    assert values(graph, content).statistics.isfinite().all()


def test_components_are_the_same_for_a_text_wherever_it_stands() -> None:
    stems = Stems(TEXTS)
    content = text_content(TEXTS, stems)
    components = TextComponents(4, len(stems.row_of), 3)
    components.fit(content)
    whole = components(content).summaries[NAME]
    assert whole.shape == (6, components.width) and whole[4].abs().sum() == 0
    present = whole[[0, 1, 2, 3, 5]]
    assert torch.allclose(present.mean(0), torch.zeros(components.width), atol=1e-5)
    assert present.std(0).max() == pytest.approx(1, abs=0.2)
    new = components(text_content(["old roads", "unheard of"], stems)).summaries[NAME]
    assert torch.allclose(new[0], whole[2], atol=1e-5)
    loaded = TextComponents(4, len(stems.row_of), 3)
    loaded.load_state_dict(components.state_dict())
    assert torch.equal(loaded(content).summaries[NAME], whole)


@pytest.mark.parametrize("texts", [["", ""], ["same", "same"], ["one", "two"]])
def test_components_of_texts_that_differ_in_nothing_are_finite(texts: list[str]) -> None:
    stems = Stems(texts)
    components = TextComponents(4, len(stems.row_of), 3)
    content = text_content(texts, stems)
    components.fit(content)
    assert components(content).summaries[NAME].isfinite().all()


def test_whole_users_and_items_are_hidden_in_some_steps() -> None:
    graph = a_graph()
    policy = ObservationConfig(hidden_share=0.3, hidden_users=0.5, hidden_items=0.5).build()
    rng = np.random.default_rng(0)
    steps = [policy.step(graph, epoch, rng) for epoch in range(40)]
    n_hidden = [len(step.targets) for step in steps]
    assert min(n_hidden) == 5 and max(n_hidden) > 8
    for step in steps:
        assert len(step.graph) + len(step.targets) == len(graph)
        seen = set(zip(step.graph.users.tolist(), step.graph.items.tolist(), strict=True))
        asked = set(zip(step.pairs.users.tolist(), step.pairs.items.tolist(), strict=True))
        assert not seen & asked


def test_calibration_finds_scale_and_shift() -> None:
    draw = torch.Generator().manual_seed(0)
    logits = torch.randn(4000, generator=draw)
    targets = (torch.rand(4000, generator=draw) < logits.sigmoid()).float()
    weights, line = fit_calibration((3 * logits + 1)[None], targets, BINARY)
    assert weights.tolist() == [1.0]
    assert line.tolist() == pytest.approx([1 / 3, -1 / 3], abs=0.08)
    few = fit_calibration(torch.tensor([[9.0], [1.0]]), torch.tensor([0.0]), BINARY)
    assert few.line.isfinite().all() and float(few.weights.sum()) == pytest.approx(1)


def test_the_better_member_is_trusted_more() -> None:
    draw = torch.Generator().manual_seed(1)
    good, bad = torch.randn(2, 3000, generator=draw)
    targets = 3 + good + 0.5 * torch.randn(3000, generator=draw)
    weights, _ = fit_calibration(torch.stack([3 + good, 3 + bad]), targets, RATING)
    assert weights[0] > 0.8 and weights[1] >= 0


def test_what_else_is_asked_changes_no_prediction() -> None:
    """A crowd of new items with alike texts, and of new users, beside the same question."""
    dataset = Dataset.read(*make_tables(), missing_text="allow")
    settings = {"channels": 4, "hidden": 5, "encoder": "hashed:8", "precision": "fp32"}
    e = Estimator("corgi-plus", members=2, epochs=2, **settings).fit(dataset)
    asked = [("u1", "fresh"), ("u2", "i3"), ("stranger", "i4")]
    crowd = [(f"new{n}", f"copy{n}") for n in range(80)]
    found = []
    for pairs in (asked, asked + crowd):
        table = pl.DataFrame(pairs, schema=["user", "item"], orient="row")
        items = table.filter(~pl.col("item").str.starts_with("i"))
        texts = items.select("item", text=pl.lit("red fast new"))
        found.append(e.predict(table, items=texts)["prediction"].head(3).to_list())
    assert found[0] == pytest.approx(found[1], abs=1e-6)


def test_an_ensemble_is_the_mean_of_its_members_and_each_learns() -> None:
    dataset = Dataset.read(*make_tables(), missing_text="allow")
    settings = {"channels": 4, "hidden": 5, "encoder": "hashed:8", "precision": "fp32"}
    e = Estimator("corgi-plus", members=3, epochs=2, **settings).fit(dataset)
    model = e.model
    assert isinstance(model, Ensemble) and int(model.turn) == 6
    pairs, _ = e._part(1)
    content = model.read(e.content())
    with torch.no_grad():
        each = [m(e.training_graph(), pairs, content) for m in model.graph_models()]
        average = sum(w * raw for w, raw in zip(model.weights, each, strict=True))
        expected = model.line[0] * average + model.line[1]
        assert torch.allclose(model(e.training_graph(), pairs, e.content()), expected, atol=1e-5)
    assert not torch.equal(each[0], each[1])


def test_text_alone_explains_new_items() -> None:
    """Planted: every user likes one word. New items are told apart by their text alone."""
    rng = np.random.default_rng(0)
    words = ["red", "blue", "green", "grey"]
    holds = rng.random((60, 4)) < 0.5
    likes = rng.integers(4, size=50)
    cells = rng.choice(50 * 60, 1500, replace=False)
    users, items = cells // 60, cells % 60
    values = np.where(holds[items, likes[users]], 5.0, 1.0)
    ratings = pl.DataFrame({"user": users, "item": items, "value": values})
    texts = [" ".join(w for w, h in zip(words, row, strict=True) if h) or "none" for row in holds]
    table = pl.DataFrame({"item": np.arange(60), "text": texts})
    blank = table.with_columns(text=pl.lit(""))
    found = {}
    for name, content in (("real", table), ("none", blank)):
        dataset = Dataset.read(ratings, content, missing_text="allow")
        settings = {"members": 1, "epochs": 150, "split": "item", "encoder": "hashed:32"}
        e = Estimator("corgi-plus", channels=16, precision="fp32", **settings).fit(dataset)
        found[name] = e.report["metrics"]["rmse"]
    assert found["real"] < 0.8 * found["none"]


def test_a_network_without_its_parts_is_the_bias_model() -> None:
    """Before training the output is zero over biases: nothing to unlearn."""
    dataset = Dataset.read(*make_tables(), missing_text="allow")
    settings = {"channels": 4, "hidden": 5, "encoder": "hashed:8", "precision": "fp32"}
    e = Estimator("corgi-plus", members=1, epochs=1, **settings).fit(dataset)
    member = next(iter(e.model.graph_models()))  # type: ignore[union-attr,operator]
    nn.init.zeros_(member.readout.weight)
    nn.init.zeros_(member.readout.bias)
    pairs, graph = e._part(1)[0], e.training_graph()
    with torch.no_grad():
        raw = member(graph, pairs, e.model.read(e.content()))  # type: ignore[operator]
        expected = member.values.output(
            torch.zeros(len(raw)),
            graph,
            pairs,
            e.model.read(e.content()),  # type: ignore[operator]
        )
    assert torch.allclose(raw, expected)
    assert replace(graph, statistics=None).statistics is None
