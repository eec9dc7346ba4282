"""What a model reads of one item when some of its words are taken out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from corginet.estimator import Estimator
from corginet.models.ensemble import Ensemble
from corginet.nn.content import Content
from corginet.nn.words import Words


class TextEdits:
    """One item's words, to be taken out in any number of ways.

    Word vectors go; vectors of the whole text move by what that changes in the words' average;
    stems are those of the text without the words; components follow from both.
    """

    def __init__(self, estimator: Estimator, content: Content, item: int) -> None:
        self.model, self.item = estimator.model, item
        self.content = content
        if isinstance(self.model, Ensemble):
            self.content = self.model.read(content)
        self.text = estimator.texts[item]
        self.start = int(content.words.starts[item])
        self.count = int(content.words.counts[item])
        self.spans = np.zeros((0, 2), np.int32)
        if estimator.reader.store is not None and self.count:
            (encoded,) = estimator.reader.store.read([self.text])
            self.spans = encoded.spans
        self.stems = estimator.reader.stems if content.bag is not None else None
        # the item's words once more behind all others: an edit writes there, nothing is copied
        own = content.words.vectors[self.start : self.start + self.count]
        self.vectors = torch.cat([content.words.vectors, own])

    def without(self, words: np.ndarray) -> Content:
        """The content with these words of the item gone."""
        left = np.setdiff1d(np.arange(self.count), words)
        return self._edited(self._own()[torch.from_numpy(left)], words)

    def with_own(self, own: Tensor) -> Content:
        """The content with the item's word vectors exchanged, for gradients to reach them."""
        return self._edited(own, np.zeros(0, np.int64))

    def _own(self) -> Tensor:
        return self.content.words.vectors[self.start : self.start + self.count]

    def _edited(self, own: Tensor, removed: np.ndarray) -> Content:
        end = len(self.content.words.vectors)
        if own.requires_grad:
            vectors = torch.cat([self.content.words.vectors, own])
        else:
            vectors = self.vectors
            vectors[end : end + len(own)] = own
        starts, counts = self.content.words.starts.clone(), self.content.words.counts.clone()
        starts[self.item], counts[self.item] = end, len(own)
        edited = replace(self.content, words=Words(vectors, starts, counts))
        edited = replace(edited, summaries=self._summaries(own), bag=self._bag(removed))
        if isinstance(self.model, Ensemble) and self.model.components is not None:
            alone = edited.for_items(torch.tensor([self.item]))
            components = self.model.components(alone).summaries
            rows = {kind: self._with_row(kind, table[0]) for kind, table in components.items()}
            edited = replace(edited, summaries=rows)
        return edited

    def _summaries(self, own: Tensor) -> dict[str, Tensor]:
        before = self._own().float().mean(0) if self.count else torch.zeros(own.shape[1])
        after = own.float().mean(0) if len(own) else torch.zeros_like(before)
        return {
            kind: self._with_row(kind, table[self.item] + (after - before).to(table.dtype))
            if table.shape[1] == len(before)
            else table
            for kind, table in self.content.summaries.items()
        }

    def _with_row(self, kind: str, row: Tensor) -> Tensor:
        table = self.content.summaries[kind]
        return table.index_copy(0, torch.tensor([self.item]), row[None].to(table.dtype))

    def _bag(self, removed: np.ndarray):  # type: ignore[no-untyped-def]
        bag = self.content.bag
        if bag is None or self.stems is None or not len(removed):
            return bag
        letters = list(self.text)
        for start, end in self.spans[removed].tolist():
            letters[start:end] = " " * (end - start)
        return bag.with_item(self.item, self.stems.bag(["".join(letters)]).words)
