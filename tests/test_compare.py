"""corginet compare, as users call it; killed with SIGKILL, it goes on where it was."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from corginet.cli.experiments import parse_grid, parse_recipes, parse_settings
from corginet.errors import UserError
from corginet.experiment.settings import PAPER_GRID
from corginet.recipes import recipe_names
from test_cli import TEXTLESS, call

SMALL = ["--set", "channels=8,epochs=3,encoder=hashed:16"]


def test_rows_summary_and_tables(
    here: None,
    files: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    order = ["compare", *files, "--recipes", "gcn,bias,mean", "--seeds", 3, *SMALL, *TEXTLESS]
    code, found, err = call(capsys, *order, "--out", out, "--json")
    assert code == 0, err
    assert len(found["rows"]) == 9 and "9/9 mean, seed 2" in err and "left" in err
    for row in found["rows"]:
        assert {"recipe", "seed", "validation", "test", "seconds", "peak_gb"} <= set(row)
        assert "rmse" in row["test"] and "auroc" not in row["test"]
    summary = found["summary"]
    assert set(summary["recipes"]) == {"gcn", "bias", "mean"}
    assert {"mean", "se"} == set(summary["recipes"]["gcn"]["rmse"])
    assert summary["best"]["rmse"] == "bias" and summary["sentence"].startswith("bias is best")
    pairs = [c for c in summary["comparisons"] if c["metric"] == "rmse"]
    assert len(pairs) == 3
    for pair in pairs:
        assert pair["p_paired"] <= pair["p_paired_holm"] <= 1
        assert 0 < pair["p_bootstrap"] <= 1 and pair["interval"][0] < pair["interval"][1]
    table = (out / "table.txt").read_text()
    assert "[" in table and "± one standard error" in table
    assert {p.name for p in out.glob("table.*")} == {
        f"table.{suffix}" for suffix in ("txt", "md", "tex", "json", "html")
    }
    code, shown, err = call(capsys, *order, "--out", out)
    assert code == 0 and "bias is best" in shown and err.count("finished before") == 9
    assert call(capsys, *order[:3], "--recipes", "mean", "--seeds", 1, *TEXTLESS)[0] == 0


def test_controls_judge_the_texts(
    here: None,
    files: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    order = ["compare", *files, "--recipes", "gcn+average,bias", "--seeds", 2, "--controls"]
    code, found, err = call(capsys, *order, *SMALL, *TEXTLESS, "--json")
    assert code == 0, err
    names = [f"gcn+average{text}" for text in ("", ":none", ":random", ":permuted")]
    assert list(dict.fromkeys(r["recipe"] for r in found["rows"])) == [*names, "bias"]
    assert {r["text"] for r in found["rows"]} == {"real", "none", "random", "permuted"}
    text, controls = found["summary"]["text"], found["summary"]["controls"]
    assert text.startswith("gcn+average: the content") and "D<=10" in text and "D>10" in text
    assert set(controls["groups"]) == {"all", "D<=10", "D>10"}
    gains = controls["groups"]["all"]["gcn+average"]
    assert set(gains) == {"none", "random", "permuted"}
    rows = {(r["recipe"], r["seed"]): r["test"]["rmse"] for r in found["rows"]}
    expected = sum(rows[names[1], s] - rows[names[0], s] for s in (0, 1)) / 2
    assert gains["none"]["gain"] == pytest.approx(expected)


def test_planted_texts_earn_their_cost(
    here: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whether a user likes an item is whether its text says so, whoever the user is."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(0)
    n_users, n_items = 60, 240
    good = rng.random(n_items) < 0.5
    pairs = rng.choice(n_users * n_items, 720, replace=False)
    users, items = pairs // n_items, pairs % n_items
    values = np.where(rng.random(720) < 0.9, good[items], ~good[items]).astype(int)
    pl.DataFrame(
        {"user": [f"u{u}" for u in users], "item": [f"i{i}" for i in items], "value": values}
    ).write_csv(tmp_path / "r.csv")
    texts = [f"{'bright' if g else 'dim'} thing number {n % 7}" for n, g in enumerate(good)]
    pl.DataFrame({"item": [f"i{i}" for i in range(n_items)], "text": texts}).write_csv(
        tmp_path / "i.csv"
    )
    order = ["compare", tmp_path / "r.csv", tmp_path / "i.csv", "--recipes", "ridge", "--controls"]
    code, found, err = call(capsys, *order, "--set", "encoder=hashed:16", "--json")
    assert code == 0, err
    assert found["summary"]["text"].startswith("ridge: the content earned its cost")


def test_a_killed_comparison_goes_on(
    here: None, files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    order = ["compare", *map(str, files), *TEXTLESS, "--recipes", "mean,bias", "--seeds", "2"]
    order += ["--jobs", "1", "--json", "--out"]
    killed = [sys.executable, "-m", "corginet", *order, str(tmp_path / "killed")]
    journal = tmp_path / "killed" / "rows.jsonl"
    process = subprocess.Popen(killed, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(4000):
        if journal.exists() and journal.read_bytes().count(b"\n") >= 1:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    assert process.wait(timeout=60) == -signal.SIGKILL
    before = journal.read_bytes()
    with journal.open("ab") as file:
        file.write(b'{"cell": "torn')
    resumed = subprocess.run(killed, capture_output=True, check=True)
    code, whole, err = call(capsys, *order, tmp_path / "whole")
    assert code == 0, err
    found = [json.loads(resumed.stdout), whole]
    results = [
        [(r["recipe"], r["seed"], r["test"], r["by_degree"]) for r in f["rows"]] for f in found
    ]
    assert results[0] == results[1] and len(results[0]) == 4
    summaries = [_without_costs(f["summary"]) for f in found]
    assert summaries[0] == summaries[1]
    after = journal.read_bytes()
    assert after.startswith(before) and after.count(b"\n") == 4  # nothing was run twice


def _without_costs(summary: dict[str, Any]) -> dict[str, Any]:
    for averages in summary["recipes"].values():
        del averages["seconds"], averages["peak_gb"]
    return summary


BAD = [
    (["--recipes", "gcn,corgi-pd"], "unknown recipe 'corgi-pd'; did you mean 'corgi-dp'?"),
    (["--recipes", ","], "--recipes is empty"),
    (["--recipes", "gcn", "--set", "epocs=3"], "--set got 'epocs'"),
    (["--recipes", "gcn", "--set", "epochs"], "write --set name=value"),
    (["--recipes", "gcn", "--set", "epochs=many"], "got 'many'"),
    (["--recipes", "gcn", "--grid", "dropout"], "write --grid name=value,value or --grid paper"),
    (["--recipes", "mean", "--grid", "channels=1,2"], "--grid got 'channels'"),
    (["--recipes", "gcn", "--seeds", "0"], "'seeds' got 0"),
    (["--recipes", "gcn", "--tune-seeds", "some"], "'tune_seeds' got 'some'"),
    (["--recipes", "gcn", "--split", "time"], "needs a column 'time'"),
    (["--recipes", "gcn", "--split", "half"], "got 'half'"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=[" ".join(b[0]) for b in BAD])
def test_bad_options_get_one_sentence(
    files: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    code, _, err = call(capsys, "compare", *files, *TEXTLESS, *options)
    assert (code, message in err, "Traceback" in err) == (2, True, False), err


def test_texts_are_asked_for(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(capsys, "compare", files[0], "--recipes", "mean,corgi-dp")
    assert code == 2 and "recipe 'corgi-dp' reads texts; name an item table" in err


def test_groups_grids_and_settings() -> None:
    assert parse_recipes("all") == recipe_names()
    assert len(parse_recipes("paper")) == 29
    assert {"mean", "bias", "mf", "ridge"} <= set(parse_recipes("plain"))
    assert not set(parse_recipes("plain")) & {"lightgcn", "dmf", "gcn", "corgi-plus"}
    assert parse_recipes("gcn, gcn,mean") == ["gcn", "mean"]
    assert parse_grid(["paper"]) == PAPER_GRID
    assert parse_grid(["learning-rate=0.1,0.2"]) == {"learning_rate": ("0.1", "0.2")}
    assert parse_settings(["a-b=1,c=2", "d=x"]) == {"a_b": "1", "c": "2", "d": "x"}
    with pytest.raises(UserError, match="Groups: all, paper, plain"):
        parse_recipes("papers")
