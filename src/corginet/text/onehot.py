"""One-hot words over a small stated vocabulary, for data where words are all there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from corginet.text.encoders import WORD, Encoded, pooled


class OneHotEncoder:
    """Each word of the vocabulary its own direction; others are passed over.

    The average of one-hot words is the bag of words.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self.vocabulary = list(vocabulary)
        self.name, self.dim = "onehot", len(self.vocabulary)

    def fingerprint(self) -> str:
        return "onehot-" + "-".join(self.vocabulary)

    def encode(self, texts: Sequence[str]) -> Iterator[Encoded]:
        place = {word: i for i, word in enumerate(self.vocabulary)}
        identity = np.eye(self.dim, dtype=np.float32)
        for text in texts:
            found = [m for m in WORD.finditer(text) if m[0] in place]
            spans = np.array([m.span() for m in found], np.int32)
            yield pooled(spans, identity[[place[m[0]] for m in found]], self.dim)
