"""What a cell reads in place of the real texts: nothing, random vectors, or another item's text.

These are changes of the texts and their encoder, before any model sees them.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from corginet.data.dataset import Dataset
from corginet.experiment.contenders import Cell
from corginet.text.encoders import WORD, Encoded
from corginet.text.store import ContentStore

SEED = 0  # of the random texts and vectors: they are fixed, whatever the cell's seed
TEXTS_FOR_MOMENTS = 1000
NOTHING = "nothing"  # for bags of words, which must hold a word: the same one for every item


@dataclass(frozen=True, eq=False)
class TextFor:
    """The data as the cell reads it, and the store of its texts (none: the shared cache)."""

    dataset: Dataset
    store: ContentStore | None


def text_for(cell: Cell, dataset: Dataset, stores: Path) -> TextFor:
    """The dataset with the texts that the cell's contender gets."""
    texts = texts_for(cell, dataset.texts)
    store = None
    if cell.contender.text == "random" and reads_vectors(cell):
        store = ContentStore.open(random_folder(cell, stores))
    return TextFor(dataclasses.replace(dataset, texts=texts), store)


def texts_for(cell: Cell, texts: list[str]) -> list[str]:
    """The items' texts, changed as the contender asks."""
    match cell.contender.text:
        case "none":
            return [NOTHING if cell.config.model.reads_stems else ""] * len(texts)
        case "random":
            return _random_texts(texts)
        case "permuted":
            order = np.random.default_rng(cell.seed).permutation(len(texts))
            return [texts[row] for row in order]
        case _:
            return texts


def reads_vectors(cell: Cell) -> bool:
    """Whether the cell's model needs an encoder."""
    model = cell.config.model
    return model.reads_words or bool(model.summaries)


def random_folder(cell: Cell, stores: Path) -> Path:
    spec = cell.config.encoder.model_dump_json()
    return stores / f"random-{hashlib.sha256(spec.encode()).hexdigest()[:12]}"


def _random_texts(texts: Sequence[str]) -> list[str]:
    """As many words as each text has, drawn from all of them, and one that names the item.

    The name makes every item's vectors its own; a bag of words passes over it, since it is in
    one text alone.
    """
    pool = np.array([word for text in texts for word in WORD.findall(text)] or [NOTHING])
    rng = np.random.default_rng(SEED)
    drawn = (rng.choice(pool, len(WORD.findall(text))) for text in texts)
    return [" ".join([*words, f"item{n}"]) if len(words) else "" for n, words in enumerate(drawn)]


class RandomEncoder:
    """A random vector for every word of every text, and one for the text as a whole.

    Each dimension has the mean and the spread that it has in the real store. The last word,
    which names the item, gets none.
    """

    name = "random"

    def __init__(self, real: ContentStore, texts: Sequence[str], truncate: int) -> None:
        read = list(real.read([t for t in dict.fromkeys(texts) if t][:TEXTS_FOR_MOMENTS]))
        words = np.concatenate([e.vectors for e in read]) if read else np.zeros((1, real.dim))
        wholes = np.stack([e.summaries for e in read]) if read else np.zeros((1, 3, real.dim))
        self.of_words = words.mean(0), words.std(0)
        self.of_wholes = wholes.mean(0), wholes.std(0)
        self.dim, self.truncate, self.source = real.dim, truncate, real.encoder

    def fingerprint(self) -> str:
        digest = hashlib.sha256(self.source.encode())
        for array in (*self.of_words, *self.of_wholes):
            digest.update(np.round(array.astype(np.float64), 4).tobytes())
        return f"random-{digest.hexdigest()[:16]}-{self.truncate}"

    def encode(self, texts: Sequence[str]) -> Iterator[Encoded]:
        for text in texts:
            spans = [match.span() for match in WORD.finditer(text)][:-1][: self.truncate]
            digest = hashlib.sha256(f"{SEED} {text}".encode()).digest()
            rng = np.random.default_rng(list(digest[:16]))
            yield Encoded(
                np.array(spans, np.int32).reshape(-1, 2),
                self._draw(rng, self.of_words, (len(spans), self.dim)),
                self._draw(rng, self.of_wholes, self.of_wholes[0].shape) * bool(text),
            )

    def _draw(
        self,
        rng: np.random.Generator,
        moments: tuple[np.ndarray, np.ndarray],
        shape: tuple[int, ...],
    ) -> np.ndarray:
        mean, spread = moments
        return (mean + spread * rng.normal(size=shape)).astype(np.float32)
