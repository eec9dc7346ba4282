"""Every table and figure of the paper, on tiny data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conftest import make_tables
from corginet.errors import UserError
from corginet.paper import synthetic_figure
from corginet.paper.commands import COMMANDS, NEED_NO_DATA, command
from corginet.paper.inductive import wins
from corginet.paper.published import TABLE2, VARIANTS
from corginet.recipes import all_recipes, recipe_names
from test_cli import TEXTLESS, call

SMALL = ["--set", "channels=8,hidden=9,epochs=3,encoder=hashed:16", *TEXTLESS]
WITH_FIGURES = ("attention", "degree", "truncation")


@pytest.fixture
def binary(tmp_path: Path) -> tuple[Path, Path]:
    ratings, items = make_tables(binary=True)
    ratings.write_csv(tmp_path / "answers.csv")
    items.write_csv(tmp_path / "questions.csv")
    return tmp_path / "answers.csv", tmp_path / "questions.csv"


def order(name: str, data: tuple[Path, Path], out: Path) -> list[object]:
    return ["paper", name, "--ratings", data[0], "--items", data[1], "--out", out, *SMALL, "--json"]


@pytest.mark.parametrize("name", [n for n in COMMANDS if n not in ("table2", *NEED_NO_DATA)])
def test_each_finishes_and_leaves_its_files(
    here: None,
    name: str,
    files: tuple[Path, Path],
    binary: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for data, kind, seeds in ((files, "rating", 1), (binary, "binary", 2)):
        out = tmp_path / kind
        code, found, err = call(capsys, *order(name, data, out), "--seeds", seeds)
        assert code == 0, err
        assert found["rows"] and all(Path(path).is_file() for path in found["files"])
        suffixes = {path.rsplit(".", 1)[1] for path in found["files"]}
        figures = {"png", "svg"} if name in WITH_FIGURES else set()
        assert suffixes == {"txt", "md", "tex", "json", "html"} | figures
        page = (out / f"{name}.html").read_text()
        assert page.count("data:image/png") == len(figures) // 2 and "<table>" in page
        assert json.loads((out / f"{name}.json").read_text())["rows"] == found["rows"]


@pytest.mark.slow
def test_table2_has_its_29_rows_in_order(
    here: None, files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found, err = call(capsys, *order("table2", files, tmp_path / "o"), "--recipes", "mean,mf")
    assert code == 0, err
    rows = [row["row"] for row in found["rows"]]
    assert rows == [*TABLE2, "mean", "mf"]
    assert found["rows"][0]["paper"]["rmse"] == {"mean": 0.921, "se": 0.001}
    text = (tmp_path / "o" / "table2.txt").read_text()
    assert "paper rmse" in text and "which this is not" in text


def test_table2_puts_ours_beside_the_papers(
    here: None,
    files: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from corginet.paper import tables

    few = {row: TABLE2[row] for row in ("DMF", "GCN Init: NeuralBoW", "CoRGi: Dot-product")}
    monkeypatch.setattr(tables, "TABLE2", few)
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("red 1 0\nblue 0 1\nold 1 1\n")
    settings = ["--set", "channels=8,hidden=9,epochs=3", "--set", "dropout=0.2", *TEXTLESS]
    start = ["paper", "table2", "--ratings", files[0], "--items", files[1], *settings, "--json"]
    out = ["--out", tmp_path / "o", "--vectors", vectors]
    code, found, err = call(capsys, *start, *out)
    assert code == 0, err
    assert [row["row"] for row in found["rows"]] == list(few)
    rows = [json.loads(line) for line in (tmp_path / "o" / "rows.jsonl").read_text().splitlines()]
    static = next(row for row in rows if row["recipe"] == "gcn+neuralbow")
    assert static["settings"]["encoder"] == f"static:{vectors}"
    assert static["settings"]["readout_dropout"] == "0.2"
    # a second table in the same folder shares the runs
    code, _, err = call(capsys, *start, *out, "--seeds", 2)
    assert code == 0 and err.count("finished before") == 3


def test_the_published_rows_are_recipes() -> None:
    rows = [r.paper_row for r in all_recipes()]
    assert len(TABLE2) == 29 and all(rows.count(row) == 1 for row in TABLE2)
    assert set(VARIANTS) <= set(recipe_names())
    best = {m: min(row[m].value for row in TABLE2.values()) for m in ("goodreads rmse",)}
    assert best == {"goodreads rmse": 0.872}


def frame(predictions: list[float], actual: list[float]) -> pl.DataFrame:
    n = len(actual)
    return pl.DataFrame(
        {
            "user": [f"u{k}" for k in range(n)],
            "item": ["i"] * n,
            "part": ["test"] * (n - 1) + ["validation"],
            "actual": actual,
            "prediction": predictions,
        }
    )


def test_wins_by_hand() -> None:
    actual = [1.0, 1.0, 0.0, 0.0, 1.0]
    mine, theirs = (
        frame([0.9, 0.2, 0.3, 0.6, 0.9], actual),
        frame([0.1, 0.8, 0.2, 0.1, 0.1], actual),
    )
    assert wins(mine, theirs) == (1, 3) and wins(theirs, mine) == (2, 3)
    actual = [5.0, 4.0, 3.0, 1.0]
    mine, theirs = frame([4.5, 2.0, 3.0, 1.0], actual), frame([4.0, 3.0, 3.0, 5.0], actual)
    assert wins(mine, theirs) == (1, 2)


def test_fig2_needs_no_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = synthetic_figure.run_synthetic

    def small(folder: Path, **options: Any) -> Any:
        rows = [r for r in synthetic_figure_rows() if r.name in ("gcn_text", "corgi_dp")]
        return original(folder, size=(30, 25, 400), rows=tuple(rows), epochs=2, **options)

    def synthetic_figure_rows() -> Any:
        from corginet.paper.synthetic import ROWS

        return ROWS

    monkeypatch.setattr(synthetic_figure, "run_synthetic", small)
    code, found, err = call(capsys, "paper", "fig2", "--out", tmp_path / "o", "--json")
    assert code == 0, err
    assert [row["model"] for row in found["rows"]] == ["gcn_text", "corgi_dp"]
    assert {Path(p).name for p in found["files"]} >= {"accuracy.svg", "attention.png", "fig2.html"}


def test_messages(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    cases: list[tuple[list[object], str]] = [
        (["table2"], "paper table2 is made from your data; pass --ratings TABLE --items TABLE"),
        (["tabel2"], "did you mean 'table2'?"),
        (["table1", "--ratings", files[0]], "--ratings TABLE --items TABLE"),
        (["table2", "--vectors", "absent"], "--vectors absent: no such file"),
        (["table2", "--set", "epocs=3"], "--set got 'epocs'"),
    ]
    for options, message in cases:
        complete = (
            options
            if "--ratings" in options or len(options) == 1
            else [
                *options,
                "--ratings",
                files[0],
                "--items",
                files[1],
            ]
        )
        code, _, err = call(capsys, "paper", *complete)
        assert (code, message in err, "Traceback" in err) == (2, True, False), err
    with pytest.raises(UserError, match="use one of table1, table2"):
        command("nothing like it")
