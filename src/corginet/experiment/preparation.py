"""Encoding what an experiment's cells will read: once, in the parent, before any of them starts."""

from __future__ import annotations

from pathlib import Path

from corginet.data.dataset import Dataset
from corginet.experiment.contenders import Cell
from corginet.experiment.controls import RandomEncoder, random_folder, reads_vectors, texts_for
from corginet.reading import TextReader
from corginet.text.encoders import EncoderConfig
from corginet.text.shortened import ShortenedEncoder, may_be_cut
from corginet.text.store import ContentStore, Progress


class Preparation:
    """Fills the stores that cells read, and names the encoders of what is in them."""

    def __init__(self, dataset: Dataset, folder: Path, progress: Progress | None) -> None:
        self.dataset, self.folder, self.progress = dataset, folder, progress
        self._done: dict[tuple[object, ...], str] = {}
        self._filled: list[tuple[EncoderConfig, ContentStore]] = []

    def encoder_of(self, cell: Cell) -> str:
        """The fingerprint of what encodes the cell's texts ('' where it reads no vectors)."""
        if not reads_vectors(cell):
            return ""
        key = (cell.contender.text, cell.config.encoder, cell.config.model.reads_stems)
        if key not in self._done:
            self._done[key] = self._prepare(cell)
        return self._done[key]

    def _prepare(self, cell: Cell) -> str:
        if cell.contender.text != "random":
            return self._encoded(cell, texts_for(cell, self.dataset.texts)).encoder
        real = self._encoded(cell, self.dataset.texts)
        encoder = RandomEncoder(real, self.dataset.texts, cell.config.encoder.truncate)
        folder = random_folder(cell, self.folder)
        store = ContentStore.create(folder, real.dim, real.precision, encoder.fingerprint())
        store.add(texts_for(cell, self.dataset.texts), encoder)
        return encoder.fingerprint()

    def _encoded(self, cell: Cell, texts: list[str]) -> ContentStore:
        """The shared cache with these texts in it, cut from a longer encoding if there is one."""
        config = cell.config.encoder
        reader = TextReader(cell.config.model, config, texts)
        reader.encode([], None, self.progress)
        store = reader.store
        assert store is not None
        for longer, filled in self._filled:
            if may_be_cut(config, longer) and store.missing(texts):
                cut = ShortenedEncoder(config.build(), config.truncate, filled)
                store.add(texts, cut, self.progress)
        reader.encode(texts, store, self.progress)
        self._filled.append((config, store))
        return store
