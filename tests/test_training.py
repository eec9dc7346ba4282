"""The loop: steps, early stopping, resuming, policies, mini-batches, messages."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from conftest import make_tables
from corginet.data.dataset import Dataset
from corginet.data.sampling import NeighbourSampler
from corginet.errors import UserError
from corginet.estimator import Estimator
from corginet.models.values import loss_of
from corginet.training.observation import BatchConfig, Folds, HiddenShare, Shared
from corginet.training.trainer import Interrupted, Progress, Trainer, validation_loss

SMALL = {"channels": 8, "hidden": 9, "encoder": "hashed:16", "epochs": 6, "precision": "fp32"}


def data_of(e: Estimator):  # type: ignore[no-untyped-def]
    return e._training_data(e.content())


def test_two_steps_are_two_manual_steps(dataset: Dataset) -> None:
    e = Estimator("corgi-dp", **{**SMALL, "epochs": 2, "message_dropout": 0, "readout_dropout": 0})
    e.fit(dataset)
    torch.manual_seed(0)
    model = e._build(e.content())
    start = copy.deepcopy(model.state_dict())
    c = e.config
    trainer = Trainer(c.training, c.observation, c.batches, 0)
    trainer.fit(model, data_of(e))
    manual = e._build(e.content())
    manual.load_state_dict(start)
    optimizer = torch.optim.Adam(manual.parameters(), lr=c.training.learning_rate)
    policy, rng = c.observation.build(), np.random.default_rng(0)
    states = []
    for epoch in range(2):
        step = policy.step(e.training_graph(), epoch, rng)
        optimizer.zero_grad()
        manual.train()
        loss_of(
            manual(step.graph, step.pairs, e.content()), step.targets, e.ratings.task
        ).backward()
        optimizer.step()
        states.append(copy.deepcopy(manual.state_dict()))
    found = model.state_dict()
    assert any(all(torch.equal(found[k], s[k]) for k in found) for s in states)


@pytest.mark.parametrize("name", ["corgi-dp", "corgi-dp-cached", "corgi-plus"])
def test_resumed_is_bit_equal(dataset: Dataset, tmp_path: Path, name: str) -> None:
    """In the middle of the checkpoints' rhythm too: what is lost is trained again, alike."""
    more = {"members": 2} if name == "corgi-plus" else {}
    settings = {**SMALL, "epochs": 9, "patience": 100, **more}
    whole = Estimator(name, **settings).fit(dataset)
    path = tmp_path / "checkpoint.safetensors"
    part = Estimator(name, **{**settings, "checkpoint_every": 5})
    part.on_epoch = _stop_after(7)
    with pytest.raises(RuntimeError, match="pulled the plug"):
        part.fit(dataset, checkpoint=path)
    rest = Estimator(name, **settings)
    rest.fit(dataset, checkpoint=path)
    losses = [[row["train_loss"] for row in e.fitted.history] for e in (whole, rest)]
    assert losses[0] == losses[1]
    for key, value in whole.model.state_dict().items():
        assert torch.equal(value, rest.model.state_dict()[key])


def _stop_after(epoch: int) -> Callable[[Progress], None]:
    def listen(progress: Progress) -> None:
        if progress.epoch == epoch:
            raise RuntimeError("pulled the plug")

    return listen


def test_a_checkpoint_of_other_data_is_refused(dataset: Dataset, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    Estimator("corgi-dp", **SMALL, checkpoint_every=2).fit(dataset, checkpoint=path)
    with pytest.raises(UserError, match="does not fit this data and recipe"):
        Estimator("gcn", channels=8, epochs=2).fit(dataset, checkpoint=path)


def test_ctrl_c_writes_a_checkpoint(dataset: Dataset, tmp_path: Path) -> None:
    import os
    import signal

    path = tmp_path / "checkpoint.safetensors"
    e = Estimator("gcn", channels=8, epochs=50)
    e.on_epoch = lambda p: os.kill(os.getpid(), signal.SIGINT) if p.epoch == 3 else None
    with pytest.raises(Interrupted, match="stopped after epoch 4"):
        e.fit(dataset, checkpoint=path)
    assert path.exists()


def test_a_falling_step_size_follows_from_the_epoch(dataset: Dataset) -> None:
    settings = {"channels": 8, "epochs": 8, "patience": 100}
    falling = Estimator("gcn", **settings, schedule="cosine")
    trainer = Trainer(
        falling.config.training, falling.config.observation, falling.config.batches, 0
    )
    rates = [trainer._learning_rate(epoch) for epoch in range(9)]
    assert rates[0] == 0.01 and rates[4] == pytest.approx(0.005) and rates[8] == pytest.approx(0)
    assert rates == sorted(rates, reverse=True)
    constant = Estimator("gcn", **settings).fit(dataset)
    assert falling.fit(dataset).fitted.history[-1] != constant.fitted.history[-1]


def test_early_stopping_restores_the_best(dataset: Dataset) -> None:
    e = Estimator("gcn", channels=8, epochs=300, patience=5, learning_rate=0.05).fit(dataset)
    losses = [row["validation_loss"] for row in e.fitted.history]
    assert e.fitted.epochs == e.fitted.best_epoch + 5 < 300
    assert e.fitted.best_loss == min(losses)
    assert validation_loss(e.model, data_of(e)) == pytest.approx(min(losses))


def test_a_loss_that_is_no_number_is_explained(dataset: Dataset) -> None:
    with pytest.raises(UserError, match=r"the loss became nan in epoch \d+; lower --learning-rate"):
        broken = Estimator("gcn", channels=8, learning_rate=1.0)
        original = broken._build

        def build(content):  # type: ignore[no-untyped-def]
            model = original(content)
            torch.nn.init.constant_(model.readout.weight, float("nan"))
            return model

        broken._build = build  # type: ignore[method-assign]
        broken.fit(dataset)


def test_policies_say_what_they_hide() -> None:
    rng = np.random.default_rng(0)
    assert int(HiddenShare(0.25).hide(100, 0, rng).sum()) == 25
    folds = Folds(0.25)
    parts = torch.stack([folds.hide(100, epoch, rng) for epoch in range(4)])
    assert (parts.sum(0) == 1).all()
    assert folds.key(5) == folds.key(1) == "fold1"
    assert torch.equal(folds.hide(100, 1, rng), folds.hide(100, 5, rng))


def test_hidden_and_observed_edges_never_meet(dataset: Dataset) -> None:
    e = Estimator("gcn", channels=8, epochs=1).fit(dataset)
    graph = e.training_graph()
    for policy in (HiddenShare(0.3), Folds(0.3)):
        step = policy.step(graph, 2, np.random.default_rng(0))
        asked = set(zip(step.pairs.users.tolist(), step.pairs.items.tolist(), strict=True))
        seen = set(zip(step.graph.users.tolist(), step.graph.items.tolist(), strict=True))
        assert not asked & seen and len(asked) + len(seen) == len(graph)
    shared = Shared(0.3).step(graph, 0, np.random.default_rng(0))
    assert len(shared.targets) == len(shared.graph) == len(graph)


@pytest.mark.parametrize("name", ["corgi-dp", "corgi-co-cached", "gcn+average"])
def test_sampled_mini_batches_train(dataset: Dataset, name: str) -> None:
    e = Estimator(name, **{**SMALL, "epochs": 3}, batch_size=20, fanout=4).fit(dataset)
    assert np.isfinite(e.report["metrics"]["rmse"])


def test_sampled_subgraph_keeps_its_promises(dataset: Dataset) -> None:
    graph = Estimator("gcn", channels=8, epochs=1).fit(dataset).training_graph()
    users, items = graph.users[:5], graph.items[:5]
    for fanout, n_hops in ((3, 1), (3, 2), (1000, 9)):
        sampler = NeighbourSampler(graph, fanout, n_hops)
        sub, u, i = sampler.sample(users, items, np.random.default_rng(0))
        assert torch.equal(sub.user_rows[u], users) and torch.equal(sub.item_rows[i], items)
        whole = {
            (a, b): v
            for a, b, v in zip(
                graph.users.tolist(), graph.items.tolist(), graph.values.tolist(), strict=True
            )
        }
        for a, b, v in zip(sub.users, sub.items, sub.values, strict=True):
            assert whole[int(sub.user_rows[a]), int(sub.item_rows[b])] == float(v)
        if fanout == 1000:
            assert len(sub) == len(graph)
        elif n_hops == 1:
            assert len(sub) <= fanout * (len(users.unique()) + len(items.unique()))


def test_a_batch_config_without_limits_is_one_step(dataset: Dataset) -> None:
    graph = Estimator("gcn", channels=8, epochs=1).fit(dataset).training_graph()
    step = HiddenShare(0.5).step(graph, 0, np.random.default_rng(0))
    assert list(BatchConfig().batches(step, np.random.default_rng(0))) == [step]
    parts = list(BatchConfig(batch_size=30).batches(step, np.random.default_rng(0)))
    assert sum(len(p.targets) for p in parts) == len(step.targets)


def test_only_the_text_explains_the_values() -> None:
    """Planted: the value is in the item's words alone, and every item is new to the model."""
    import polars as pl

    rng = np.random.default_rng(0)
    likes = rng.random(60) < 0.5
    texts = [f"{'red' if like else 'blue'} {rng.choice(['old', 'new'])}" for like in likes]
    pairs = [(u, i) for u in range(20) for i in rng.choice(60, 15, replace=False)]
    frame = pl.DataFrame(
        {
            "user": [f"u{u}" for u, _ in pairs],
            "item": [f"i{i}" for _, i in pairs],
            "value": [float(likes[i]) for _, i in pairs],
        }
    )
    items = pl.DataFrame({"item": [f"i{i}" for i in range(60)], "text": texts})
    settings = {"channels": 8, "encoder": "hashed:32", "split": "item", "epochs": 60, "seed": 1}
    reads = Estimator("gcn+average", **settings).fit(frame, items).report["metrics"]
    blind = Estimator("gcn", **settings).fit(frame, items).report["metrics"]
    assert reads["accuracy"] > 0.95
    assert blind["accuracy"] < reads["accuracy"] - 0.1


def test_a_planted_order_is_found_with_binary_values() -> None:
    e = Estimator("gcn", channels=8, epochs=40, states="trainable")
    e.fit(*make_tables(binary=True), missing_text="allow")
    assert set(e.report["metrics"]) >= {"accuracy", "auroc", "aupr", "log_loss", "ece"}


def test_averaged_weights_are_a_running_mean_beside_the_own() -> None:
    from corginet.training.averaging import AveragedWeights

    model = torch.nn.Linear(3, 2)
    average = AveragedWeights(model, 0.5)
    expected = {name: p.detach().clone() for name, p in model.named_parameters()}
    for epoch in range(1, 8):
        with torch.no_grad():
            for p in model.parameters():
                p += epoch
        average.update(model)
        keep = min(0.5, epoch / (epoch + 9))
        for name, p in model.named_parameters():
            expected[name] = keep * expected[name] + (1 - keep) * p.detach()
    own = {name: p.detach().clone() for name, p in model.named_parameters()}
    with average.inside(model):
        for name, p in model.named_parameters():
            assert torch.allclose(p, expected[name], atol=1e-6)
    for name, p in model.named_parameters():
        assert torch.equal(p, own[name])
