"""Statistics against scipy and by hand; tables in every form."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from corginet.experiment.bootstrap import difference, resample
from corginet.experiment.statistics import holm, independent_p, mean_and_error, paired_p, stars
from corginet.experiment.table import cells
from corginet.report.table import Cell, Table, save

A, B = [0.81, 0.84, 0.80, 0.86, 0.83], [0.85, 0.86, 0.84, 0.87, 0.88]


def test_means_and_t_tests() -> None:
    mean, error = mean_and_error(A)
    assert mean == pytest.approx(np.mean(A)) and error == pytest.approx(stats.sem(A))
    assert mean_and_error([0.5]) == (0.5, None)
    assert independent_p(A, B) == pytest.approx(stats.ttest_ind(A, B, equal_var=False).pvalue)
    assert paired_p(A, B) == pytest.approx(stats.ttest_rel(A, B).pvalue)
    assert paired_p([1.0], [2.0]) is None and independent_p([1.0], B) is None
    assert paired_p(A, A) == 1.0 and independent_p([1, 1], [1, 1]) == 1.0
    assert paired_p([1, 2, 3], [2, 3, 4]) == 0.0


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, None, 0.03]) == pytest.approx([0.03, 0.06, None, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
    assert [stars(p) for p in (0.0004, 0.01, 0.2, None)] == ["**", "*", "", ""]


def frame(users: list[str], predicted: list[float], actual: list[float]) -> pl.DataFrame:
    return pl.DataFrame({"user": users, "prediction": predicted, "actual": actual})


def test_bootstrap_draws_users_not_pairs() -> None:
    rng = np.random.default_rng(0)
    users = [f"u{n % 40}" for n in range(400)]
    actual = rng.integers(0, 2, 400).astype(float)
    good = np.clip(actual * 0.6 + 0.2 + rng.normal(0, 0.05, 400), 0, 1)
    poor = np.full(400, 0.5)
    for metric in ("rmse", "mae", "log_loss", "accuracy"):
        frames = {
            "good": [frame(users, good.tolist(), actual.tolist())],
            "poor": [frame(users, poor.tolist(), actual.tolist())],
        }
        drawn = resample(frames, metric)
        found = difference(drawn["good"], drawn["poor"])
        assert found.low < found.observed < found.high and found.p < 0.01
        same = difference(drawn["good"], drawn["good"])
        assert same.observed == 0 and same.p == 1
    expected = float(np.sqrt(((good - actual) ** 2).mean()))
    assert resample(frames, "rmse")["good"].observed == pytest.approx(expected)
    # one user alone: every draw is that user, so nothing varies
    alone = {"a": [frame(["u"] * 3, [0.1, 0.2, 0.9], [0, 0, 1])]}
    assert np.ptp(resample(alone, "mae")["a"].draws) == 0


def test_the_best_is_marked_and_tested_against_the_second() -> None:
    found = cells({"a": A, "b": B, "c": [x + 0.2 for x in B]}, "rmse")
    assert (found["a"].mark, found["b"].mark, found["c"].mark) == ("best", "second", "")
    assert found["a"].stars == stars(independent_p(A, B)) == "*"
    assert found["b"].stars == ""
    higher = cells({"a": A, "b": B}, "accuracy")
    assert higher["b"].mark == "best"


TABLE = Table(
    "a_title & <b>",
    ["model", "rmse ↓"],
    [["50% <i>|x", Cell(0.8731, 0.0004, "**", "best")], ["b", Cell(0.9, None, "", "second")]],
    ["a note_"],
)


def test_tables_in_every_form(tmp_path: Path) -> None:
    text = TABLE.as_text()
    assert "[0.8731 ± 0.0004] **" in text and "_0.9000_" in text and "a note_" in text
    markdown = TABLE.as_markdown()
    assert "**0.8731 ± 0.0004**<sup>\\*\\*</sup>" in markdown and "50% &lt;i>\\|x" in markdown
    latex = TABLE.as_latex()
    assert r"\textbf{0.8731 $\pm$ 0.0004}$^{**}$" in latex and r"50\% \textless{}" in latex
    assert r"\underline{0.9000}" in latex and r"a\_title \&" in latex and r"$\downarrow$" in latex
    page = TABLE.as_html()
    assert "<b>0.8731 ± 0.0004</b><sup>**</sup>" in page and "50% &lt;i&gt;|x" in page
    assert "<i>" not in page
    assert json.loads(TABLE.as_json())["rows"][0] == {"model": "50% <i>|x", "rmse ↓": 0.8731}
    paths = save(TABLE, tmp_path / "new", "t")
    assert {p.suffix for p in paths} == {".txt", ".md", ".tex", ".json", ".html"}
    whole = (tmp_path / "new" / "t.html").read_text()
    assert "a_title &amp; &lt;b&gt;" in whole and "<u>0.9000</u>" in whole
    assert Table("t", ["x"], [[None], [0.25]]).as_text().splitlines()[4:6] == ["—   ", "0.25"]
