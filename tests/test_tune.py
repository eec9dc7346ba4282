"""corginet tune: trials, resuming, the file it writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corginet.cli.app import run
from corginet.config import fields
from corginet.experiment.tuning import finished
from corginet.recipes import all_recipes, recipe

FAST = ["--settings", "encoder=hashed:8,epochs=4,hidden=5", "--missing-text", "allow"]


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, Any, str]:
    code = run([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out.startswith("{") else out, err


def test_a_search_is_resumed_and_its_best_settings_fit(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "tuning"
    order = ["tune", *files, "--recipe", "gcn+average", "--out", out, *FAST, "--json"]
    code, found, err = call(capsys, *order, "--trials", 2, "--jobs", 2)
    assert code == 0, err
    assert found["trials"] == 2 and found["best"]["validation_loss"] > 0
    assert found["best"]["validation_loss"] <= found["default_validation_loss"]
    code, again, _ = call(capsys, *order, "--trials", 3, "--jobs", 1)
    assert again["trials"] == 3
    assert again["default_validation_loss"] == found["default_validation_loss"]
    config = out / "best.toml"
    fitting = ["--config", config, "--out", tmp_path / "run", "--missing-text", "allow"]
    code, _, err = call(capsys, "fit", *files, *fitting)
    assert code == 0, err
    assert recipe("gcn+average").config.training.learning_rate == 0.01  # the recipe stays


def test_recipes_that_train_have_something_to_search() -> None:
    for found in all_recipes():
        spaces = [
            info.json_schema_extra for _, info, _ in fields(found.config) if info.json_schema_extra
        ]
        assert spaces, found.name


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--trials", "0"], "--trials got 0; ask for at least 1"),
        (["--recipe", "corgi-pd"], "unknown recipe 'corgi-pd'"),
        (["--settings", "epocs=3"], "epocs"),
    ],
)
def test_bad_orders_get_one_sentence(
    files: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    out = tmp_path / "t"
    code, _, err = call(capsys, "tune", *files, "--out", out, "--missing-text", "allow", *options)
    assert code == 2 and message in err and "Traceback" not in err
    assert not out.exists()


def test_only_ended_trials_count() -> None:
    class Trial:
        def __init__(self, name: str) -> None:
            self.state = type("State", (), {"name": name})

    study = type("Study", (), {"trials": [Trial(n) for n in ("COMPLETE", "RUNNING", "PRUNED")]})
    assert finished(study) == 2
