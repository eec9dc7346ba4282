"""A dataset: ratings, and the text of each item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from corginet.data.ratings import Duplicates, Missing, Ratings
from corginet.data.readers import Source, name_of, read_table
from corginet.data.vocabulary import Vocabulary, as_text
from corginet.errors import UserError, examples, plural, raise_together

if TYPE_CHECKING:
    import polars as pl

MissingText = Literal["error", "allow"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Ratings with one text per item row ('' where there is none)."""

    ratings: Ratings
    texts: list[str]
    name: str = "data"

    @classmethod
    def read(
        cls,
        ratings: Source,
        items: Source | None,
        columns: Mapping[str, str] | None = None,
        *,
        task: str | None = None,
        bounds: tuple[float, float] | None = None,
        duplicates: Duplicates = "error",
        missing: Missing = "error",
        missing_text: MissingText = "error",
    ) -> Dataset:
        """Read both tables; their problems are reported together."""
        if items is None:
            only = Ratings.read(
                ratings, columns, task=task, bounds=bounds, duplicates=duplicates, missing=missing
            )
            return cls(only, [""] * only.n_items, name_of(ratings))
        problems: list[str] = []
        texts: pl.DataFrame | None = None
        found: Ratings | None = None
        try:
            texts = read_texts(items, columns, missing_text)
        except UserError as error:
            problems.append(str(error))
        try:
            found = Ratings.read(
                ratings, columns, task=task, bounds=bounds, duplicates=duplicates, missing=missing
            )
        except UserError as error:
            problems.append(str(error))
        if found is not None and texts is not None:
            try:
                return cls(*_join(found, texts, name_of(items), missing_text), name_of(ratings))
            except UserError as error:
                problems.append(str(error))
        raise UserError("\n".join(problems))


def read_texts(
    source: Source, columns: Mapping[str, str] | None, missing_text: MissingText
) -> pl.DataFrame:
    """The item table as (item, text), checked."""
    import polars as pl

    where = name_of(source)
    frame = read_table(source, ["item", "text"], columns)
    frame = frame.with_columns(
        as_text(frame["item"]), frame["text"].cast(pl.String, strict=False)
    ).with_row_index("row", offset=1)
    problems = []
    nameless = frame.filter(pl.col("item").is_null())["row"].to_list()
    if nameless:
        cells = plural(len(nameless), "empty cell")
        problems.append(f"column 'item' has {cells} (rows {examples(nameless)}); fill them")
    twice = frame.filter(pl.col("item").is_duplicated() & pl.col("item").is_not_null())
    if twice.height:
        problems.append(
            f"{plural(twice.height, 'row')} repeat an item (first '{twice['item'][0]}' in row "
            f"{twice['row'][0]}); keep one row per item"
        )
    empty = frame.filter(pl.col("text").fill_null("").str.strip_chars() == "")
    if empty.height and missing_text == "error":
        problems.append(
            f"{plural(empty.height, 'item')} have an empty text (rows "
            f"{examples(empty['row'].to_list())}); write texts or pass --missing-text allow"
        )
    raise_together(where, problems)
    return frame.drop("row").with_columns(pl.col("text").fill_null(""))


def _join(
    ratings: Ratings, texts: pl.DataFrame, where: str, missing_text: MissingText
) -> tuple[Ratings, list[str]]:
    """Items of both tables become rows; items nobody rated can then be predicted too."""
    import dataclasses

    known = Vocabulary(texts["item"])
    rows = known.rows(ratings.item_ids.ids)
    if (rows < 0).any() and missing_text == "error":
        absent = ratings.item_ids.ids.gather(np.flatnonzero(rows < 0))
        raise UserError(
            f"{where}: {plural(len(absent), 'rated item')} have no row here "
            f"({examples(absent.to_list())}); add them or pass --missing-text allow"
        )
    both = ratings.item_ids.extended(texts["item"])
    text_of = ["", *texts["text"].to_list()]
    aligned = [text_of[row + 1] for row in known.rows(both.ids)]
    return dataclasses.replace(ratings, item_ids=both), aligned
