"""Which stems of a fixed vocabulary each item's text holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Int
from torch import Tensor

from corginet.errors import UserError
from corginet.nn.sparse import SparseMatrix


def number_of_stems(dims: Mapping[str, int]) -> int:
    """How many stems there are, for a part that is nothing without them."""
    if not dims["bow"]:
        raise UserError(
            "no stem occurs in two of the items' texts, so a bag of words links nothing; "
            "give longer texts or choose another recipe"
        )
    return dims["bow"]


@dataclass(frozen=True, eq=False)
class Bag:
    """One entry per (item, stem in its text), sorted by item."""

    items: Int[Tensor, " entry"]
    words: Int[Tensor, " entry"]
    n_items: int
    n_words: int

    @cached_property
    def matrix(self) -> SparseMatrix:
        """Items × stems, of ones and zeros."""
        ones = torch.ones(len(self.items))
        return SparseMatrix(self.items, self.words, ones, (self.n_items, self.n_words))

    def for_items(self, items: Int[Tensor, " item"]) -> Bag:
        """The same entries seen from a subset of the items, in its order."""
        counts = torch.bincount(self.items, minlength=self.n_items)
        starts = torch.cumsum(counts, 0) - counts
        wanted = counts[items]
        rows = torch.repeat_interleave(torch.arange(len(items)), wanted)
        place = torch.arange(len(rows)) - (torch.cumsum(wanted, 0) - wanted)[rows]
        words = self.words[starts[items][rows] + place]
        return Bag(rows, words, len(items), self.n_words)
