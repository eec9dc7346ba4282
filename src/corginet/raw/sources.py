"""Where the raw files are published, and finding and reading them below a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from corginet.errors import UserError, examples

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Source:
    """A published dataset, as messages name it."""

    name: str
    site: str
    terms: str

    def where(self) -> str:
        return f"it is part of {self.name}, published at {self.site} under {self.terms}"


GOODREADS = Source(
    "the dataset 'goodreads-book-datasets-10m' by Bahram Jannesar",
    "Kaggle",
    "CC0 as stated there (the descriptions are Goodreads' own)",
)
EEDI = Source(
    "the data of the NeurIPS 2020 Education Challenge",
    "eedi.com (page 'NeurIPS Education Challenge')",
    "CC BY-NC-ND 4.0, with further limits on the question images",
)


def check_raw(raw: Path, source: Source) -> None:
    """Refuse what cannot hold the raw files."""
    if not raw.exists():
        raise UserError(f"{raw}: no such folder; put the raw files there: {source.where()}")
    if not raw.is_dir():
        raise UserError(f"{raw}: a folder is needed, got a file; unpack it and name the folder")


def find_files(raw: Path, pattern: str, source: Source) -> list[Path]:
    """All files of that name below the folder, in the order of their names; at least one."""
    check_raw(raw, source)
    found = [path for path in raw.rglob(pattern) if path.is_file() and not _hidden(path, raw)]
    if not found:
        raise UserError(f"{raw}: no file {pattern} in it or below; {source.where()}")
    return sorted(found, key=lambda path: (path.name, path))


def find_file(raw: Path, name: str, source: Source) -> Path:
    """The one file of that name below the folder."""
    found = find_files(raw, name, source)
    if len(found) > 1:
        raise UserError(
            f"{raw}: {name} is there {len(found)} times ({examples(found)}); keep one of them"
        )
    return found[0]


def _hidden(path: Path, raw: Path) -> bool:
    """Archives made on a Mac carry '._' twins and a __MACOSX folder."""
    parts = path.relative_to(raw).parts
    return any(part.startswith((".", "__MACOSX")) for part in parts)


def scan_csv(path: Path, wanted: Sequence[str], source: Source) -> pl.LazyFrame:
    """The wanted columns of a CSV file as text; upper and lower case in names do not matter."""
    import polars as pl

    if path.stat().st_size == 0:
        raise UserError(f"{path.name}: the file is empty; download it again: {source.where()}")
    frame = pl.scan_csv(path, infer_schema=False, encoding="utf8-lossy")
    known = {name.strip().lower(): name for name in header(path)}
    missing = [name for name in wanted if name.lower() not in known]
    if missing:
        raise UserError(
            f"{path.name}: no column {', '.join(map(repr, missing))}; it has "
            f"{', '.join(known.values())}; use the original file: {source.where()}"
        )
    return frame.select(pl.col(known[name.lower()]).alias(name) for name in wanted)


def header(path: Path) -> list[str]:
    """The column names of a CSV file."""
    import polars as pl

    try:
        return pl.scan_csv(path, infer_schema=False, encoding="utf8-lossy").collect_schema().names()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise unreadable(path, error) from None


def collect(frame: pl.LazyFrame, path: Path) -> pl.DataFrame:
    """Run a query over one raw file; a damaged file is named."""
    import polars as pl

    try:
        return frame.collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: Exception) -> UserError:
    first = (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
    return UserError(f"{path.name}: not readable as CSV ({first}); download the file again")
