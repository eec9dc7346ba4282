"""The directions in which a collection's texts differ most, in meaning and in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from corginet.nn.bag import Bag
from corginet.nn.content import Content

NAME = "components"
MEANING = "meaning"  # those of the components that come from word vectors


class TextComponents(nn.Module):
    """One short vector per text, fitted on all texts of the training tables, frozen afterwards.

    The principal components of the average word vector, beside those of the stems weighted by
    rarity (tf-idf, latent semantic analysis): the first know what a text means, the second
    names that no encoder knows. A component's scale is the root of its share, so that broad
    directions lead without drowning the others. Values play no part in it.
    """

    def __init__(self, dim: int, n_stems: int, n_components: int) -> None:
        super().__init__()
        self.n_meaning, self.n_words = min(dim, n_components), min(n_stems, n_components)
        self.width = self.n_meaning + self.n_words
        self.register_buffer("centre", torch.zeros(self.width))
        self.register_buffer("meaning_axes", torch.zeros(dim, self.n_meaning))
        self.register_buffer("stem_axes", torch.zeros(n_stems, self.n_words))
        self.register_buffer("rarity", torch.zeros(n_stems))
        self.centre: Tensor
        self.meaning_axes: Tensor
        self.stem_axes: Tensor
        self.rarity: Tensor

    @torch.no_grad()
    def fit(self, content: Content) -> None:
        """Find the directions; a collection of fewer texts than components has fewer."""
        present = _present(content)
        if not present.any():
            return
        vectors = content.summaries["average"][present].double()
        self.meaning_axes.copy_(_axes(vectors - vectors.mean(0), self.n_meaning))
        bag = content.bag
        if bag is not None and self.n_words:
            share = torch.bincount(bag.words, minlength=bag.n_words) / max(1, bag.n_items)
            self.rarity.copy_(1 - share.clamp(min=1 / max(1, bag.n_items)).log())
            self.stem_axes.copy_(_sparse_axes(self._weighted(bag), bag, self.n_words))
        raw = self._raw(content)[present]
        for part, axes in zip(
            (raw[:, : self.n_meaning], raw[:, self.n_meaning :]),
            (self.meaning_axes, self.stem_axes),
            strict=True,
        ):
            if part.shape[1]:
                axes *= _balance(part)
        self.centre.copy_(self._raw(content)[present].mean(0))

    def forward(self, content: Content) -> Content:
        """The content with these vectors among its whole-text vectors."""
        found = torch.where(_present(content)[:, None], self._raw(content) - self.centre, 0.0)
        made = {NAME: found, MEANING: found[:, : self.n_meaning]}
        return replace(content, summaries={**content.summaries, **made})

    def _raw(self, content: Content) -> Float[Tensor, "item component"]:
        meaning = content.summaries["average"].to(self.meaning_axes) @ self.meaning_axes
        bag = content.bag
        if bag is None or not self.n_words:
            return torch.cat([meaning, meaning.new_zeros(len(meaning), self.n_words)], dim=1)
        weights = self._weighted(bag).to(meaning.dtype)
        words = meaning.new_zeros(bag.n_items, self.n_words)
        rows = self.stem_axes.index_select(0, bag.words) * weights[:, None]
        return torch.cat([meaning, words.index_add(0, bag.items, rows)], dim=1)

    def _weighted(self, bag: Bag) -> Float[Tensor, " entry"]:
        """Every entry's rarity, divided by the length of its text's vector."""
        weights = self.rarity.double().index_select(0, bag.words)
        squares = weights.new_zeros(bag.n_items).index_add(0, bag.items, weights.square())
        return weights / squares.sqrt().clamp(min=1e-9).index_select(0, bag.items)


def _present(content: Content) -> Bool[Tensor, " item"]:
    """Which items have a text; the others get zeros."""
    return (content.summaries["average"] != 0).any(1)


def _axes(centred: Float[Tensor, "item dim"], n: int) -> Float[Tensor, "dim n"]:
    _, directions = torch.linalg.eigh(centred.t() @ centred)
    return _signed(directions[:, -n:].flip(1))


def _sparse_axes(weights: Tensor, bag: Bag, n: int) -> Float[Tensor, "stem n"]:
    """Right singular vectors of the weighted items × stems matrix."""
    from scipy.sparse import csr_array
    from scipy.sparse.linalg import svds

    entries = (weights.numpy(), (bag.items.numpy(), bag.words.numpy()))
    matrix = csr_array(entries, shape=(bag.n_items, bag.n_words))
    found = min(n, min(matrix.shape) - 1)
    axes = torch.zeros(bag.n_words, n, dtype=torch.float64)
    if found > 0:
        _, _, right = svds(matrix, k=found, v0=np.ones(min(matrix.shape)), solver="arpack")
        axes[:, :found] = torch.from_numpy(right[::-1].T.copy())
    return _signed(axes)


def _signed(axes: Float[Tensor, "dim n"]) -> Float[Tensor, "dim n"]:
    """Each direction turned so that its largest entry is above 0: one answer, not two."""
    largest = axes.abs().argmax(0)
    signs = axes.gather(0, largest[None]).sign()[0]
    return axes * torch.where(signs == 0, 1.0, signs)


def _balance(part: Float[Tensor, "item n"]) -> Float[Tensor, " n"]:
    """Factors that make a component's spread the root of its ratio to the largest."""
    spread = part.std(0, correction=0)
    product = (spread * spread.max()).sqrt()
    return torch.where(product > 1e-6, 1 / product.clamp(min=1e-6), 0.0)
