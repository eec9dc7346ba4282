"""Encoders: texts to word vectors, each word with its characters' span."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from pydantic import Field

from corginet.config import Config
from corginet.errors import UserError

SUMMARIES = ("average", "cls", "sentence")
WORD = re.compile(r"\w+", re.UNICODE)


class Encoded(NamedTuple):
    """One text: its first words with spans and vectors, and vectors of the whole text."""

    spans: np.ndarray  # int [word, 2], character positions in the text
    vectors: np.ndarray  # float32 [word, dim]
    summaries: np.ndarray  # float32 [SUMMARIES, dim]


class Encoder(Protocol):
    """Anything that turns texts into word vectors."""

    name: str

    @property
    def dim(self) -> int:
        """Width of a word vector."""
        ...

    def fingerprint(self) -> str:
        """Changes whenever the vectors would."""
        ...

    def encode(self, texts: Sequence[str]) -> Iterator[Encoded]:
        """One result per text, in order."""
        ...


class EncoderConfig(Config):
    """How texts become vectors."""

    encoder: str = Field(
        "minilm",
        description="minilm (packaged), hashed[:DIM], static:FILE (word2vec or GloVe), static "
        "(minilm's own input vectors), a transformer's folder, or a hub id",
    )
    truncate: int = Field(64, ge=1, le=100_000, description="words kept per text, from its start")
    read_tokens: int = Field(
        256,
        ge=1,
        le=100_000,
        description="tokens a transformer reads; whole-text vectors cover all",
    )
    precision: str = Field(
        "bf16", pattern="^(bf16|fp32)$", description="how word vectors are stored: bf16 or fp32"
    )

    def build(self) -> Encoder:
        kind, _, detail = self.encoder.partition(":")
        if kind == "hashed":
            return HashedEncoder(_hashed_dim(detail), self.truncate)
        if kind == "static" and detail:
            from corginet.text.static import StaticEncoder

            return StaticEncoder(detail, self.truncate)
        if kind == "static":
            from corginet.text.pieces import PieceEncoder

            return PieceEncoder(self.truncate)
        from corginet.text.transformer import TransformerEncoder

        return TransformerEncoder(self.encoder, self.truncate, self.read_tokens)


def _hashed_dim(detail: str) -> int:
    if detail and not (detail.isdigit() and 1 <= int(detail) <= 512):
        raise UserError(f"encoder hashed takes a size from 1 to 512, got '{detail}'; try hashed:64")
    return int(detail or 64)


class HashedEncoder:
    """A fixed vector of random signs for every word: no weights, no downloads, no meaning.

    Averages are a bag of words under a random projection.
    """

    def __init__(self, dim: int, truncate: int) -> None:
        self.name, self.dim, self.truncate = f"hashed:{dim}", dim, truncate

    def fingerprint(self) -> str:
        return f"{self.name}-{self.truncate}"

    def encode(self, texts: Sequence[str]) -> Iterator[Encoded]:
        for text in texts:
            found = list(WORD.finditer(text))
            vectors = np.stack([self._vector(m[0]) for m in found]) if found else self._none()
            yield pooled(np.array([m.span() for m in found]), vectors, self.truncate)

    def _vector(self, word: str) -> np.ndarray:
        digest = hashlib.blake2b(word.lower().encode(), digest_size=64).digest()
        bits = np.unpackbits(np.frombuffer(digest, np.uint8))[: self.dim]
        return (bits.astype(np.float32) * 2 - 1) / np.float32(np.sqrt(self.dim))

    def _none(self) -> np.ndarray:
        return np.zeros((0, self.dim), np.float32)


def pooled(spans: np.ndarray, vectors: np.ndarray, truncate: int) -> Encoded:
    """Words cut to the first ones; the average of all stands for every whole-text vector."""
    average = vectors.mean(0) if len(vectors) else np.zeros(vectors.shape[1], np.float32)
    summaries = np.repeat(average[None], len(SUMMARIES), axis=0).astype(np.float32)
    return Encoded(spans.reshape(-1, 2)[:truncate], vectors[:truncate], summaries)
