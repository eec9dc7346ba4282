"""Outside ids to rows and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import polars as pl


def as_text(ids: pl.Series) -> pl.Series:
    """Ids as text. Whole floats lose their '.0': pandas makes floats of integers beside gaps."""
    import polars as pl

    if ids.dtype.is_float():
        whole = ids.cast(pl.Int64, strict=False)
        if (whole.cast(pl.Float64) == ids).all():
            return whole.cast(pl.String)
    return ids.cast(pl.String)


class Vocabulary:
    """The ids of users, or of items, in the order of their rows. Ids are text outside too:
    the integer 7 and the text '7' are the same id, as files do not tell them apart."""

    def __init__(self, ids: pl.Series) -> None:
        import polars as pl

        self.ids = as_text(ids).rename("id")
        self._row_of = pl.DataFrame({"id": self.ids}).with_row_index("row")

    @classmethod
    def sorted_from(cls, column: pl.Series) -> Vocabulary:
        """The distinct values of a column, numerically sorted where they are numbers."""
        return cls(column.drop_nulls().unique().sort())

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, column: pl.Series) -> np.ndarray:
        """The row of each id, −1 for unknown ids."""
        import polars as pl

        wanted = pl.DataFrame({"id": as_text(column)})
        joined = wanted.join(self._row_of, on="id", how="left", maintain_order="left")
        return joined["row"].cast(pl.Int64).fill_null(-1).to_numpy(writable=True)

    def extended(self, column: pl.Series) -> Vocabulary:
        """With the ids that are new appended, so that known rows keep their numbers."""
        import polars as pl

        column = as_text(column)
        new = column.filter(pl.Series(self.rows(column) < 0)).unique(maintain_order=True)
        return Vocabulary(pl.concat([self.ids, new.rename("id")])) if len(new) else self
