"""corginet bench epoch: one epoch at the paper's Goodreads size, ours and the literal formulas."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

from corginet.bench.floor import floor_seconds, measured_rates
from corginet.bench.literal import literal_forward
from corginet.data.graph import InteractionGraph
from corginet.data.task import Task
from corginet.models.graph_model import GraphModel, GraphModelConfig
from corginet.models.values import loss_of
from corginet.nn.content import Content
from corginet.nn.readout import Pairs
from corginet.nn.words import Words, working_precision
from corginet.recipes import recipe
from corginet.runtime import keep_memory

DROPOUT = 0.1


@dataclass(frozen=True)
class Size:
    """The size of an epoch; the defaults are the paper's Goodreads."""

    n_users: int = 2243
    n_items: int = 2452
    n_edges: int = 114_839
    n_words: int = 64
    dim: int = 768

    def part(self, fraction: float) -> Size:
        """The same density of edges and words, with a fraction of the edges."""
        return replace(self, n_edges=int(self.n_edges * fraction))


def bench_epoch(size: Size | None = None, repeats: int = 6, seed: int = 0) -> dict[str, Any]:
    """Seconds and memory of an epoch: each measured in a process of its own."""
    size = size or Size()
    out: dict[str, Any] = {"size": asdict(size), "threads": torch.get_num_threads()}
    rates = measured_rates()
    keys = ("seconds", "speedup", "memory_ratio", "floor_ratio", "floor_seconds", "literal")
    out |= {key: {} for key in keys}
    out["memory_gb"] = {}
    for form, name in (("additive", "corgi-co"), ("dot_product", "corgi-dp")):
        ours = _measure(name, size, False, repeats, seed)
        fraction, literal = _literal_that_fits(name, size, seed)
        same = _measure(name, size.part(fraction), False, repeats, seed)
        floor = floor_seconds(size, _graph_config(name), rates)
        out["seconds"][form] = ours["seconds"]
        out["memory_gb"][form] = ours["gb"]
        out["speedup"][form] = literal["seconds"] / same["seconds"]
        out["memory_ratio"][form] = same["gb"] / literal["gb"]
        out["floor_seconds"][form] = floor["total"]
        out["floor_ratio"][form] = ours["seconds"] / floor["total"]
        out["literal"][form] = {"fraction": fraction, **literal, "ours_at_fraction": same}
    cached = _measure("corgi-dp-cached", size, False, repeats, seed)
    out["seconds"]["dot_product_cached"] = cached["seconds"]
    out["memory_gb"]["dot_product_cached"] = cached["gb"]
    out["rates"] = rates
    return out


def _literal_that_fits(name: str, size: Size, seed: int) -> tuple[float, dict[str, float]]:
    """The literal version at the largest part that it survives: others may take memory, too."""
    fraction = _largest_fraction(name, size, seed)
    while True:
        try:
            return fraction, _measure(name, size.part(fraction), True, 2, seed)
        except RuntimeError:
            if fraction <= 1 / 16:
                raise
            fraction = max(1 / 16, 0.75 * fraction)


def _largest_fraction(name: str, size: Size, seed: int) -> float:
    """How much of the size the literal version can hold, from what two small parts take."""
    small, larger = (_measure(name, size.part(f), True, 1, seed)["gb"] for f in (1 / 16, 1 / 8))
    per_fraction = max(1e-3, (larger - small) * 16)
    fits = (0.85 * _available_gb() - small) / per_fraction
    return min(1.0, max(1 / 16, int(fits * 16) / 16))


def _available_gb() -> float:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9


def _measure(name: str, size: Size, literal: bool, repeats: int, seed: int) -> dict[str, float]:
    """Run epochs in a fresh process, so that its peak memory is its own."""
    order = {
        "name": name,
        "size": asdict(size),
        "literal": literal,
        "repeats": repeats,
        "seed": seed,
        "threads": torch.get_num_threads(),
    }
    command = [sys.executable, "-m", "corginet.bench.epoch", json.dumps(order)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"benchmark process failed: {done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _work(order: dict[str, Any]) -> dict[str, float]:
    """In the measuring process: build, warm up, time."""
    torch.set_num_threads(order["threads"])
    keep_memory()
    size = Size(**order["size"])
    torch.manual_seed(order["seed"])
    graph, content, pairs, targets = make_problem(size, order["seed"])
    model = build_model(_graph_config(order["name"]), size)
    optimizer = torch.optim.Adam(model.parameters())
    before = _resident_gb()

    def epoch() -> None:
        model.train()
        optimizer.zero_grad(set_to_none=True)
        if order["literal"]:
            raw = literal_forward(model, graph, pairs, content, DROPOUT)
        else:
            raw = model(graph, pairs, content)
        loss_of(raw, targets, model.task).backward()
        optimizer.step()

    times = []
    for _ in range(order["repeats"]):
        start = time.perf_counter()
        epoch()
        times.append(time.perf_counter() - start)
    peak = _peak_gb() - before
    # the first epoch also takes its memory from the system; the best of the rest counts
    return {"seconds": min(times[1:] or times), "gb": peak}


def make_problem(size: Size, seed: int) -> tuple[InteractionGraph, Content, Pairs, torch.Tensor]:
    """A random graph with uneven popularity, five levels of values, and full texts."""
    rng = np.random.default_rng(seed)
    share = rng.pareto(1.5, size.n_items) + 0.2
    items = rng.choice(size.n_items, size.n_edges, p=share / share.sum())
    users = rng.integers(size.n_users, size=size.n_edges)
    values = rng.integers(1, 6, size.n_edges).astype(np.float32)
    edges = (torch.from_numpy(users), torch.from_numpy(items), torch.from_numpy(values))
    graph = InteractionGraph.build(*edges, size.n_users, size.n_items, key="all")
    n = size.n_items * size.n_words
    vectors = working_precision(torch.empty(n, size.dim, dtype=torch.bfloat16))
    for part in vectors.split(4096):  # no fp32 copy of all: it would hide the epoch's own peak
        part.copy_(torch.randn(part.shape))
    starts = torch.arange(size.n_items) * size.n_words
    words = Words(vectors, starts, torch.full((size.n_items,), size.n_words))
    return graph, Content(words), Pairs(graph.users, graph.items), graph.values


def _graph_config(name: str) -> GraphModelConfig:
    config = recipe(name).config.model
    assert isinstance(config, GraphModelConfig)
    return config


def build_model(config: GraphModelConfig, size: Size) -> GraphModel:
    from corginet.config import override

    changes = {"message_dropout": DROPOUT, "readout_dropout": DROPOUT}
    task = Task(kind="rating", low=1, high=5)
    return override(config, changes).build(
        task, size.n_users, size.n_items, {"words": size.dim}, seed=0
    )


def _resident_gb() -> float:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e9


def _peak_gb() -> float:
    from corginet.runtime import peak_gb

    return peak_gb()


if __name__ == "__main__":
    print(json.dumps(_work(json.loads(sys.argv[1]))))
