"""Static vectors without a file: the packaged MiniLM's input table, one vector per word piece."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from corginet.text.encoders import Encoded, pooled
from corginet.text.transformer import packaged_folder

TABLE = "embeddings.word_embeddings.weight"


class PieceEncoder:
    """Look every word piece up in a transformer's input table, before any context.

    Unlike word2vec's these vectors were not trained to stand alone, but they are static: a
    piece has the same one in every text.
    """

    name = "static"

    def __init__(self, truncate: int, folder: Path | None = None) -> None:
        self.truncate = truncate
        self.folder = folder or packaged_folder()
        self._loaded: tuple[Any, np.ndarray] | None = None

    def _load(self) -> tuple[Any, np.ndarray]:
        if self._loaded is None:
            from safetensors import safe_open
            from tokenizers import Tokenizer

            tokenizer = Tokenizer.from_file(str(self.folder / "tokenizer.json"))
            tokenizer.no_truncation()
            tokenizer.no_padding()
            with safe_open(self.folder / "model.safetensors", "np") as file:
                self._loaded = tokenizer, file.get_tensor(TABLE).astype(np.float32)
        return self._loaded

    @property
    def dim(self) -> int:
        return int(self._load()[1].shape[1])

    def fingerprint(self) -> str:
        digest = hashlib.sha256(self._load()[1].tobytes())
        return f"pieces-{digest.hexdigest()[:16]}-{self.truncate}"

    def encode(self, texts: Sequence[str]) -> Iterator[Encoded]:
        tokenizer, table = self._load()
        for text in texts:
            found = tokenizer.encode(text, add_special_tokens=False)
            yield pooled(np.array(found.offsets, np.int32), table[found.ids], self.truncate)
