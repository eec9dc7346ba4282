"""Vectors that the user brings, of any kind of content, in place of an encoder's."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np

from corginet.data.readers import Source, name_of, read_table
from corginet.errors import UserError
from corginet.text.encoders import WORD, Encoded, pooled


class GivenEncoder:
    """Looks every text's vectors up in the item table's column `vectors`.

    A row holds a list of vectors (words, or parts of an image), or one vector. Where a text has
    as many words as vectors, each vector takes its word's span.
    """

    name = "given"

    def __init__(self, source: Source, columns: dict[str, str] | None = None) -> None:
        where = name_of(source)
        frame = read_table(source, ["vectors", "text"], columns)
        self.table: dict[str, np.ndarray] = {}
        for row, (given, text) in enumerate(frame.iter_rows(), 1):
            vectors = _as_rows(given, f"{where}: row {row}")
            if text in self.table and not np.array_equal(self.table[text], vectors):
                raise UserError(
                    f"{where}: row {row} repeats a text with other vectors; make texts differ"
                )
            self.table[text] = vectors
        dims = {v.shape[1] for v in self.table.values() if len(v)}
        if len(dims) != 1:
            raise UserError(f"{where}: vectors have {len(dims)} different sizes; give them one")
        self.dim = dims.pop()

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for text, vectors in sorted(self.table.items()):
            digest.update(text.encode() + vectors.tobytes())
        return f"given-{digest.hexdigest()[:16]}"

    def encode(self, texts: Sequence[str]) -> Iterator[Encoded]:
        for text in texts:
            vectors = self.table.get(text, np.zeros((0, self.dim), np.float32))
            vectors = vectors.reshape(-1, self.dim)
            spans = [match.span() for match in WORD.finditer(text)]
            fitting = spans if len(spans) == len(vectors) else [(0, len(text))] * len(vectors)
            yield pooled(np.array(fitting, np.int32), vectors, len(vectors))


def _as_rows(given: object, where: str) -> np.ndarray:
    try:
        rows = np.array(given, np.float32)
    except (TypeError, ValueError):
        raise UserError(f"{where}: 'vectors' must be numbers, in lists of one length") from None
    rows = rows[None] if rows.ndim == 1 and rows.size else rows
    if rows.ndim != 2 and rows.size:
        raise UserError(f"{where}: 'vectors' must be a list of vectors, or one vector")
    if not np.isfinite(rows).all():
        raise UserError(f"{where}: 'vectors' has numbers that are not finite; correct them")
    return rows
