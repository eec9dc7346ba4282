"""The synthetic experiment at a small size; the whole of it carries the slow mark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from corginet.cli.app import run
from corginet.data.synthetic import make_synthetic
from corginet.paper import synthetic
from corginet.paper.synthetic import ROWS, chance, run_synthetic


def test_synthetic_data_is_what_it_says() -> None:
    data = make_synthetic(30, 40, 500, seed=1)
    r = data.dataset.ratings
    assert len(set(zip(r.users.tolist(), r.items.tolist(), strict=True))) == 500
    assert (r.values == data.holds[r.items, data.focus[r.users]]).all()
    assert r.task.binary


def test_labels_are_no_input_but_for_one_model(tmp_path: Path) -> None:
    data, outcomes = run_synthetic(tmp_path, size=(30, 25, 300), epochs=1)
    for outcome in outcomes:
        e = outcome.estimator
        graph, content = e.training_graph(), e.content()
        pairs, _ = e._part(2)
        before = e._values(graph, pairs, content)
        flipped = e._values(graph.with_values(1 - graph.values), pairs, content)
        assert (before == flipped).all() == (outcome.row.name != "gcn_labels")
    assert 0.2 < chance(data, outcomes[0].estimator) < 0.7


def test_figures_and_report_stand_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    original = synthetic.run_synthetic

    def small(folder: Path, **options: object):  # type: ignore[no-untyped-def]
        return original(folder, size=(30, 25, 400), epochs=2, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(synthetic, "run_synthetic", small)
    assert run(["demo", "--out", str(tmp_path / "d"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"gcn_text", "corgi", "gcn_labels"} <= set(found["accuracy"]) and found["seconds"] > 0
    page = (tmp_path / "d" / "report.html").read_text()
    assert page.count("data:image/png;base64") == 3
    assert "http://" not in page and "https://" not in page and "<script" not in page
    for name in ("accuracy", "node_states", "attention"):
        assert (tmp_path / "d" / f"{name}.svg").stat().st_size > 1000


@pytest.mark.slow
def test_the_whole_demo_shows_what_it_should(tmp_path: Path) -> None:
    torch.set_num_threads(2)
    rows = tuple(r for r in ROWS if r.name in ("gcn_text", "corgi_co", "corgi_dp", "corgi_read"))
    _, outcomes = run_synthetic(tmp_path, rows=rows)
    found = {o.row.name: o for o in outcomes}
    assert found["corgi_co"].accuracy >= 0.99 and found["corgi_dp"].accuracy >= 0.99
    assert found["gcn_text"].accuracy < 0.8
    assert max(found["corgi_read"].focus.values()) >= 0.9
