"""Ratings: immutable columns user, item, value (and time), validated once, here."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from corginet.data.readers import Source, name_of, read_table
from corginet.data.task import Task, infer_task
from corginet.data.vocabulary import Vocabulary, as_text
from corginet.errors import UserError, check_choice, examples, plural, raise_together

if TYPE_CHECKING:
    import polars as pl

Duplicates = Literal["error", "last", "mean"]
Missing = Literal["error", "drop"]


@dataclass(frozen=True, eq=False)
class Ratings:
    """Who gave which item what value. Rows keep the order of the table they came from."""

    users: np.ndarray
    items: np.ndarray
    values: np.ndarray
    user_ids: Vocabulary
    item_ids: Vocabulary
    task: Task
    times: np.ndarray | None = None

    @classmethod
    def read(
        cls,
        source: Source,
        columns: Mapping[str, str] | None = None,
        *,
        task: str | None = None,
        bounds: tuple[float, float] | None = None,
        duplicates: Duplicates = "error",
        missing: Missing = "error",
        user_ids: Vocabulary | None = None,
        item_ids: Vocabulary | None = None,
    ) -> Ratings:
        """Read and check a ratings table; every problem is reported together."""
        where = name_of(source)
        frame = read_table(source, ["user", "item", "value", "time?"], columns)
        frame = _clean(frame, where, duplicates, missing, bounds)
        values = frame["value"].to_numpy().astype(np.float64, copy=True)
        try:
            kind = infer_task(values, task, bounds)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
        users = user_ids or Vocabulary.sorted_from(frame["user"])
        items = item_ids or Vocabulary.sorted_from(frame["item"])
        times = _as_time(frame["time"], where) if "time" in frame.columns else None
        return cls(
            users.rows(frame["user"]), items.rows(frame["item"]), values, users, items, kind, times
        )

    def __len__(self) -> int:
        return len(self.values)

    @property
    def n_users(self) -> int:
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        return len(self.item_ids)

    def fingerprint(self) -> str:
        """A short hash of ids and values: the data's name in every result."""
        digest = hashlib.sha256()
        for vocabulary in (self.user_ids, self.item_ids):
            digest.update("\0".join(vocabulary.ids.to_list()).encode())
        for array in (self.users, self.items, self.values):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:16]

    def summary(self) -> str:
        """One line for people."""
        t = self.task
        kind = "yes/no values" if t.binary else f"values from {t.low:g} to {t.high:g}"
        users, items = plural(self.n_users, "user"), plural(self.n_items, "item")
        return f"{plural(len(self), 'rating')} of {users} and {items}, {kind}"


def _clean(
    frame: pl.DataFrame,
    where: str,
    duplicates: Duplicates,
    missing: Missing,
    bounds: tuple[float, float] | None,
) -> pl.DataFrame:
    import polars as pl

    check_choice("--duplicates", duplicates, ("error", "last", "mean"))
    check_choice("--missing", missing, ("error", "drop"))
    numbered = frame.with_columns(
        as_text(frame["user"]),
        as_text(frame["item"]),
        _as_number(frame["value"]).alias("number"),
        _blank_to_null(frame["value"]).alias("raw"),
    ).with_row_index("row", offset=1)
    problems: list[str] = []
    for column, shown in (("user", "user"), ("item", "item"), ("raw", "value")):
        empty = pl.col(column).is_null() | (pl.col(column).str.strip_chars() == "")
        rows = numbered.filter(empty)["row"].to_list()
        if rows and missing == "drop":
            numbered = numbered.filter(~empty)
        elif rows:
            cells = plural(len(rows), "empty cell")
            problems.append(
                f"column '{shown}' has {cells} (rows {examples(rows)}); "
                "fill them or pass --missing drop"
            )
    problems += _value_problems(numbered, bounds)
    pair = pl.struct("user", "item")
    twice = numbered.filter(pl.all_horizontal(pl.col("user", "item").is_not_null())).filter(
        pair.is_duplicated()
    )
    if twice.height and duplicates == "error":
        first = twice.row(0, named=True)
        problems.append(
            f"{plural(twice.height, 'row')} repeat a (user, item) pair, first ({first['user']}, "
            f"{first['item']}) in row {first['row']}; "
            "pass --duplicates last or --duplicates mean"
        )
    raise_together(where, problems)
    if not numbered.height:
        raise UserError(f"{where}: no rows are left; the table needs at least one full row")
    clean = numbered.drop("value", "raw", "row").rename({"number": "value"})
    return _merge(clean, duplicates) if twice.height else clean


def _value_problems(numbered: pl.DataFrame, bounds: tuple[float, float] | None) -> list[str]:
    import polars as pl

    given = numbered.filter(pl.col("raw").is_not_null())
    wrong = given.filter(pl.col("number").is_null())
    endless = given.filter(pl.col("number").is_not_null() & ~pl.col("number").is_finite())
    problems = []
    for bad, what in ((wrong, "that are no numbers"), (endless, "that are not finite")):
        if bad.height:
            problems.append(
                f"column 'value' has {plural(bad.height, 'cell')} {what} "
                f"({examples(bad['raw'].to_list())} in rows {examples(bad['row'].to_list())}); "
                "write plain numbers"
            )
    if bounds:
        outside = given.filter(~pl.col("number").is_between(*bounds) & pl.col("number").is_finite())
        if outside.height:
            problems.append(
                f"column 'value' has {plural(outside.height, 'cell')} outside "
                f"{bounds[0]:g} to {bounds[1]:g} ({examples(outside['raw'].to_list())} in rows "
                f"{examples(outside['row'].to_list())}); correct them or --bounds"
            )
    return problems


def _as_number(column: pl.Series) -> pl.Series:
    import polars as pl

    if column.dtype == pl.String:
        column = column.str.strip_chars()
    return column.cast(pl.Float64, strict=False)


def _blank_to_null(column: pl.Series) -> pl.Series:
    import polars as pl

    text = column.cast(pl.String, strict=False).str.strip_chars()
    return text.set(text == "", None)


def _as_time(column: pl.Series, where: str) -> np.ndarray:
    """Times as sortable numbers: numbers as they are, dates and ISO texts as microseconds."""
    import polars as pl

    if column.dtype == pl.String:
        number = column.cast(pl.Float64, strict=False)
        if number.null_count() > column.null_count():
            parsed = column.str.to_datetime(strict=False, time_unit="us", ambiguous="earliest")
            number = parsed.to_physical().cast(pl.Float64)
        column = number
    times = column.to_physical().cast(pl.Float64, strict=False)
    if times.null_count():
        raise UserError(
            f"{where}: column 'time' has {plural(times.null_count(), 'cell')} that are no time; "
            "write numbers or ISO dates, or leave the column out"
        )
    return times.to_numpy()


def _merge(frame: pl.DataFrame, rule: Duplicates) -> pl.DataFrame:
    import polars as pl

    if rule == "last":
        return frame.unique(["user", "item"], keep="last", maintain_order=True)
    others: list[Any] = [pl.col("time").last()] if "time" in frame.columns else []
    return frame.group_by("user", "item", maintain_order=True).agg(pl.col("value").mean(), *others)
