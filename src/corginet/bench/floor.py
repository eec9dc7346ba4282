"""The floor of an epoch: its operations and bytes over what this machine does at best."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from corginet.models.graph_model import GraphModelConfig
from corginet.nn.words import working_precision

if TYPE_CHECKING:
    from corginet.bench.epoch import Size


def measured_rates() -> dict[str, float]:
    """Giga-operations and gigabytes per second of the moves that an epoch is made of."""
    words = working_precision(torch.randn(40_000, 768).bfloat16())
    weight = torch.randn(768, 192).to(words.dtype)
    a, b = torch.randn(64, 48, 64), torch.randn(64, 64, 64)
    table, rows = torch.randn(2400, 64), torch.randint(2400, (4096,))
    picked, big = torch.randn(4096, 64), torch.randn(8_000_000)
    target, weights = torch.zeros(2400, 64), torch.randn(64, 64)
    return {
        "text_gflops": 2 * 40_000 * 768 * 192 / _seconds(lambda: words @ weight) / 1e9,
        "batched_gflops": 2 * 64 * 48 * 64 * 64 / _seconds(lambda: torch.bmm(a, b)) / 1e9,
        "product_gflops": 2 * 4096 * 64 * 64 / _seconds(lambda: picked @ weights) / 1e9,
        "gather_gbs": picked.nbytes / _seconds(lambda: table.index_select(0, rows)) / 1e9,
        "scatter_gbs": picked.nbytes / _seconds(lambda: target.index_add_(0, rows, picked)) / 1e9,
        "pass_gbs": picked.nbytes / _seconds(lambda: picked.mul_(1.0)) / 1e9,
        "exp_gbs": picked.nbytes / _seconds(lambda: picked.softmax(1)) / 1e9,
        "memory_gbs": big.nbytes / _seconds(lambda: big.clone()) / 1e9,
    }


def _seconds(once: Callable[[], object]) -> float:
    once()
    best = float("inf")
    for _ in range(7):
        start = time.perf_counter()
        once()
        best = min(best, time.perf_counter() - start)
    return best


def floor_seconds(
    size: Size, config: GraphModelConfig, rates: dict[str, float]
) -> dict[str, float]:
    """Each part's least time, if its parts ran one after the other at the measured rates.

    Forward once and backward once; nothing is computed twice, nothing waits. A backward pass
    of a product is two products.
    """
    giga, edges, words = 1e9, size.n_edges, size.n_items * size.n_words
    channels, layers = config.channels, config.n_layers
    attended = edges * size.n_words
    read = {
        "projection": 2 * 2 * words * size.dim * channels * layers / rates["text_gflops"],
        # two products per pair and word forward, four backward; additive scores take none
        "attention": 2
        * attended
        * channels
        * layers
        * (6 if config.along_edges.score == "dot_product" else 3)
        / rates["batched_gflops"],
        "softmax": 4 * attended * layers * 2 / rates["exp_gbs"],
    }
    row, hidden = 4 * channels * edges, 4 * config.readout.hidden * edges
    # a message: sender and content picked, summed, cut off at 0, dropped, added to its target;
    # its gradient: picked, masked, added to sender and content
    message = 2 * layers * row
    parts = read | {
        "queries": layers * row * (1 / rates["gather_gbs"] + 1 / rates["scatter_gbs"]),
        "lift": 3 * 2 * edges * channels**2 * layers / rates["product_gflops"],
        "messages": message
        * (3 / rates["gather_gbs"] + 2 / rates["scatter_gbs"] + 6 / rates["pass_gbs"]),
        "content": layers * row * 4 / rates["memory_gbs"],
        "readout": hidden
        * (4 / rates["gather_gbs"] + 2 / rates["scatter_gbs"] + 6 / rates["pass_gbs"]),
    }
    seconds = {name: amount / giga for name, amount in parts.items()}
    return seconds | {"total": sum(seconds.values())}
