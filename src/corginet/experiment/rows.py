"""The journal of an experiment: one JSON line per finished cell, and its predictions beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from corginet.errors import UserError

if TYPE_CHECKING:
    import polars as pl

Row = dict[str, Any]


class Journal:
    """Rows by cell, appended and flushed to disk one by one; the last good row of a cell counts.

    A row is written after its predictions, so a row that is there is whole. Rows of other data
    or settings may be in the same file: they are other cells.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "rows.jsonl"
        self.rows: dict[str, Row] = {}
        for row in _complete_lines(self.path):
            self._note(row)

    def _note(self, row: Row) -> None:
        if "error" not in row:
            self.rows[row["cell"]] = row

    def append(self, row: Row) -> None:
        """Write one row through to the disk."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._note(row)

    def finished(self, cell: str, scored: bool) -> Row | None:
        """The cell's row, if its predictions are still there and it is scored where it must be."""
        row = self.rows.get(cell)
        usable = row is not None and self.predictions_path(cell).is_file()
        return row if row and usable and (not scored or "test" in row) else None

    def predictions_path(self, cell: str) -> Path:
        return self.folder / "predictions" / f"{cell}.parquet"

    def predictions(self, cell: str) -> pl.DataFrame:
        """user, item, part, prediction, actual, and both degrees, of validation and test pairs."""
        import polars as pl

        return pl.read_parquet(self.predictions_path(cell))


def write_predictions(frame: pl.DataFrame, path: Path) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    building = path.with_name(f"{path.name}.{os.getpid()}.building")
    with building.open("wb") as file:
        frame.write_parquet(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(building, path)


@contextmanager
def opened(folder: Path) -> Iterator[Journal]:
    """The journal of a folder, for one process at a time; a torn last line is cut off."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"--out {folder} is a file; name a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {folder}: {error.strerror}; choose another folder") from None
    lock = FileLock(folder / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise UserError(
            f"--out {folder} is in use by another process; wait for it, or choose another folder"
        ) from None
    try:
        _cut_torn_line(folder / "rows.jsonl")
        yield Journal(folder)
    finally:
        lock.release()


def _complete_lines(path: Path) -> Iterator[Row]:
    if not path.exists():
        return
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line)
                yield {**row, "cell": str(row["cell"])}
            except (ValueError, KeyError, TypeError):
                raise UserError(
                    f"{path}: line {number} is no row of an experiment; mend it or choose "
                    "another --out"
                ) from None


def _cut_torn_line(path: Path) -> None:
    """What an interruption left of a line is no row."""
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        with path.open("r+b") as file:
            file.truncate(whole)
