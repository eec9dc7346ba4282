"""corginet encode."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from corginet.cli.output import emit, progress, say
from corginet.cli.parsing import parse_columns

if TYPE_CHECKING:
    from corginet.text.encoders import Encoder


def encode(
    items: Path,
    /,
    *,
    out: Path,
    encoder: str = "minilm",
    truncate: int | None = None,
    precision: str | None = None,
    columns: str | None = None,
    missing_text: str = "allow",
    seed: int = 0,
    json: bool = False,
) -> None:
    """Turn item texts into a content store; interrupted, the same command goes on.

    Parameters
    ----------
    items
        Table of item, text.
    out
        Folder of the store.
    encoder
        minilm, hashed[:DIM], static:FILE, a transformer's folder, a hub id, or given: the
        vectors in the table's column `vectors`.
    truncate
        Words kept per text.
    precision
        bf16 or fp32.
    columns
        Other column names: item=question,text=wording.
    missing_text
        Whether items may lack a text: error or allow.
    seed
        Accepted everywhere; encoding draws nothing.
    json
        Print one JSON document.
    """
    from corginet.config import override
    from corginet.data.dataset import read_texts
    from corginet.text.encoders import EncoderConfig
    from corginet.text.store import ContentStore

    changes = {"encoder": encoder, "truncate": truncate, "precision": precision}
    given = {k: v for k, v in changes.items() if v is not None}
    config = override(EncoderConfig(), given, "encode")
    texts = read_texts(items, parse_columns(columns), missing_text)["text"].to_list()  # type: ignore[arg-type]
    if encoder == "given":
        from corginet.text.given import GivenEncoder

        made: Encoder = GivenEncoder(items, parse_columns(columns))
    else:
        made = config.build()
    store = ContentStore.create(out, made.dim, config.precision, made.fingerprint())
    already = len(set(texts)) - len(store.missing(texts))
    with progress("encoding texts") as bar:
        new, words, seconds = store.add(
            texts, made, lambda done, total, speed: bar(done, total, f"{speed:,.0f} words/s")
        )
    result = {
        "items": len(texts),
        "encoded": new,
        "reused": already,
        "words": sum(store.counts),
        "words_per_second": words / seconds if new else 0.0,
        "dim": made.dim,
        "out": str(out),
    }
    emit(
        result,
        json,
        lambda: say(
            f"{new:,} texts encoded, {already:,} were there, {words:,} words at "
            f"{result['words_per_second']:,.0f} words/s, in {out}"
        ),
    )
