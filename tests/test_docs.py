"""The README's commands work, imports go one way, and the repository keeps its own rules."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
from pathlib import Path

import polars as pl
import pytest

import corginet
from conftest import make_tables
from corginet.cli.app import run

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "corginet"
LAYERS = [
    {"errors", "config", "runtime"},
    {"data"},
    {"nn"},
    {"text"},
    {"models"},
    {"training"},
    {"recipes", "run", "world"},
    {"reading", "scoring"},
    {"estimator"},
    {"explain", "edits", "report", "raw"},
    {"experiment"},
    {"paper", "bench"},
    {"cli", "__main__"},
]


def layer_of(name: str) -> int:
    return next(i for i, layer in enumerate(LAYERS) if name in layer)


def test_imports_go_one_way() -> None:
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        home = path.relative_to(PACKAGE).with_suffix("").parts[0]
        if home == "__init__":
            continue
        for node in ast.parse(path.read_text()).body:
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                parts = (name or "").split(".")
                ours = parts[0] == "corginet" and len(parts) > 1
                if ours and layer_of(parts[1]) > layer_of(home):
                    wrong.append(f"{path.name} imports {name}")
    assert wrong == []


def test_files_and_functions_stay_small() -> None:
    for path in PACKAGE.rglob("*.py"):
        source = path.read_text()
        assert len(source.splitlines()) <= 320, path
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                first = node.body[1] if ast.get_docstring(node) and node.body[1:] else node.body[0]
                assert (node.end_lineno or 0) - first.lineno <= 60, f"{path}: {node.name}"


def test_no_pickle_no_eval() -> None:
    for path in PACKAGE.rglob("*.py"):
        source = path.read_text()
        assert not re.search(
            r"import pickle|torch\.load\(|torch\.save\(|(?<![.\w])eval\(|shell=True", source
        ), path


def readme_commands() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith("corginet ")]


def write_readme_files(folder: Path) -> None:
    ratings, items = make_tables()
    named = {"u1": "ann"}
    ratings = ratings.with_columns(
        pl.col("user").replace(named), pl.col("item").replace({"i2": "dune"})
    )
    items = items.with_columns(
        pl.col("item").replace({"i2": "dune"}),
        pl.when(pl.col("text") == "").then(pl.lit("grey")).otherwise(pl.col("text")).alias("text"),
    )
    ratings.write_csv(folder / "ratings.csv")
    items.write_csv(folder / "items.csv")
    answers = ratings.with_columns((pl.col("value") > 3).cast(pl.Int8))
    answers.rename({"user": "student", "item": "question", "value": "correct"}).write_csv(
        folder / "answers.csv"
    )
    items.rename({"item": "question"}).write_csv(folder / "questions.csv")
    (folder / "pairs.csv").write_text("user,item\nann,dune\nbob,arrakis\n")
    (folder / "more_ratings.csv").write_text("user,item,value\nbob,dune,5\n")
    (folder / "new_items.csv").write_text("item,text\narrakis,old and bright\n")


@pytest.mark.slow
def test_the_readme_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_readme_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    commands = readme_commands()
    assert len(commands) >= 7
    for command in commands:
        assert run(shlex.split(command)[1:]) == 0, command
    python = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    for block in python:
        exec(compile(block, "README.md", "exec"), {})
    assert (tmp_path / "my_run" / "config.toml").exists()


def test_the_package_names_its_version_and_parts() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", corginet.__version__)
    for name in corginet.__all__:
        assert getattr(corginet, name)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = corginet.Nothing


def load_make_results():  # type: ignore[no-untyped-def]
    spec = importlib.util.spec_from_file_location("make_results", ROOT / "docs/make_results.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_of_results_are_those_of_their_rows() -> None:
    """`make docs` was run after the rows came."""
    for path, content in load_make_results().pages().items():
        assert path.read_text() == content, f"run make docs: {path.name}"


def test_a_comparison_says_what_its_rows_say() -> None:
    def row(name: str, seed: int, rmse: float) -> dict[str, object]:
        groups = {group: {"rmse": rmse} for group in ("D<=10", "D>10")}
        about = {"recipe": name, "seed": seed, "test": {"rmse": rmse}, "by_degree": groups}
        return {**about, "interval": {"coverage": 0.9}}

    values = {"mine": (0.80, 0.82, 0.81), "other": (0.90, 0.91, 0.95)}
    rows = [row(name, seed, x) for name, xs in values.items() for seed, x in enumerate(xs)]
    table = load_make_results().comparison(rows, "T", "rmse", "mine")
    records = table.as_records()
    assert [r["model"] for r in records] == ["mine", "other"]
    assert records[0]["rmse (lower is better)"] == pytest.approx(0.81)
    assert records[1]["minus mine"] == pytest.approx(0.11) and float(records[1]["p"]) < 0.05
    assert records[0]["90% interval holds"] == pytest.approx(0.9)


def test_documented_pages_exist() -> None:
    for page in re.findall(r"\]\((docs/[^)]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / page).exists(), page
