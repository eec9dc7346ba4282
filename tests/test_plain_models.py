"""Models that are not graph networks: what they compute, and what they must not see."""

from __future__ import annotations

import math

import polars as pl
import pytest
import torch
from torch import nn

from corginet.data.graph import InteractionGraph
from corginet.data.task import Task
from corginet.estimator import Estimator
from corginet.models.dmf import DmfConfig
from corginet.models.factors import FactorConfig, Factors, rows_of
from corginet.models.features import PairFeatures
from corginet.models.plain import BiasModel, NeighbourModel
from corginet.models.pvae import PvaeConfig
from corginet.models.values import penalty_of
from corginet.nn.biases import damped_biases
from corginet.nn.content import Content
from corginet.nn.readout import Pairs
from corginet.nn.words import Words
from corginet.training.closed_form import ClosedForm
from corginet.training.trainer import TrainingData

RATING, BINARY = Task(kind="rating", low=1, high=5), Task(kind="binary", low=0, high=1)
N_USERS, N_ITEMS = 12, 7
PLAIN = ["mean", "bias", "knn", "ridge", "boosting"]


def a_graph(seed: int = 0, n: int = 40) -> InteractionGraph:
    draw = torch.Generator().manual_seed(seed)
    cells = torch.randperm(N_USERS * N_ITEMS, generator=draw)[:n]
    values = torch.randint(1, 6, (n,), generator=draw).float()
    return InteractionGraph.build(cells // N_ITEMS, cells % N_ITEMS, values, N_USERS, N_ITEMS)


def a_content() -> Content:
    none = torch.zeros(N_ITEMS, dtype=torch.long)
    vectors = torch.randn(N_ITEMS, 5, generator=torch.Generator().manual_seed(3))
    return Content(Words(torch.zeros(0, 0), none, none), {"average": vectors})


def all_pairs() -> Pairs:
    cells = torch.arange(N_USERS * N_ITEMS)
    return Pairs(cells // N_ITEMS, cells % N_ITEMS)


def the_data() -> TrainingData:
    pairs = Pairs(torch.tensor([0, 3, 5]), torch.tensor([1, 1, 6]))
    return TrainingData(a_graph(), pairs, torch.tensor([1.0, 4.0, 5.0]), a_content(), RATING)


def test_damped_biases_solve_their_normal_equations() -> None:
    graph = a_graph()
    found = damped_biases(graph, 3.0, 2.0)
    rest = graph.values - found.of(graph.users, graph.items)
    for user in range(N_USERS):
        mine = graph.users == user
        assert float(rest[mine].sum() - 3.0 * found.users[user]) == pytest.approx(0, abs=1e-4)
    for item in range(N_ITEMS):
        mine = graph.items == item
        assert float(rest[mine].sum() - 2.0 * found.items[item]) == pytest.approx(0, abs=2e-2)


def slow_neighbours(model: NeighbourModel, graph: InteractionGraph, user: int, item: int) -> float:
    biases = model.bias.biases(graph)
    rest = torch.zeros(N_USERS, N_ITEMS)
    rest[graph.users, graph.items] = graph.values - biases.of(graph.users, graph.items)
    seen = torch.zeros(N_USERS, N_ITEMS, dtype=torch.bool)
    seen[graph.users, graph.items] = True
    variance = float(rest[seen].square().mean())
    shrinkage, damping = model.settings.tolist()
    similar = []
    for other in range(N_ITEMS):
        norms = float(rest[:, item].norm() * rest[:, other].norm())
        s = float(rest[:, item] @ rest[:, other]) / (norms + shrinkage * variance)
        similar.append((0.0 if other == item else max(0.0, s), other))
    best = sorted(similar, reverse=True)[: model.most]
    near = sum(s * float(rest[user, j]) for s, j in best if seen[user, j])
    total = sum(s for s, j in best if seen[user, j])
    base = float(biases.mean + biases.users[user] + biases.items[item])
    return base + near / (total + damping)


def test_neighbours_equal_their_loop() -> None:
    model, graph, pairs = NeighbourModel(RATING, 3), a_graph(), all_pairs()
    model.settings.copy_(torch.tensor([2.0, 0.5]))
    got = model(graph, pairs, a_content())
    for row, (user, item) in enumerate(
        zip(pairs.users.tolist(), pairs.items.tolist(), strict=True)
    ):
        assert float(got[row]) == pytest.approx(slow_neighbours(model, graph, user, item), abs=1e-4)


def test_out_of_fold_features_of_an_edge_do_not_depend_on_its_value() -> None:
    features, data = PairFeatures(RATING, "average", 5, 4), the_data()
    features.fit(data)
    before, _ = features.out_of_fold(data.graph, data.content)
    for edge in range(0, len(data.graph), 7):
        values = data.graph.values.clone()
        values[edge] = 6 - values[edge] + 0.5
        after, _ = features.out_of_fold(data.graph.with_values(values), data.content)
        assert torch.equal(before[edge], after[edge])
        assert not torch.equal(before, after)


def a_model(name: str, task: Task = RATING) -> nn.Module:
    torch.manual_seed(0)
    configs = {
        "factors": FactorConfig(n_factors=3),
        "implicit": FactorConfig(n_factors=3, implicit=True),
        "dmf": DmfConfig(hidden=6, n_factors=4),
        "pvae": PvaeConfig(channels=4, hidden=6, n_latent=3),
    }
    return configs[name].build(task, N_USERS, N_ITEMS, {}, 0).eval()


@pytest.mark.parametrize("name", ["factors", "implicit", "dmf", "pvae"])
@pytest.mark.parametrize("task", [RATING, BINARY], ids=["rating", "binary"])
def test_every_parameter_learns_and_strangers_are_predicted(name: str, task: Task) -> None:
    model, graph = a_model(name, task).train(), a_graph()
    if task.binary:
        graph = graph.with_values((graph.values > 3).float())
    loss = (model(graph, all_pairs(), a_content()) - 1).square().mean() + penalty_of(model)
    loss.backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
    bigger = InteractionGraph.build(
        graph.users, graph.items, graph.values, N_USERS + 2, N_ITEMS + 1
    )
    strangers = Pairs(torch.tensor([N_USERS + 1, 0, N_USERS]), torch.tensor([0, N_ITEMS, N_ITEMS]))
    raw = model.eval()(bigger, strangers, a_content())
    assert raw.shape == (3,) and raw.isfinite().all()
    assert model(bigger, Pairs(strangers.users[:0], strangers.items[:0]), a_content()).shape == (0,)


@pytest.mark.parametrize("name", ["dmf", "pvae"])
def test_networks_read_the_observed_values_in_any_order(name: str) -> None:
    model, graph, pairs = a_model(name), a_graph(), all_pairs()
    before = model(graph, pairs, a_content())
    order = torch.randperm(len(graph))
    shuffled = InteractionGraph.build(
        graph.users[order], graph.items[order], graph.values[order], N_USERS, N_ITEMS
    )
    assert torch.allclose(before, model(shuffled, pairs, a_content()), atol=1e-5)
    flipped = model(graph.with_values(6 - graph.values), pairs, a_content())
    assert not torch.allclose(before, flipped)


@pytest.mark.parametrize("name", ["factors", "implicit"])
def test_factors_read_no_value_at_all(name: str) -> None:
    model, graph, pairs = a_model(name), a_graph(), all_pairs()
    flipped = model(graph.with_values(6 - graph.values), pairs, a_content())
    assert torch.equal(model(graph, pairs, a_content()), flipped)


def test_the_penalty_of_factors_counts_every_row_once() -> None:
    model, graph = a_model("factors"), a_graph()
    assert isinstance(model, Factors)
    model(graph, Pairs(graph.users, graph.items), a_content())
    present = [graph.users.unique(), graph.items.unique()]
    squares = (
        model.user_factors[present[0]].square().sum()
        + model.item_factors[present[1]].square().sum()
    )
    assert torch.allclose(model.penalty(), 7.0 * squares / len(graph))


def test_the_divergence_is_that_of_a_gaussian_from_the_standard_one() -> None:
    model, graph = a_model("pvae"), a_graph()
    pairs = Pairs(graph.users[:9], graph.items[:9])
    model(graph, pairs, a_content())
    values = (graph.values - graph.mean_value) / RATING.scale
    mean, log_variance = model.encoder(graph.with_values(values))
    found = torch.distributions.Normal(mean, (0.5 * log_variance).exp())
    standard = torch.distributions.Normal(torch.zeros_like(mean), torch.ones_like(mean))
    expected = torch.distributions.kl_divergence(found, standard).sum() / 9
    assert torch.allclose(model.penalty(), model.kl_weight * expected)


def test_rows_that_came_later_are_zero() -> None:
    table = torch.ones(3, 2)
    assert rows_of(table, torch.tensor([2, 3])).tolist() == [[1, 1], [0, 0]]
    assert rows_of(table[:, 0], torch.tensor([7])).tolist() == [0]


def frames(binary: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    draw = torch.Generator().manual_seed(1)
    cells = torch.randperm(30 * 20, generator=draw)[:300]
    taste, level = torch.randn(30, generator=draw), torch.randn(20, generator=draw)
    users, items = cells // 20, cells % 20
    values = (3 + taste[users] + level[items]).round().clamp(1, 5)
    if binary:
        values = (values > 3).float()
    ratings = pl.DataFrame(
        {
            "user": [f"u{u}" for u in users.tolist()],
            "item": [f"i{i}" for i in items.tolist()],
            "value": values.tolist(),
        }
    )
    texts = [f"word{i % 3} word{i % 5} common" for i in range(20)]
    return ratings, pl.DataFrame({"item": [f"i{i}" for i in range(20)], "text": texts})


@pytest.mark.parametrize("binary", [False, True], ids=["rating", "binary"])
@pytest.mark.parametrize("name", [*PLAIN, "mf", "svdpp", "dmf", "pvae"])
def test_it_fits_beats_the_mean_and_is_saved(
    name: str, binary: bool, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORGINET_CACHE", str(tmp_path / "cache"))
    ratings, items = frames(binary)
    settings = {} if name in PLAIN else {"epochs": 60}
    fitted = Estimator(name, encoder="hashed:8", **settings).fit(ratings, items)
    assert isinstance(fitted.model, ClosedForm) == (name in PLAIN)
    plain = Estimator("mean").fit(ratings, items).report["validation"]["rmse"]
    slack = 1e-9 if name == "mean" else -0.02
    assert fitted.report["validation"]["rmse"] <= plain + slack
    asked = pl.DataFrame({"user": ["u1", "stranger", "u2"], "item": ["i2", "i3", "new"]})
    before = fitted.predict(asked)["prediction"]
    assert all(math.isfinite(x) for x in before)
    fitted.save(tmp_path / "run")
    after = Estimator.load(tmp_path / "run").predict(asked)["prediction"]
    assert before.to_list() == after.to_list()


def test_the_bias_model_is_its_two_dampings() -> None:
    data, model = the_data(), BiasModel(RATING)
    model.fit_closed_form(data)
    before = model(data.graph, data.validation, data.content)
    again = BiasModel(RATING)
    again.load_state_dict(model.state_dict())
    assert torch.equal(before, again(data.graph, data.validation, data.content))
