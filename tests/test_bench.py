"""The benchmarks run, at sizes for tests, and say what they promise."""

from __future__ import annotations

import json

import pytest

from corginet.bench import epoch
from corginet.bench.attention import bench_attention
from corginet.bench.epoch import Size, bench_epoch
from corginet.bench.floor import floor_seconds, measured_rates
from corginet.cli.app import run
from corginet.recipes import recipe


@pytest.mark.slow
def test_attention_bench_is_exact() -> None:
    found = bench_attention(n_items=6, n_pairs=900)
    assert found["max_error"] < 1e-10
    assert found["time_ratio_T512_T16"] > 0
    assert set(found["speedup"]) >= {"additive", "dot_product"}


def test_floor_counts_more_work_for_more_edges() -> None:
    rates = measured_rates()
    config = recipe("corgi-dp").config.model
    small, large = (floor_seconds(Size().part(f), config, rates)["total"] for f in (0.1, 1.0))
    assert 0 < small < large


@pytest.mark.slow
def test_epoch_bench_at_a_small_size() -> None:
    size = Size(n_users=40, n_items=30, n_edges=2000, n_words=8, dim=32)
    found = bench_epoch(size, repeats=2)
    for key in ("speedup", "memory_ratio", "floor_ratio", "seconds"):
        assert found[key]["additive"] > 0 and found[key]["dot_product"] > 0
    assert 0 < found["literal"]["additive"]["fraction"] <= 1


@pytest.mark.slow
def test_attention_bench_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "attention", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["max_error"] < 1e-10 and found["time_ratio_T512_T16"] < 2


def test_a_literal_version_that_is_killed_is_tried_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def measure(name: str, size: Size, literal: bool, repeats: int, seed: int) -> dict[str, float]:
        tried.append(size.n_edges)
        if repeats == 2 and size.n_edges > 60_000:
            raise RuntimeError("killed")
        return {"seconds": 1.0, "gb": 0.1}

    monkeypatch.setattr(epoch, "_measure", measure)
    fraction, found = epoch._literal_that_fits("corgi-dp", Size(n_edges=100_000), 0)
    assert fraction == pytest.approx(0.75**2) and found["gb"] == 0.1
    assert tried[-3:] == [100_000, 75_000, 56_250]
    with pytest.raises(RuntimeError, match="killed"):
        epoch._literal_that_fits("corgi-dp", Size(n_edges=10_000_000), 0)
