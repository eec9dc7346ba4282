"""The first words of texts that are already encoded at a greater length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corginet.text.encoders import Encoded, Encoder, EncoderConfig
from corginet.text.store import ContentStore


class ShortenedEncoder:
    """Cut a longer store's words; where that has not all the texts, encode anew.

    Encoders keep the first words of what they have read in full, so cutting gives the same
    vectors as long as no more words are kept than a transformer reads.
    """

    def __init__(self, encoder: Encoder, truncate: int, longer: ContentStore) -> None:
        self.encoder, self.truncate, self.longer = encoder, truncate, longer
        self.name, self.dim = encoder.name, encoder.dim

    def fingerprint(self) -> str:
        return self.encoder.fingerprint()

    def encode(self, texts: Sequence[str]) -> Iterator[Encoded]:
        if self.longer.missing(texts):
            yield from self.encoder.encode(texts)
            return
        for found in self.longer.read(texts):
            yield Encoded(
                found.spans[: self.truncate], found.vectors[: self.truncate], found.summaries
            )


def may_be_cut(short: EncoderConfig, long: EncoderConfig) -> bool:
    """Whether the one's vectors are the other's first."""
    alike = short.model_copy(update={"truncate": long.truncate}) == long
    return alike and short.truncate <= long.truncate <= long.read_tokens
