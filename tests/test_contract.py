"""The contract of every recipe: no leak, no dependence on numbering or order, trains, saves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from conftest import make_tables
from corginet.data.dataset import Dataset
from corginet.data.graph import InteractionGraph
from corginet.data.splits import TEST, VALIDATION
from corginet.estimator import Estimator
from corginet.models.ensemble import Ensemble
from corginet.models.values import loss_of
from corginet.nn.content import Content
from corginet.nn.readout import Pairs
from corginet.nn.words import Words
from corginet.recipes import recipe, recipe_names
from corginet.training.closed_form import ClosedForm

SMALL: dict[str, Any] = {
    "channels": 8,
    "hidden": 9,
    "encoder": "hashed:16",
    "precision": "fp32",
    "epochs": 3,
    "members": 2,
}
RECIPES = recipe_names()


def small(name: str, **more: Any) -> Estimator:
    """The recipe at a size for tests; settings that it does not have are left out."""
    from corginet.config import fields

    known = {path.rsplit(".", 1)[-1] for path, _, _ in fields(recipe(name).config)}
    settings = {**SMALL, **more}
    return Estimator(name, **{k: v for k, v in settings.items() if k in known})


@pytest.fixture(scope="module", params=RECIPES)
def fitted(request: pytest.FixtureRequest) -> Estimator:
    dataset = Dataset.read(*make_tables(), missing_text="allow")
    return small(request.param).fit(dataset)


def ask(e: Estimator, graph: InteractionGraph, pairs: Pairs, content: Content) -> torch.Tensor:
    e.model.eval()
    with torch.no_grad():
        out: torch.Tensor = e.model(graph, pairs, content)
    return out


def test_held_out_values_change_nothing(fitted: Estimator) -> None:
    """Fit again with every validation and test value of a fixed split changed: the test part's
    predictions stay, as long as the same weights are kept."""
    pairs, _ = fitted._part(TEST)
    before = fitted._values(fitted.training_graph(), pairs, fitted.content())
    values = fitted.ratings.values
    held_out = fitted.split.part >= VALIDATION
    kept = values.copy()
    try:
        values[held_out] = 6 - values[held_out]
        after = fitted._values(fitted.training_graph(), pairs, fitted.content())
    finally:
        values[:] = kept
    assert (before == after).all()


def test_supervised_values_change_no_prediction_of_a_step(fitted: Estimator) -> None:
    """Two steps in a row, as caches live between steps: hidden values never reach the output."""
    e = fitted
    graph, content = e.training_graph(), e.content()
    policy = e.config.observation.build()
    for epoch in range(4):
        rng = np.random.default_rng(epoch)
        hidden = policy.hide(len(graph), epoch, rng)
        outputs = []
        for flip in (False, True):
            values = torch.where(hidden & flip, 6 - graph.values, graph.values)
            e.model.train()
            _forget(e.model)
            for earlier in range(epoch + 1):  # the caches of this key see this key's steps only
                step_rng = np.random.default_rng(earlier)
                step = policy.step(graph.with_values(values), earlier, step_rng)
                torch.manual_seed(earlier)
                found = e.model(step.graph, step.pairs, content)
            outputs.append(found.detach())
        if policy.key(epoch) is not None or epoch == 0:
            assert (outputs[0] == outputs[1]).all()


def _forget(model: torch.nn.Module) -> None:
    """Empty the caches, and let an ensemble start with its first member."""
    if isinstance(model, Ensemble):
        model.turn.zero_()
    for module in model.modules():
        if isinstance(getattr(module, "stored", None), dict):
            module.stored.clear()  # type: ignore[union-attr,operator]


def test_renumbering_nodes_changes_nothing(fitted: Estimator) -> None:
    e = fitted
    graph, content = e.training_graph(), e.content()
    pairs = Pairs(torch.arange(9), torch.arange(9))
    before = ask(e, graph, pairs, content)
    users, items = torch.randperm(graph.n_users), torch.randperm(graph.n_items)
    renamed = InteractionGraph.build(
        users[graph.users], items[graph.items], graph.values, graph.n_users, graph.n_items
    )
    back = torch.argsort(items)
    moved = content.for_items(back)
    # the nodes keep their own states: only their numbers in the graph change
    renamed = replace(renamed, user_rows=torch.argsort(users), item_rows=back)
    after = ask(e, renamed, Pairs(users[pairs.users], items[pairs.items]), moved)
    assert torch.allclose(before, after, atol=1e-4)


def test_order_of_edges_and_pairs_changes_nothing(fitted: Estimator) -> None:
    e = fitted
    graph, content = e.training_graph(), e.content()
    pairs = Pairs(torch.arange(9), torch.arange(9))
    order = torch.randperm(len(graph))
    shuffled = InteractionGraph.build(
        graph.users[order], graph.items[order], graph.values[order], graph.n_users, graph.n_items
    )
    flipped = Pairs(pairs.users.flip(0), pairs.items.flip(0))
    before = ask(e, graph, pairs, content)
    assert torch.allclose(before, ask(e, shuffled, flipped, content).flip(0), atol=1e-4)


def test_words_of_no_item_change_nothing(fitted: Estimator) -> None:
    e = fitted
    content = e.content()
    w = content.words
    padded = Words(torch.cat([w.vectors, torch.randn(5, w.dim)]), w.starts, w.counts)
    pairs = Pairs(torch.arange(9), torch.arange(9))
    before = ask(e, e.training_graph(), pairs, content)
    after = ask(e, e.training_graph(), pairs, replace(content, words=padded))
    assert torch.allclose(before, after, atol=1e-5)


def test_every_parameter_receives_gradient(fitted: Estimator) -> None:
    e = fitted
    if isinstance(e.model, ClosedForm):
        pytest.skip("nothing is trained by gradient")
    e.model.train()
    e.model.zero_grad()
    step = e.config.observation.build().step(e.training_graph(), 0, np.random.default_rng(0))
    for _ in range(getattr(e.model, "n_turns", 1)):
        raw = e.model(step.graph, step.pairs, e.content())
        loss_of(raw, step.targets, e.ratings.task).backward()
    silent = [n for n, p in e.model.named_parameters() if p.grad is None]
    assert silent == []


def test_saved_and_loaded_it_predicts_the_same(fitted: Estimator, tmp_path: Path) -> None:
    fitted.save(tmp_path / "run")
    loaded = Estimator.load(tmp_path / "run")
    pairs = pl.DataFrame({"user": ["u1", "u2", "u3"], "item": ["i1", "i17", "i3"]})
    a, b = fitted.predict(pairs), loaded.predict(pairs)
    assert a.equals(b)
    assert a["user"].to_list() == pairs["user"].to_list()
    again = loaded.evaluate()["metrics"]
    assert again["rmse"] == pytest.approx(fitted.report["metrics"]["rmse"], abs=1e-6)
    assert not list((tmp_path / "run").rglob("*.pkl"))


def test_new_users_and_items_are_predicted(fitted: Estimator) -> None:
    pairs = pl.DataFrame(
        {"user": ["new", "u1", "new", "u2"], "item": ["i1", "fresh", "fresh", "i2"]}
    )
    history = pl.DataFrame({"user": ["new", "new"], "item": ["i3", "i4"], "value": [5.0, 4.0]})
    texts = pl.DataFrame({"item": ["fresh"], "text": ["red fast new"]})
    out = fitted.predict(pairs, history=history, items=texts)
    values = out["prediction"].to_numpy()
    assert np.isfinite(values).all() and (values >= 1).all() and (values <= 5).all()
    assert fitted.predict(pairs).height == 4  # without a history and a text too


def test_no_pairs_give_no_predictions(fitted: Estimator) -> None:
    none = Pairs(torch.empty(0, dtype=torch.long), torch.empty(0, dtype=torch.long))
    assert len(ask(fitted, fitted.training_graph(), none, fitted.content())) == 0


def test_graph_without_edges_is_predicted(fitted: Estimator) -> None:
    graph = fitted.training_graph()
    empty = graph.keep(torch.zeros(len(graph), dtype=torch.bool))
    out = ask(fitted, empty, Pairs(torch.arange(4), torch.arange(4)), fitted.content())
    assert torch.isfinite(out).all()


@pytest.mark.parametrize("name", RECIPES)
def test_same_seed_same_result(name: str) -> None:
    dataset = Dataset.read(*make_tables(), missing_text="allow")
    a, b = (small(name).fit(dataset).report["metrics"] for _ in range(2))
    assert a == b


@pytest.mark.parametrize("name", [n for n in RECIPES if not n.startswith("corgi-c")])
def test_overfits_thirty_ratings(name: str) -> None:
    """With every edge in sight and as target, thirty values can be remembered."""
    tables = make_tables(11, 7, 37)
    settings = {
        "channels": 16,
        "hidden": 32,
        "epochs": 120,
        "patience": 120,
        "policy": "shared",
        "states": "trainable",
        "message_dropout": 0.0,
        "state_dropout": 0.0,
        "summary_dropout": 0.0,
        "hidden_users": 0.0,
        "hidden_items": 0.0,
        "validate_every": 1,
        "readout_dropout": 0.0,
        "edge_dropout": 0.0,
        "tower_dropout": 0.0,
        "decoder_dropout": 0.0,
        "kl_weight": 0.0,
        "factor_damping": 0.0,
        "bias_damping": 0.0,
        "learning_rate": 0.02,
    }
    e = small(name, **settings).fit(Dataset.read(*tables, missing_text="allow"))
    if isinstance(e.model, ClosedForm):
        pytest.skip("nothing is trained by gradient")
    losses = [row["train_loss"] for row in e.fitted.history]
    assert losses[-1] < 0.2 * losses[0]
