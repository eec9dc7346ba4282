"""The engine: cells, resuming, tuning, controls, unseen users, failures."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from conftest import in_this_process, make_tables
from corginet.data.dataset import Dataset
from corginet.data.splits import TEST, TRAIN, make_split
from corginet.errors import UserError
from corginet.experiment import engine
from corginet.experiment.contenders import Cell, Contender, cell_id, data_digest
from corginet.experiment.controls import text_for
from corginet.experiment.division import WITHHELD, divide
from corginet.experiment.engine import Event, Experiment, describe
from corginet.experiment.plan import PlanConfig
from corginet.experiment.preparation import Preparation
from corginet.experiment.rows import opened
from corginet.experiment.settings import PAPER_GRID, check_known, settings_for, variants
from corginet.experiment.workers import run_each
from corginet.recipes import recipe_names
from corginet.text.store import ContentStore

FAST = {"channels": 8, "hidden": 9, "epochs": 3, "encoder": "hashed:16", "precision": "fp32"}


def test_rows_say_what_was_run_and_predictions_are_kept(
    here: None, dataset: Dataset, tmp_path: Path
) -> None:
    events: list[Event] = []
    plan = PlanConfig(seeds=2, seed=3)
    contenders = [Contender("bias"), Contender("gcn", FAST)]
    results = Experiment(dataset, tmp_path, plan, events.append).run(contenders)
    assert [(r["recipe"], r["seed"]) for r in results.rows] == [
        ("bias", 3),
        ("bias", 4),
        ("gcn", 3),
        ("gcn", 4),
    ]
    row = results.rows[-1]
    expected = {"validation", "test", "by_degree", "seconds", "peak_gb", "epochs", "settings"}
    assert expected | {"versions", "data_hash", "split"} <= set(row)
    assert row["split"]["train"] + row["split"]["validation"] + row["split"]["test"] == 200
    assert row["settings"]["channels"] == "8" and row["data_hash"] == dataset.ratings.fingerprint()
    frame = results.predictions(row)
    assert set(frame.columns) >= {"user", "item", "part", "prediction", "actual"}
    test = frame.filter(pl.col("part") == "test")
    error = float(((test["prediction"] - test["actual"]) ** 2).mean()) ** 0.5  # type: ignore[arg-type]
    assert error == pytest.approx(row["test"]["rmse"])
    assert [e.done for e in events] == [1, 2, 3, 4] and "test rmse" in describe(events[0])


def test_the_numbers_are_those_of_fit(here: None, dataset: Dataset, tmp_path: Path) -> None:
    from corginet.estimator import Estimator

    results = Experiment(dataset, tmp_path, PlanConfig(seeds=1)).run([Contender("gcn", FAST)])
    settings = settings_for("gcn", FAST)
    report = Estimator("gcn", **settings).fit(dataset).report
    row = results.rows[0]
    assert row["test"] == report["metrics"] and row["validation"] == report["validation"]
    assert row["by_degree"] == report["by_degree"] and row["epochs"] == report["epochs"]


def test_finished_cells_are_not_run_again(here: None, dataset: Dataset, tmp_path: Path) -> None:
    first = Experiment(dataset, tmp_path, PlanConfig(seeds=1)).run([Contender("bias")])
    lines = (tmp_path / "rows.jsonl").read_text()
    events: list[Event] = []
    plan = PlanConfig(seeds=2)
    Experiment(dataset, tmp_path, plan, events.append).run([Contender("bias")])
    assert [e.reused for e in events] == [True, False]
    assert (tmp_path / "rows.jsonl").read_text().startswith(lines)
    # other data and other settings are other cells in the same folder
    other = Dataset.read(*make_tables(seed=1), missing_text="allow")
    Experiment(other, tmp_path, PlanConfig(seeds=1)).run([Contender("bias")])
    again = Experiment(dataset, tmp_path, PlanConfig(seeds=1)).run([Contender("bias")])
    assert again.rows == first.rows
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 3


def test_a_torn_line_and_a_lost_file_count_for_nothing(
    here: None, dataset: Dataset, tmp_path: Path
) -> None:
    plan = PlanConfig(seeds=2)
    first = Experiment(dataset, tmp_path, plan).run([Contender("bias")])
    path = tmp_path / "rows.jsonl"
    content = path.read_text()
    path.write_text(content[:-40])
    first.journal.predictions_path(first.rows[0]["cell"]).unlink()
    again = Experiment(dataset, tmp_path, plan).run([Contender("bias")])
    assert [r["test"] for r in again.rows] == [r["test"] for r in first.rows]
    assert all(json.loads(line) for line in path.read_text().splitlines())
    path.write_text("nonsense\n")
    with pytest.raises(UserError, match="line 1 is no row of an experiment"):
        Experiment(dataset, tmp_path, plan).run([Contender("bias")])


def test_one_process_per_folder(tmp_path: Path) -> None:
    in_use = pytest.raises(UserError, match="in use by another process")
    with opened(tmp_path), in_use, opened(tmp_path):
        pass
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="is a file; name a folder"), opened(tmp_path / "file"):
        pass


@pytest.mark.parametrize("tune_seeds", ["first", "every"])
def test_tuning_looks_at_validation_and_scores_the_chosen_alone(
    here: None, dataset: Dataset, tmp_path: Path, tune_seeds: str
) -> None:
    grid = {"channels": (2, 11, 5)}
    plan = PlanConfig(seeds=2, grid=grid, tune_seeds=tune_seeds)
    contenders = [Contender("gcn", FAST), Contender("bias")]
    results = Experiment(dataset, tmp_path, plan).run(contenders)
    assert len(results.trials) == (3 if tune_seeds == "first" else 6)
    assert all("test" not in row for row in results.trials)
    assert [r["recipe"] for r in results.rows] == ["gcn", "gcn", "bias", "bias"]
    for row in results.rows[:2]:
        tuned = 0 if tune_seeds == "first" else row["seed"]
        mine = [t for t in results.trials if t["seed"] == tuned]
        best = min(mine, key=lambda t: t["validation_loss"])
        assert row["settings"]["channels"] == best["settings"]["channels"]
    lines = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    scored = [line["cell"] for line in lines if "test" in line]
    assert len(scored) == len(set(scored)) == 4
    # a chosen trial is scored from its predictions, not fitted again
    chosen = [line for line in lines if line["cell"] == results.rows[0]["cell"]]
    assert len(chosen) == 2 and chosen[0]["seconds"] == chosen[1]["seconds"]


def test_grids_give_each_recipe_what_it_has() -> None:
    assert len(variants("corgi-dp", PAPER_GRID)) == 4
    assert variants("mean", PAPER_GRID) == [{}]
    assert {"message_dropout", "readout_dropout", "edge_dropout"} <= set(
        settings_for("grape", {"dropout": 0.3})
    )
    assert settings_for("mean", {"channels": 3, "epochs": 2}) == {"epochs": 2}
    with pytest.raises(UserError, match="--set got 'epocs'.*did you mean 'epochs'"):
        check_known(["gcn", "mean"], ["epocs"], "--set")


def test_a_cell_is_named_by_all_that_decides_it(dataset: Dataset) -> None:
    data = data_digest(dataset)
    base = cell_id(Cell(Contender("gcn"), 0), data, "e")
    assert cell_id(Cell(Contender("gcn", label="other name"), 0), data, "e") == base
    others = [
        cell_id(Cell(Contender("gcn"), 1), data, "e"),
        cell_id(Cell(Contender("gcn", {"epochs": 7}), 0), data, "e"),
        cell_id(Cell(Contender("gcn", text="none"), 0), data, "e"),
        cell_id(Cell(Contender("gcn", held_out=0.5), 0), data, "e"),
        cell_id(Cell(Contender("gcn"), 0), data, "f"),
        cell_id(Cell(Contender("gcn"), 0), "other", "e"),
        cell_id(Cell(Contender("gcn", {"split": "user"}), 0), data, "e"),
    ]
    assert len({base, *others}) == 8
    texts = Dataset(dataset.ratings, [*dataset.texts[:-1], "more"])
    assert data_digest(texts) != data


def test_the_test_part_is_no_part_of_the_fit(dataset: Dataset) -> None:
    cell = Cell(Contender("gcn"), 2)
    division = divide(dataset, cell)
    split = make_split(dataset.ratings, cell.config.split, 2)
    assert (division.asked == split.rows(TEST)).all()
    assert (division.split.part[division.asked] == WITHHELD).all()
    assert (division.split.rows(TRAIN) == split.rows(TRAIN)).all()


def test_unseen_users_get_a_few_values_given(here: None, dataset: Dataset, tmp_path: Path) -> None:
    cell = Cell(Contender("gcn", FAST, held_out=0.5), 1)
    division = divide(dataset, cell)
    users = dataset.ratings.users
    seen = set(users[division.split.rows(TRAIN)])
    unseen = set(users[division.asked])
    assert len(unseen) == 12 and not seen & unseen
    assert set(users[division.given]) <= unseen
    for user in unseen:
        given = (users[division.given] == user).sum()
        assert given == min(10, (users == user).sum() // 2)
    assert sum(division.counts.values()) == len(users)
    results = Experiment(dataset, tmp_path, PlanConfig(seeds=1, seed=1)).run([cell.contender])
    frame = results.predictions(results.rows[0]).filter(pl.col("part") == "test")
    assert frame.height == len(division.asked) and frame["user_degree"].min() > 0  # type: ignore[operator]
    alone = pl.DataFrame({"user": ["a", "b", "c"], "item": ["x"] * 3, "value": [1, 2, 3]})
    with pytest.raises(UserError, match="leaves 1 rating to train"):
        divide(Dataset.read(alone, None), Cell(Contender("gcn", held_out=0.99), 0))


def test_controls_change_texts_and_nothing_else(dataset: Dataset, tmp_path: Path) -> None:
    def texts(use: str, recipe: str = "corgi-dp", seed: int = 0) -> list[str]:
        cell = Cell(Contender(recipe, FAST, text=use), seed)  # type: ignore[arg-type]
        Preparation(dataset, tmp_path, None).encoder_of(cell)
        found = text_for(cell, dataset, tmp_path)
        assert found.dataset.ratings is dataset.ratings
        return found.dataset.texts

    real = dataset.texts
    assert texts("real") == real
    assert set(texts("none")) == {""}
    assert len(set(texts("none", "gcn+bow"))) == 1  # a bag needs a word: the same for all
    permuted = texts("permuted")
    assert permuted != real and sorted(permuted) == sorted(real)
    assert texts("permuted", seed=1) != permuted
    random = texts("random")
    assert random == texts("random", seed=1)
    assert [len(t.split()) for t in random] == [len(t.split()) + bool(t) for t in real]
    assert len(set(random)) == len(random)


def test_random_vectors_are_fixed_and_scaled_like_the_real_ones(
    dataset: Dataset, tmp_path: Path
) -> None:
    cell = Cell(Contender("corgi-dp", FAST, text="random"), 0)
    Preparation(dataset, tmp_path, None).encoder_of(cell)
    found = text_for(cell, dataset, tmp_path)
    assert found.store is not None
    encoded = list(found.store.read(found.dataset.texts))
    words = [len(e.vectors) for e in encoded]
    assert words == [len(t.split()) for t in dataset.texts]
    vectors = np.concatenate([e.vectors for e in encoded])
    assert len(np.unique(vectors, axis=0)) == len(vectors) and vectors.shape[1] == 16
    assert abs(vectors).mean() == pytest.approx(0.25, abs=0.15)  # hashed vectors are ±1/4
    Preparation(dataset, tmp_path, None).encoder_of(cell)  # made once


@pytest.mark.parametrize("name", ["corgi-plus", "corgi-dp", "gcn+words", "ridge"])
def test_every_kind_of_reader_has_its_controls(
    here: None, dataset: Dataset, tmp_path: Path, name: str
) -> None:
    contenders = [Contender(name, FAST, text=use) for use in ("real", "none", "random")]
    results = Experiment(dataset, tmp_path, PlanConfig(seeds=1)).run(contenders)
    assert results.names == [name, f"{name}:none", f"{name}:random"]
    assert [row["text"] for row in results.rows] == ["real", "none", "random"]


def test_names_are_asked_for_once(dataset: Dataset, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'gcn' is asked for twice"):
        Experiment(dataset, tmp_path, PlanConfig()).run([Contender("gcn"), Contender("gcn")])


def _work(job: str) -> dict[str, Any]:
    if job == "raises":
        raise ValueError("no")
    if job == "user":
        raise UserError("mend this")
    if job == "dies":
        os.kill(os.getpid(), 9)
    return {"threads": os.environ["OMP_NUM_THREADS"], "pid": os.getpid()}


def test_one_that_fails_stops_no_other() -> None:
    found: dict[str, dict[str, Any]] = {}
    run_each(_work, ["raises", "dies", "user", "works"], 2, found.__setitem__)
    assert found["raises"]["error"] == "ValueError: no" and "_work" in found["raises"]["trace"]
    assert "SIGKILL" in found["dies"]["error"] and found["user"]["error"] == "mend this"
    assert found["works"]["threads"] == "1" and found["works"]["pid"] != os.getpid()


def test_failed_cells_are_told_kept_out_and_tried_again(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(work: Any, jobs: list[Any], n: int, finished: Callable[..., None]) -> None:
        for job in jobs:
            finished(job, {"error": "no luck"} if job.cell.seed == 0 else work(job))

    monkeypatch.setattr(engine, "run_each", half)
    events: list[Event] = []
    plan = PlanConfig(seeds=2)
    results = Experiment(dataset, tmp_path, plan, events.append).run([Contender("bias")])
    assert [r["seed"] for r in results.rows] == [1]
    assert "FAILED: no luck" in describe(events[0])
    error = results.errors[0]
    assert (error["recipe"], error["seed"], error["error"]) == ("bias", 0, "no luck")
    monkeypatch.setattr(engine, "run_each", in_this_process)
    again = Experiment(dataset, tmp_path, plan).run([Contender("bias")])
    assert [r["seed"] for r in again.rows] == [0, 1] and not again.errors


def test_every_recipe_can_be_a_contender() -> None:
    for name in recipe_names():
        assert Cell(Contender(name, {"epochs": 2, "dropout": 0.2}), 5).config.seed == 5


def test_shorter_texts_are_cut_from_longer_ones(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from corginet.text.encoders import HashedEncoder

    def cell(length: int) -> Cell:
        return Cell(Contender("corgi-dp", {**FAST, "encoder": "hashed:12", "truncate": length}), 0)

    monkeypatch.setenv("CORGINET_CACHE", str(tmp_path))
    preparation = Preparation(dataset, tmp_path, None)
    preparation.encoder_of(cell(5))
    with monkeypatch.context() as patch:
        patch.setattr(HashedEncoder, "encode", lambda *_: pytest.fail("encoded again"))
        cut = preparation.encoder_of(cell(2))
    (folder,) = (f for f in (tmp_path / "content").iterdir() if f.name.startswith("hashed-12-2"))
    found = list(ContentStore.open(folder).read(dataset.texts))
    direct = list(cell(2).config.encoder.build().encode(dataset.texts))
    assert cut == "hashed:12-2"
    for one, other in zip(found, direct, strict=True):
        assert (one.vectors == other.vectors).all() and (one.spans == other.spans).all()
        assert (one.summaries == other.summaries).all()
