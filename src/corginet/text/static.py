"""Static word vectors in the text formats of word2vec and GloVe, and word2vec's binary."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from corginet.errors import UserError
from corginet.text.encoders import WORD, Encoded, pooled


class StaticEncoder:
    """Look every word up in a table; words that are not in it are passed over.

    The word as written is looked up first, then in lower case.
    """

    def __init__(self, path: str, truncate: int) -> None:
        self.path, self.truncate = Path(path).expanduser(), truncate
        if not self.path.is_file():
            raise UserError(f"encoder static: no file '{path}'; give word2vec or GloVe vectors")
        self.name = f"static:{self.path}"
        self._table: tuple[dict[str, int], np.ndarray] | None = None

    @property
    def table(self) -> tuple[dict[str, int], np.ndarray]:
        if self._table is None:
            binary = self.path.suffix == ".bin"
            self._table = (_read_binary if binary else _read_text)(self.path)
        return self._table

    @property
    def dim(self) -> int:
        return int(self.table[1].shape[1])

    def fingerprint(self) -> str:
        with self.path.open("rb") as file:
            digest = hashlib.sha256(f"{self.path.stat().st_size}".encode() + file.read(2**20))
        return f"static-{digest.hexdigest()[:16]}-{self.truncate}"

    def encode(self, texts: Sequence[str]) -> Iterator[Encoded]:
        rows, vectors = self.table
        for text in texts:
            found = [
                (match.span(), row)
                for match in WORD.finditer(text)
                if (row := rows.get(match[0], rows.get(match[0].lower()))) is not None
            ]
            spans = np.array([span for span, _ in found], np.int32)
            yield pooled(spans, vectors[[row for _, row in found]], self.truncate)


def _read_text(path: Path) -> tuple[dict[str, int], np.ndarray]:
    rows: dict[str, int] = {}
    vectors: list[np.ndarray] = []
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            word, *numbers = line.rstrip().split(" ")
            if number == 1 and len(numbers) == 1:
                continue  # word2vec's header: count and size
            try:
                vector = np.array(numbers, np.float32)
            except ValueError:
                raise UserError(
                    f"{path.name}: line {number} is not 'word number number …'; "
                    "give word2vec or GloVe text vectors"
                ) from None
            if not vector.size or (vectors and len(vector) != len(vectors[0])):
                raise UserError(
                    f"{path.name}: line {number} has {len(vector)} numbers, "
                    f"{len(vectors[0]) if vectors else 'some'} expected; the file may be cut off"
                )
            rows[word] = len(vectors)
            vectors.append(vector)
    if not vectors:
        raise UserError(f"{path.name}: no vectors in it; give word2vec or GloVe vectors")
    return rows, np.stack(vectors)


def _read_binary(path: Path) -> tuple[dict[str, int], np.ndarray]:
    rows: dict[str, int] = {}
    with path.open("rb") as file:
        try:
            count, dim = (int(x) for x in file.readline(64).split())
            if count * dim * 4 > path.stat().st_size:
                raise ValueError
        except ValueError:
            raise UserError(
                f"{path.name}: no word2vec binary header; use .txt for text vectors"
            ) from None
        vectors = np.empty((count, dim), np.float32)
        for row in range(count):
            word = b""
            while (char := file.read(1)) not in (b" ", b""):
                word += char
            data = file.read(4 * dim)
            if len(data) < 4 * dim:
                raise UserError(f"{path.name}: ends at word {row:,} of {count:,}; fetch it again")
            rows[word.decode("utf-8", "replace").strip()] = row
            vectors[row] = np.frombuffer(data, np.float32)
    return rows, vectors
