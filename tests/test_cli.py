"""The command line: its JSON, its exit codes, its sentences; nothing half-written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conftest import make_tables
from corginet.cli.app import COMMANDS, run

FAST = ["--encoder", "hashed:16", "--channels", "8", "--hidden", "9", "--epochs", "3"]
TEXTLESS = ["--missing-text", "allow"]


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, Any, str]:
    """Exit code, JSON (where there is one), and what stderr says."""
    code = run([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out.startswith("{") else out, err


@pytest.fixture
def fitted(files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    code, found, err = call(
        capsys,
        "fit",
        *files,
        "--out",
        tmp_path / "run",
        "--json",
        *FAST,
        *TEXTLESS,
        "--recipe",
        "corgi-read",
    )
    assert code == 0, err
    assert {"metrics", "epochs", "seconds", "by_degree", "by_quadrant"} <= set(found)
    assert "200 ratings of 24 users and 18 items, values from 1 to 5" in err
    return tmp_path / "run"


def test_a_run_does_everything_from_its_folder(
    fitted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = tmp_path / "elsewhere"
    fitted.rename(moved)
    (tmp_path / "ratings.csv").unlink()
    (tmp_path / "items.csv").unlink()
    expected = {
        "config.toml",
        "weights.safetensors",
        "ids.parquet",
        "graph.parquet",
        "content",
        "history.jsonl",
        "metrics.json",
        "versions.json",
    }
    assert {p.name for p in moved.iterdir()} == expected

    code, found, _ = call(capsys, "evaluate", moved, "--json")
    assert code == 0 and {"metrics", "by_degree", "by_quadrant"} <= set(found)

    pairs = tmp_path / "pairs.csv"
    pairs.write_text("user,item\nu1,i2\nnew,i3\nu2,fresh\n")
    history, items = tmp_path / "h.csv", tmp_path / "new.jsonl"
    history.write_text("user,item,value\nnew,i1,5\nnew,i2,1\n")
    items.write_text('{"item": "fresh", "text": "red and fast"}\n')
    out = tmp_path / "out.parquet"
    code, found, err = call(
        capsys,
        "predict",
        moved,
        pairs,
        "--out",
        out,
        "--history",
        history,
        "--items",
        items,
        "--json",
    )
    assert code == 0, err
    assert found["rows"] == 3
    assert pl.read_parquet(out)["user"].to_list() == ["u1", "new", "u2"]

    ratings = tmp_path / "more.csv"
    ratings.write_text("user,item,value\nu1,i2,4\nstranger,i3,2\n")
    code, found, _ = call(capsys, "evaluate", moved, ratings, "--json")
    assert found["by_quadrant"]["new_user_known_item"]["n"] == 1

    code, found, _ = call(capsys, "recommend", moved, "u1", "--top", "2", "--json")
    assert len(found["items"]) == 2

    code, found, _ = call(capsys, "explain", moved, "u1", "i2", "--json")
    assert code == 0
    assert sum(w["weight"] for w in found["words"]) == pytest.approx(1, abs=1e-5)
    assert isinstance(found["faithfulness"], float) and found["neighbours"]
    for command in (
        ["evaluate", moved],
        ["recommend", moved, "u1"],
        ["explain", moved, "u1", "i2"],
    ):
        assert call(capsys, *command)[0] == 0  # for people


@pytest.mark.parametrize("recipe", ["gcn", "gcn+average", "corgi-co"])
def test_explain_of_other_recipes(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], recipe: str
) -> None:
    known = FAST if "+" in recipe or "corgi" in recipe else [*FAST[2:]]
    call(capsys, "fit", *files, "--out", tmp_path / "r", "--recipe", recipe, *known, *TEXTLESS)
    code, found, err = call(capsys, "explain", tmp_path / "r", "u1", "i2", "--json")
    assert code == 0, err
    assert found["prediction"] and (found["words"] or recipe == "gcn")


def test_encode_and_fit_on_the_store(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    order = ["encode", files[1], "--encoder", "hashed:16", "--out", store, "--json"]
    code, found, _ = call(capsys, *order)
    assert code == 0 and found["items"] == 18 and found["words"] > 0
    assert call(capsys, *order)[1]["encoded"] == 0
    code, found, err = call(
        capsys,
        "fit",
        *files,
        "--content",
        store,
        "--out",
        tmp_path / "r",
        "--json",
        *FAST,
        *TEXTLESS,
    )
    assert code == 0, err
    assert call(capsys, "encode", files[1], "--encoder", "hashed:8", "--out", store)[0] == 2


def test_vectors_of_your_own(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import numpy as np

    items = make_tables()[1].with_columns(pl.int_range(pl.len()).cast(pl.String).alias("text"))
    rng = np.random.default_rng(0)
    vectors = [rng.normal(size=(1 + n % 3, 5)).tolist() for n in range(items.height)]
    table, store = tmp_path / "mine.parquet", tmp_path / "store"
    items.with_columns(pl.Series("vectors", vectors)).write_parquet(table)
    code, found, err = call(capsys, "encode", table, "--encoder", "given", "--out", store, "--json")
    assert code == 0, err
    assert found["words"] == sum(map(len, vectors)) and found["dim"] == 5
    order = ["--content", store, "--channels", "8", "--epochs", "2", "--json"]
    code, found, err = call(capsys, "fit", files[0], table, "--out", tmp_path / "r", *order)
    assert code == 0, err
    assert call(capsys, "explain", tmp_path / "r", "u1", "i2", "--json")[1]["words"]
    for bad, message in ((["x"] * 18, "must be numbers"), ([[1.0, float("inf")]] * 18, "finite")):
        items.with_columns(pl.Series("vectors", bad)).write_parquet(table)
        code, _, err = call(capsys, "encode", table, "--encoder", "given", "--out", tmp_path / "x")
        assert code == 2 and message in err


def test_recipes_lists_all_and_the_settings_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    _, found, _ = call(capsys, "recipes", "--json")
    assert {"name", "paper_row", "reads_text"} <= set(found["recipes"][0])
    _, found, _ = call(capsys, "recipes", "corgi-dp", "--json")
    assert "learning_rate" in {f["option"] for f in found["fields"]}
    assert "--learning-rate" in call(capsys, "recipes", "corgi-dp")[1]
    assert "corgi-dp" in call(capsys, "recipes")[1]


BAD = [
    (["--recipe", "corgi-pd"], "unknown recipe 'corgi-pd'; did you mean 'corgi-dp'?"),
    (["--epocs", "3"], "unknown option '--epocs' for recipe 'corgi-plus'; did you mean 'epochs'?"),
    (["--epochs", "many"], "'training.epochs' got 'many'"),
    (["--dropout", "3"], "unknown option '--dropout'"),
    (["--message-dropout", "3"], "message_dropout' got '3'; input should be less than 1"),
    (["--bounds", "5:1"], "the first number must be the smaller"),
    (["--columns", "who=x"], "--columns got 'who=x'"),
    (["--columns", "user=nobody"], "no column 'nobody'"),
    (["--task", "binary"], "task binary needs values 0 and 1"),
    (["--config", "absent.toml"], "no such config file"),
    (["--resume"], "nothing to resume"),
    (["--encoder", "hashed:0"], "a size from 1 to 512"),
    (["--missing-text", "error"], "have an empty text"),
    (["--split", "time"], "needs a column 'time'"),
    (["--content", "absent"], "not a content store"),
    (["--seed", "-1"], "'seed' got -1"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=[" ".join(b[0]) for b in BAD])
def test_bad_options_get_one_sentence_and_leave_nothing(
    files: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    allowed = [] if "--missing-text" in options else TEXTLESS
    before = set(tmp_path.iterdir())
    code, _, err = call(capsys, "fit", *files, "--out", tmp_path / "run", *allowed, *options)
    assert code == 2
    assert message in err and "Traceback" not in err
    assert set(tmp_path.iterdir()) == before


def test_other_bad_calls(fitted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("user,item\nu1,i2\n")
    gap = tmp_path / "gap.csv"
    gap.write_text("user,item\nu1,\n")
    cases: list[tuple[list[object], str]] = [
        (["predict", fitted, pairs, "--out", tmp_path / "x.doc"], "unknown kind of file"),
        (["predict", fitted, pairs, "--out", tmp_path / "no" / "x.csv"], "make it first"),
        (["predict", fitted, gap, "--out", tmp_path / "x.csv"], "column 'item' has 1 empty cell"),
        (["predict", tmp_path / "rum", pairs, "--out", tmp_path / "x.csv"], "did you mean 'run'"),
        (["evaluate", tmp_path], "is not a run folder"),
        (["explain", fitted, "u1", "i99"], "unknown item 'i99'"),
        (["recommend", fitted, "nobody"], "unknown user 'nobody'"),
        (["recommend", fitted, "u1", "--top", "0"], "at least 1"),
        (["recommend", fitted, "u1", "--top", "x"], "corginet recommend --help"),
        (["fit"], "corginet fit --help"),
        (["fitt"], "fit"),
        (["fit", pairs, "--out", fitted], "exists; choose another --out or pass --overwrite"),
        (["fit", pairs, "--out", tmp_path / "new"], "reads texts; name an item table"),
        (["fit", pairs, "--out", pairs, "--overwrite"], "is not a run folder; it is not"),
        (["demo", "--out", pairs], "is a file; name a folder"),
    ]
    for arguments, message in cases:
        code, _, err = call(capsys, *arguments)
        assert (code, message in err, "Traceback" in err) == (2, True, False), (arguments, err)


def test_damaged_runs_say_so(fitted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (fitted / "weights.safetensors").write_bytes(b"nonsense")
    code, _, err = call(capsys, "evaluate", fitted)
    assert code == 2 and "damaged weights" in err
    (fitted / "metrics.json").write_text("{")
    code, _, err = call(capsys, "evaluate", fitted)
    assert code == 2 and "a damaged run folder" in err


def test_overwrite_replaces_a_run(
    fitted: Path, files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, _ = call(
        capsys,
        "fit",
        *files,
        "--out",
        fitted,
        "--overwrite",
        "--recipe",
        "gcn",
        *FAST[2:],
        *TEXTLESS,
    )
    assert code == 0 and 'recipe = "gcn"' in (fitted / "config.toml").read_text()
    assert not (fitted / "content").exists()


def test_a_config_file_sets_what_options_do(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "c.toml"
    config.write_text('recipe = "gcn"\n[training]\nepochs = 2\n[model]\nchannels = 8\n')
    code, found, err = call(
        capsys, "fit", *files, "--config", config, "--out", tmp_path / "r", "--json", *TEXTLESS
    )
    assert code == 0, err
    assert found["epochs"] == 2 and found["recipe"] == "gcn"
    config.write_text("[training]\nepocs = 2\n")
    code, _, err = call(capsys, "fit", *files, "--config", config, "--out", tmp_path / "r2")
    assert code == 2 and "unknown field 'training.epocs'" in err


def test_help_is_quick_and_complete() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "corginet", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(name in done.stdout for name in COMMANDS)
    assert "torch" not in done.stderr and "polars" not in done.stderr


def test_interrupted_fit_is_resumed(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second process, stopped by a real signal once its first checkpoint is there."""
    import signal
    import time

    out = tmp_path / "run"
    order = [
        "fit",
        *map(str, files),
        "--out",
        str(out),
        "--recipe",
        "gcn",
        "--channels",
        "8",
        "--patience",
        "9999",
        "--checkpoint-every",
        "1",
        *TEXTLESS,
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "corginet", *order, "--epochs", "9999"], stderr=subprocess.PIPE
    )
    checkpoint = tmp_path / "run.checkpoint.safetensors"
    for _ in range(600):
        if checkpoint.exists():
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and b"--resume" in err
    assert checkpoint.exists() and not out.exists()
    code, found, text = call(capsys, *order, "--epochs", "1", "--resume", "--json")
    assert code == 0, text
    assert found["epochs"] >= 1 and not checkpoint.exists() and out.exists()


def test_tables_of_the_tests_are_as_described() -> None:
    ratings, items = make_tables()
    assert (ratings.height, items.height) == (200, 18)
