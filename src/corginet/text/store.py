"""The content store: word vectors on disk, memory-mapped, so that nothing is encoded twice."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock

from corginet.errors import UserError
from corginet.nn.content import Content
from corginet.nn.words import Words, working_precision
from corginet.text.encoders import SUMMARIES, Encoded, Encoder

FORMAT = 1
TEXTS_PER_PART = 256
Progress = Callable[[int, int, float], None]  # texts done, texts in all, words per second


class ContentStore:
    """Texts by hash, each with its words' spans and vectors, in append-only files.

    vectors.bin [word, dim], summaries.bin [text, kind, dim], spans.bin [word, 2], and
    texts.txt, whose lines are written last: what an interruption leaves behind them is cut
    off at the next start. Nothing in it is executable.
    """

    def __init__(self, folder: Path, dim: int, precision: str, encoder: str) -> None:
        self.folder, self.dim, self.precision, self.encoder = folder, dim, precision, encoder
        self._read_index()

    @classmethod
    def create(cls, folder: Path, dim: int, precision: str, encoder: str) -> ContentStore:
        """Open a store for writing; one with other vectors in it is refused."""
        if (folder / "store.json").exists():
            store = cls.open(folder)
            if (store.dim, store.precision, store.encoder) != (dim, precision, encoder):
                raise UserError(
                    f"{folder}: holds vectors of another encoder or setting ({store.encoder}); "
                    "choose another folder"
                )
            return store
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UserError(f"{folder}: not a content store and not empty; choose another folder")
        about = {"format": FORMAT, "dim": dim, "precision": precision, "encoder": encoder}
        (folder / "store.json").write_text(json.dumps(about), encoding="utf-8")
        return cls(folder, dim, precision, encoder)

    @classmethod
    def open(cls, folder: Path) -> ContentStore:
        try:
            about = json.loads((folder / "store.json").read_text("utf-8"))
            if about["format"] != FORMAT:
                raise UserError(f"{folder}: store format {about['format']}; encode the texts again")
            return cls(folder, int(about["dim"]), str(about["precision"]), str(about["encoder"]))
        except (OSError, ValueError, KeyError, TypeError):
            raise UserError(
                f"{folder}: not a content store; make one with corginet encode"
            ) from None

    def _read_index(self) -> None:
        self.counts: list[int] = []
        self.row_of: dict[str, int] = {}
        path = self.folder / "texts.txt"
        lines = path.read_text("ascii").splitlines(keepends=True) if path.exists() else []
        for line in lines:
            if line.endswith("\n"):  # a torn last line counts for nothing
                key, count = line.split()
                self.row_of[key] = len(self.counts)
                self.counts.append(int(count))

    def _cut_tails(self) -> None:
        n_texts, n_words = len(self.counts), sum(self.counts)
        sizes = {
            "vectors.bin": n_words * self.dim * self._bytes,
            "spans.bin": n_words * 8,
            "summaries.bin": n_texts * len(SUMMARIES) * self.dim * 4,
        }
        for name, size in sizes.items():
            with (self.folder / name).open("ab") as file:
                file.truncate(size)
        with (self.folder / "texts.txt").open("w", encoding="ascii") as file:
            file.writelines(f"{k} {c}\n" for k, c in zip(self.row_of, self.counts, strict=True))

    @property
    def _bytes(self) -> int:
        return 2 if self.precision == "bf16" else 4

    def missing(self, texts: Sequence[str]) -> list[str]:
        """The distinct texts that are not in here yet."""
        return [t for t in dict.fromkeys(texts) if key_of(t) not in self.row_of]

    def add(
        self, texts: Sequence[str], encoder: Encoder, progress: Progress | None = None
    ) -> tuple[int, int, float]:
        """Encode what is missing, part by part; answers texts, words and seconds it took.

        Of two processes that want the same texts one encodes, the other waits and reads.
        """
        if not self.missing(texts):
            return 0, 0, 0.0
        with FileLock(self.folder / "lock"):
            self._read_index()
            self._cut_tails()
            return self._add(self.missing(texts), encoder, progress)

    def _add(
        self, wanted: list[str], encoder: Encoder, progress: Progress | None
    ) -> tuple[int, int, float]:
        started, n_words = time.perf_counter(), 0
        for start in range(0, len(wanted), TEXTS_PER_PART):
            part = wanted[start : start + TEXTS_PER_PART]
            encoded = list(encoder.encode(part))
            self.append(part, encoded)
            n_words += sum(len(e.vectors) for e in encoded)
            if progress:
                speed = n_words / (time.perf_counter() - started)
                progress(start + len(part), len(wanted), speed)
        return len(wanted), n_words, time.perf_counter() - started

    def append(self, texts: Sequence[str], encoded: Sequence[Encoded]) -> None:
        """Write data first, then the index lines that make it count."""
        vectors = np.concatenate([e.vectors for e in encoded]).astype(np.float32)
        spans = np.concatenate([e.spans.reshape(-1, 2) for e in encoded]).astype(np.int32)
        summaries = np.stack([e.summaries for e in encoded]).astype(np.float32)
        stored = torch.from_numpy(vectors)
        if self.precision == "bf16":
            stored = stored.bfloat16().view(torch.int16)
        for name, array in (
            ("vectors.bin", stored.numpy()),
            ("spans.bin", spans),
            ("summaries.bin", summaries),
        ):
            with (self.folder / name).open("ab") as file:
                file.write(array.tobytes())
                file.flush()
                os.fsync(file.fileno())
        with (self.folder / "texts.txt").open("a", encoding="ascii") as file:
            for text, e in zip(texts, encoded, strict=True):
                key = key_of(text)
                file.write(f"{key} {len(e.vectors)}\n")
                self.row_of[key] = len(self.counts)
                self.counts.append(len(e.vectors))

    def copy_of(self, texts: Sequence[str], folder: Path) -> ContentStore:
        """A store of its own with just these texts."""
        other = ContentStore.create(folder, self.dim, self.precision, self.encoder)
        wanted = other.missing(texts)
        for start in range(0, len(wanted), TEXTS_PER_PART):
            part = wanted[start : start + TEXTS_PER_PART]
            other.append(part, list(self.read(part)))
        return other

    def read(self, texts: Sequence[str]) -> Iterator[Encoded]:
        """What is stored of each text."""
        starts = np.cumsum([0, *self.counts])
        vectors, summaries, spans = self._vectors(), self._map("summaries"), self._map("spans")
        for text in texts:
            row = self.row_of[key_of(text)]
            words = slice(starts[row], starts[row + 1])
            yield Encoded(spans[words], vectors[words].float().numpy(), summaries[row])

    def content(
        self,
        texts: Sequence[str],
        summaries: Sequence[str] = (),
        extra: Mapping[str, Encoded] | None = None,
    ) -> Content:
        """The items' words (memory-mapped) and whole-text vectors, in the order of the texts.

        `extra` brings texts that are not in here; they go to memory, not to disk.
        """
        extra = extra or {}
        row_of = self.row_of | {key_of(t): len(self.counts) + n for n, t in enumerate(extra)}
        rows = np.array([row_of[key_of(text)] for text in texts], dtype=np.int64)
        counts = np.array([*self.counts, *(len(e.vectors) for e in extra.values())], np.int64)
        starts = np.cumsum(counts) - counts
        vectors, table = self._vectors(), self._map("summaries")
        if extra:
            fresh = [torch.from_numpy(e.vectors).to(vectors.dtype) for e in extra.values()]
            vectors = torch.cat([vectors, *fresh])
            table = np.concatenate([table, np.stack([e.summaries for e in extra.values()])])
        words = Words(
            working_precision(vectors),
            torch.from_numpy(starts[rows]),
            torch.from_numpy(counts[rows]),
        )
        return Content(
            words,
            {s: torch.from_numpy(table[rows, SUMMARIES.index(s)]) for s in summaries},
        )

    def _vectors(self) -> torch.Tensor:
        data = torch.from_numpy(self._map("vectors"))
        return data.view(torch.bfloat16) if self.precision == "bf16" else data

    def _map(self, name: str) -> Any:
        n_texts, n_words = len(self.counts), sum(self.counts)
        kinds: dict[str, tuple[type, tuple[int, ...]]] = {
            "vectors": (np.int16 if self.precision == "bf16" else np.float32, (n_words, self.dim)),
            "spans": (np.int32, (n_words, 2)),
            "summaries": (np.float32, (n_texts, len(SUMMARIES), self.dim)),
        }
        dtype, shape = kinds[name]
        if 0 in shape:
            return np.zeros(shape, dtype)
        # copy-on-write: torch wants writable memory, the file stays as it is
        return np.memmap(self.folder / f"{name}.bin", dtype, "c", shape=shape)


def key_of(text: str) -> str:
    """A text's name in the store."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def cache_folder(encoder: Encoder, precision: str) -> Path:
    """Where texts encoded before are kept for the next fit; CORGINET_CACHE moves it."""
    root = os.environ.get("CORGINET_CACHE") or Path.home() / ".cache" / "corginet"
    return Path(root) / "content" / f"{encoder.fingerprint().replace(':', '-')}-{precision}"
