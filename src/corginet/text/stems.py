"""A vocabulary of stems: what is left of a word without its endings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

import torch

from corginet.nn.bag import Bag

ALPHANUMERIC = re.compile(r"[^\W_]+", re.UNICODE)
FEWEST_ITEMS = 2  # a stem seen in fewer texts links nothing


class Stems:
    """The stems of alphanumeric words that occur in at least two items' texts (Porter's stemmer).

    It follows from the texts alone, so it needs no file of its own; a new text's other stems
    are passed over.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        counts = Counter(stem for text in texts for stem in self.of(text))
        kept = sorted(stem for stem, n in counts.items() if n >= FEWEST_ITEMS)
        self.row_of = {stem: row for row, stem in enumerate(kept)}

    def of(self, text: str) -> list[str]:
        """The distinct stems of one text."""
        words = {word.lower() for word in ALPHANUMERIC.findall(text)}
        return sorted(set(self._stemmer.stemWords(sorted(words))))

    @cached_property
    def _stemmer(self):  # type: ignore[no-untyped-def]
        import Stemmer

        return Stemmer.Stemmer("porter")

    def bag(self, texts: Sequence[str]) -> Bag:
        items, words = [], []
        for item, text in enumerate(texts):
            for stem in self.of(text):
                if stem in self.row_of:
                    items.append(item)
                    words.append(self.row_of[stem])
        return Bag(
            torch.tensor(items, dtype=torch.long),
            torch.tensor(words, dtype=torch.long),
            len(texts),
            len(self.row_of),
        )
