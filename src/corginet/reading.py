"""What a model reads of texts: encoded once, kept in a store, put together as content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from corginet.errors import UserError
from corginet.models.parts import BuildsModel
from corginet.nn.content import Content
from corginet.text.encoders import Encoder, EncoderConfig
from corginet.text.stems import Stems
from corginet.text.store import ContentStore, Progress, cache_folder
from corginet.world import no_content


class TextReader:
    """The fitted texts' content for one model, and that of texts that come later."""

    def __init__(self, model: BuildsModel, encoder: EncoderConfig, texts: Sequence[str]) -> None:
        self.model, self.config, self.texts = model, encoder, texts
        self.store: ContentStore | None = None

    def encode(
        self, texts: Sequence[str], store: ContentStore | None, progress: Progress | None
    ) -> None:
        """Put the texts into a store: the given one, or the cache that all fits share."""
        if not self.model.reads_words and not self.model.summaries:
            return
        if store is None:
            encoder, precision = self.config.build(), self.config.precision
            folder = cache_folder(encoder, precision)
            store = ContentStore.create(folder, encoder.dim, precision, encoder.fingerprint())
        self.store = store
        if store.missing(texts):
            store.add(texts, self._encoder(), progress)

    def content(self, texts: Sequence[str]) -> Content:
        """Words, whole-text vectors and stems, as far as the model reads them."""
        found = self._stored(texts)
        return replace(found, bag=self.stems.bag(texts)) if self.model.reads_stems else found

    @cached_property
    def stems(self) -> Stems:
        """The vocabulary is that of the fitted texts: new ones bring no new stems."""
        return Stems(self.texts)

    def _stored(self, texts: Sequence[str]) -> Content:
        if self.store is None:
            return no_content(len(texts))
        new = self.store.missing(texts)  # texts that came with a question: kept in memory only
        extra = dict(zip(new, self._encoder().encode(new), strict=True)) if new else {}
        return self.store.content(texts, self.model.summaries, extra)

    def _encoder(self) -> Encoder:
        """The recipe's encoder, which must be the one that the store was made by."""
        encoder = self.config.build()
        if self.store is not None and encoder.fingerprint() != self.store.encoder:
            raise UserError(
                f"{self.store.folder} was made by another encoder ({self.store.encoder}) and "
                "lacks some of the texts; make it again with corginet encode"
            )
        return encoder
