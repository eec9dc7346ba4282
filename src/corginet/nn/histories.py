"""What each asked pair's user has given before (or its item has got), entry by entry."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from corginet.nn.sparse import csr

CHUNK = 2**22  # entries held at a time


class Histories(NamedTuple):
    """Of some asked nodes, one after the other: every edge at the node is an entry."""

    part: slice  # which of the asked nodes
    starts: Int[Tensor, " start"]  # of each one's entries, and the end of the last
    rows: Int[Tensor, " entry"]  # the asked node of each entry, counted from the part's start
    edges: Int[Tensor, " entry"]

    def sums(
        self, weights: Float[Tensor, " entry"], columns: Float[Tensor, "edge column"]
    ) -> Float[Tensor, "node column"]:
        """Per asked node, the weighted sums of its edges' numbers."""
        shape = (len(self.starts) - 1, len(columns))
        return csr(self.starts, self.edges, weights, shape) @ columns


def histories(
    ends: Int[Tensor, " edge"], n_nodes: int, asked: Int[Tensor, " asked"]
) -> Iterator[Histories]:
    """Those of the asked nodes, in parts of about a chunk; `ends` are the edges' nodes."""
    order = torch.argsort(ends, stable=True)
    counts = torch.bincount(ends, minlength=n_nodes)
    firsts = torch.cumsum(counts, 0) - counts
    sizes = counts[asked]
    for part in _parts(sizes):
        n, first = sizes[part], firsts[asked[part]]
        starts = torch.cat([n.new_zeros(1), torch.cumsum(n, 0)])
        rows = torch.repeat_interleave(torch.arange(len(n)), n)
        place = torch.arange(len(rows)) - starts[rows]
        yield Histories(part, starts, rows, order[first[rows] + place])


def _parts(sizes: Int[Tensor, " asked"]) -> Iterator[slice]:
    """Slices whose sizes together are about a chunk."""
    ends = torch.cumsum(sizes, 0)
    marks = torch.tensor(range(CHUNK, int(sizes.sum()), CHUNK), dtype=torch.long)
    cuts = torch.unique(torch.searchsorted(ends, marks)).tolist()
    for first, last in itertools.pairwise([0, *(c for c in cuts if c), len(sizes)]):
        yield slice(first, last)
