"""Tables out, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from corginet.data.readers import SUFFIXES
from corginet.errors import UserError

if TYPE_CHECKING:
    import polars as pl


def check_writable(path: Path) -> None:
    """Refuse early what could only fail after the work."""
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(f"--out {path}: unknown kind of file; use one of {', '.join(SUFFIXES)}")
    if path.is_dir():
        raise UserError(f"--out {path} is a directory; name a file")
    if not path.absolute().parent.is_dir():
        raise UserError(f"--out {path}: no folder {path.absolute().parent}; make it first")


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Write beside the final name first, then rename."""
    building = path.with_name(path.name + ".building")
    match path.suffix.lower():
        case ".parquet":
            frame.write_parquet(building)
        case ".jsonl":
            frame.write_ndjson(building)
        case suffix:
            frame.write_csv(building, separator="\t" if suffix == ".tsv" else ",")
    os.replace(building, path)
