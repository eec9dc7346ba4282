"""corginet bench attention: exactness against the direct formula, growth with text length."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from corginet.bench.literal import literal_attention
from corginet.nn.attention import ATTENTIONS, PairBatches, read_by_running_sums
from corginet.nn.words import Words
from corginet.runtime import keep_memory

CHANNELS = 64


def bench_attention(n_items: int = 50, n_pairs: int = 400_000, seed: int = 0) -> dict[str, Any]:
    """Errors in fp64; seconds per pair at T = 16 and 512; speed against the direct formula."""
    keep_memory()
    torch.manual_seed(seed)
    long, short = (
        _seconds(_problem("additive", n_items, n_pairs, words)) / n_pairs for words in (512, 16)
    )
    out: dict[str, Any] = {
        "max_error": max(max_errors(name) for name in ATTENTIONS),
        "max_error_by_form": {name: max_errors(name) for name in ATTENTIONS},
        "pairs": n_pairs,
        "items": n_items,
        "microseconds_per_pair": {"T16": short * 1e6, "T512": long * 1e6},
        "time_ratio_T512_T16": long / short,
        "counted": "sorting, running sums, search and gather, forward and backward; "
        "the projection of the words is not",
        "threads": torch.get_num_threads(),
    }
    speed = {}
    for name in ("additive", "dot_product", "dynamic"):
        ours = _problem(name, 500, 20_000, 64)
        direct = _problem(name, 500, 20_000, 64, literal=True)
        speed[name] = _seconds(direct) / _seconds(ours)
    return out | {"speedup": speed}


def max_errors(name: str) -> float:
    """The largest difference to the direct formula in fp64, in values and in gradients."""
    torch.manual_seed(0)
    words = Words(
        torch.randn(90, 8, dtype=torch.float64),
        torch.tensor([0, 30, 37, 0, 38]),
        torch.tensor([30, 7, 1, 0, 52]),
    )
    pairs = (torch.randint(11, (700,)), torch.randint(5, (700,)))
    attention = ATTENTIONS[name](6, 8).double()
    users = torch.randn(11, 6, dtype=torch.float64, requires_grad=True)
    projected = (words.vectors * 3).requires_grad_()
    batches = PairBatches(*pairs, words)
    inputs = [users, projected, *attention.parameters()]
    direct = literal_attention(attention, users, projected, words, pairs)
    weight = torch.randn_like(direct)
    wanted = [direct, *torch.autograd.grad((direct * weight).sum(), inputs)]
    found = attention(users, projected, batches)
    got = [found, *torch.autograd.grad((found * weight).sum(), inputs)]
    worst = max(float((a - b).detach().abs().max()) for a, b in zip(got, wanted, strict=True))
    return max(worst, _running_sum_error()) if name == "additive" else worst


def _running_sum_error() -> float:
    """The running sums on few users too, where they are not chosen for speed."""
    torch.manual_seed(1)
    q = torch.randn(3, 9, 5, dtype=torch.float64, requires_grad=True)
    k = (torch.randn(3, 12, 5, dtype=torch.float64) * 4).requires_grad_()
    p = [torch.randn(5, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    real = torch.arange(12) < torch.tensor([[12], [5], [1]])
    scores = torch.nn.functional.leaky_relu((q @ p[0])[..., None] + (k @ p[1])[:, None], 0.2)
    direct = scores.masked_fill(~real[:, None], -torch.inf).softmax(-1) @ k
    sums = read_by_running_sums(q, k, real, *p)
    weight = torch.randn_like(direct)
    wanted = torch.autograd.grad((direct * weight).sum(), [q, k, *p])
    got = torch.autograd.grad((sums * weight).sum(), [q, k, *p])
    errors = [
        (a - b).detach().abs().max() for a, b in zip((sums, *got), (direct, *wanted), strict=True)
    ]
    return float(max(errors))


def _problem(
    name: str, n_items: int, n_pairs: int, n_words: int, literal: bool = False
) -> Callable[[], None]:
    """A forward and backward pass on random data, ready to be timed."""
    n_users = 2000
    total = n_items * n_words
    starts = torch.arange(n_items) * n_words
    words = Words(torch.empty(total, 0), starts, torch.full((n_items,), n_words))
    users, items = torch.randint(n_users, (n_pairs,)), torch.randint(n_items, (n_pairs,))
    attention = ATTENTIONS[name](CHANNELS, CHANNELS)
    states = torch.randn(n_users, CHANNELS, requires_grad=True)
    projected = torch.randn(total, CHANNELS, requires_grad=True)
    grad = torch.randn(n_pairs, CHANNELS)
    batches = PairBatches(users, items, words)

    def once() -> None:
        states.grad = projected.grad = None
        found: Tensor = (
            literal_attention(attention, states, projected, words, (users, items))
            if literal
            else attention(states, projected, batches)
        )
        found.backward(grad)

    return once


def _seconds(once: Callable[[], None], repeats: int = 3) -> float:
    """The median of a few runs after one to warm up."""
    once()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        once()
        times.append(time.perf_counter() - start)
    return float(np.median(times))
