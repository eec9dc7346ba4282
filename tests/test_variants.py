"""Contenders from a file, parts exchanged by kind, and the check of explanations on a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from corginet.config import merge, override, read_toml, validate
from corginet.errors import UserError
from corginet.experiment.contenders import Contender
from corginet.experiment.variants import read_variants
from corginet.experiment.verdict import with_controls
from corginet.recipes import RunConfig, recipe
from test_cli import FAST, TEXTLESS, call


def test_a_part_is_exchanged_by_its_kind() -> None:
    config = override(recipe("gcn").config, {"heads": 2, "conv": "gat", "channels": 8})
    assert config.model.conv.model_dump() == {"kind": "gat", "heads": 2}  # type: ignore[union-attr]
    given = {"conv": {"kind": "edge_states", "aggregate": "sum"}}
    ensemble = override(recipe("corgi-plus").config, given).model
    assert ensemble.member.conv.aggregate == "sum"  # type: ignore[union-attr]
    with pytest.raises(UserError, match=r"unknown option '--heads'"):
        override(recipe("gcn").config, {"heads": 2})
    with pytest.raises(UserError, match="no_such"):
        override(recipe("gcn").config, {"conv": "no_such"})


def test_a_config_file_exchanges_a_part_too(tmp_path: Path) -> None:
    base = recipe("corgi-plus").config
    changes = read_toml_text(tmp_path, '[model.member.conv]\nkind = "gat"\nheads = 2\n')
    found = validate(RunConfig, merge(base.model_dump(), changes), "the config")
    assert found.model.member.conv.heads == 2  # type: ignore[union-attr]
    changes = read_toml_text(tmp_path, "[model.member.conv]\nstate_dropout = 0.3\n")
    found = validate(RunConfig, merge(base.model_dump(), changes), "the config")
    assert found.model.member.conv.kind == "taste"  # type: ignore[union-attr]


def read_toml_text(folder: Path, text: str) -> dict[str, Any]:
    (folder / "c.toml").write_text(text)
    return read_toml(folder / "c.toml")


def test_none_is_a_value_where_a_field_may_lack_one() -> None:
    config = override(recipe("gcn+average").config, {"summary": "none"})
    assert config.model.states.summary is None  # type: ignore[union-attr]
    with pytest.raises(UserError, match="epochs"):
        override(recipe("gcn").config, {"epochs": "none"})


def test_controls_of_a_variant_keep_its_name() -> None:
    names = [c.name for c in with_controls([Contender("gcn+average", label="mine")])]
    assert names == ["mine", "mine:none", "mine:random", "mine:permuted"]
    assert Contender("gcn+average", text="none").name == "gcn+average:none"


def test_variants_are_compared(
    here: None,
    files: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "variants.toml"
    path.write_text(
        '["as it is"]\nrecipe = "gcn+average"\n\n["one layer"]\nrecipe = "gcn+average"\n'
        'n_layers = 1\nchannels = 4\n\n["no text"]\nrecipe = "gcn+average"\ntext = "none"\n'
    )
    shared = ["--set", "channels=8,epochs=3,encoder=hashed:16", "--seeds", 1, *TEXTLESS]
    order = ["compare", *files, "--recipes", "bias", "--variants", path, *shared, "--json"]
    code, found, err = call(capsys, *order)
    assert code == 0, err
    rows = {row["recipe"]: row for row in found["rows"]}
    assert list(rows) == ["bias", "as it is", "one layer", "no text"]
    assert rows["one layer"]["settings"]["n_layers"] == "1"
    assert rows["one layer"]["settings"]["channels"] == "4"
    assert rows["as it is"]["settings"]["channels"] == "8" and rows["no text"]["text"] == "none"
    assert 0 <= rows["bias"]["interval"]["coverage"] <= 1
    code, _, err = call(capsys, "compare", *files, *TEXTLESS)
    assert code == 2 and "pass --recipes NAMES or --variants FILE" in err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no variants in it"),
        ("name = 1", "variant 'name' names no recipe; write recipe = 'NAME' below"),
        ("[x]\nepochs = 2", "variant 'x' names no recipe"),
        ('[x]\nrecipe = "corgi-pd"', "unknown recipe 'corgi-pd'"),
        ('[x]\nrecipe = "gcn"\nepocs = 2', "variant 'x' got 'epocs'"),
        ('[x]\nrecipe = "gcn"\ntext = "much"', "variant 'x', text got 'much'"),
        ("[x", "not a TOML file"),
    ],
)
def test_a_file_of_variants_is_checked(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "v.toml"
    path.write_text(content)
    with pytest.raises(UserError, match=message):
        read_variants(path, {})


def test_explanations_are_checked_on_a_dataset(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    fit = ["fit", *files, "--out", run, "--recipe", "corgi-read", *FAST, *TEXTLESS]
    assert call(capsys, *fit)[0] == 0
    order = ["explain", run, "--study", 5, "--top", 1]
    code, found, err = call(capsys, *order, "--json")
    assert code == 0, err
    assert found["pairs"] == 5 and 0 <= found["share_above_0"] <= 1
    moved = found["moved_by_top_words"] - found["moved_by_random_words"]
    assert found["faithfulness"] == pytest.approx(moved) and found["source"].startswith("attention")
    assert call(capsys, *order, "--json")[1] == found
    code, shown, _ = call(capsys, *order)
    assert code == 0 and "share above 0" in shown
    for options, message in (
        (["u1", "i2", "--study", 5], "leave USER and ITEM out"),
        (["--study", 1], "ask for at least 2 pairs"),
        (["--study", 5, "--top", 50], "no pair of the scored part"),
        (["u1"], "explain needs RUN USER ITEM, or RUN --study PAIRS"),
        (["u1", "i2", "--top", 0], "remove at least 1 word"),
    ):
        code, _, err = call(capsys, "explain", run, *options)
        assert (code, message in err) == (2, True), err


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("corgi-dp", {"conv": "gcn"}, "conv 'gcn' carries no content.*edge_states or gat"),
        ("gcn", {"kindred": True}, "kindred leans on residuals, and values are 'read'"),
    ],
)
def test_parts_that_do_not_fit_are_refused(name: str, changes: dict, said: str) -> None:
    with pytest.raises(UserError, match=said) as found:
        override(recipe(name).config, changes, name)
    assert len(str(found.value)) < 150  # and not the whole config
