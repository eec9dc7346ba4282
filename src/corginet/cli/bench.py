"""corginet bench."""

from __future__ import annotations

from corginet.cli.output import emit, table


def attention(*, threads: int | None = None, seed: int = 0, json: bool = False) -> None:
    """Additive and dot-product attention against the direct formula.

    Parameters
    ----------
    threads
        Threads to compute with; all cores unless given.
    seed
        Seed of the random data.
    json
        Print one JSON document.
    """
    from corginet.bench.attention import bench_attention

    _use(threads)
    found = bench_attention(seed=seed)
    rows = [("largest error, fp64", f"{found['max_error']:.1e}")]
    rows += [(f"µs per pair, {k}", f"{v:.2f}") for k, v in found["microseconds_per_pair"].items()]
    rows += [("time T = 512 / T = 16", f"{found['time_ratio_T512_T16']:.2f}")]
    rows += [(f"speed-up, {k}", f"{v:.1f} ×") for k, v in found["speedup"].items()]
    emit(found, json, lambda: table("attention", ["", "measured"], rows))


def epoch(*, threads: int | None = None, seed: int = 0, json: bool = False) -> None:
    """One epoch at the paper's Goodreads size against a literal version of its formulas.

    Parameters
    ----------
    threads
        Threads to compute with; all cores unless given.
    seed
        Seed of the random data.
    json
        Print one JSON document.
    """
    from corginet.bench.epoch import bench_epoch

    _use(threads)
    found = bench_epoch(seed=seed)
    rows = [(f"seconds, {k}", f"{v:.3f}") for k, v in found["seconds"].items()]
    rows += [(f"GB above the texts, {k}", f"{v:.2f}") for k, v in found["memory_gb"].items()]
    for form, literal in found["literal"].items():
        rows += [
            (f"{form}: literal version fits at", f"{literal['fraction']:.3g} of the edges"),
            (f"{form}: its seconds there", f"{literal['seconds']:.2f}"),
            (f"{form}: speed-up there", f"{found['speedup'][form]:.1f} ×"),
            (f"{form}: our memory / its", f"{found['memory_ratio'][form]:.3f}"),
            (f"{form}: floor", f"{found['floor_seconds'][form]:.3f} s"),
            (f"{form}: our time / floor", f"{found['floor_ratio'][form]:.2f}"),
        ]
    emit(found, json, lambda: table("one epoch at the paper's size", ["", "measured"], rows))


def _use(threads: int | None) -> None:
    import torch

    if threads:
        torch.set_num_threads(threads)
