"""Tables in: csv, tsv, parquet, jsonl, and polars or pandas frames, as polars frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corginet.data.vocabulary import as_text
from corginet.errors import UserError, did_you_mean, plural

if TYPE_CHECKING:
    import polars as pl

Source = Any  # a path, or a polars or pandas frame
SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl")
MAX_BYTES = 32 * 2**30


def read_table(
    source: Source, wanted: Sequence[str], columns: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """Read a table and rename its columns to ours; say what is missing in one sentence."""
    import polars as pl

    frame, where = _load(source), name_of(source)
    renames = dict(columns or {})
    missing = [
        renames.get(c, c)
        for c in wanted
        if not c.endswith("?") and renames.get(c, c) not in frame.columns
    ]
    if missing:
        near = did_you_mean(missing[0], frame.columns)
        raise UserError(
            f"{where}: no column {', '.join(repr(m) for m in missing)}; "
            f"it has {', '.join(frame.columns)}{near or ';'} rename with --columns "
            f"{wanted[0]}=YOUR_COLUMN,…"
        )
    names = [c.rstrip("?") for c in wanted]
    present = [c for c in names if renames.get(c, c) in frame.columns]
    return frame.select(pl.col(renames.get(c, c)).alias(c) for c in present)


def read_pairs(
    source: Source, columns: Mapping[str, str] | None = None
) -> tuple[pl.Series, pl.Series]:
    """The users and items of a table of pairs, as ids without gaps."""
    frame = read_table(source, ["user", "item"], columns)
    for name in ("user", "item"):
        gaps = frame[name].null_count()
        if gaps:
            row = int(frame[name].is_null().arg_max() or 0) + 1
            raise UserError(
                f"{name_of(source)}: column '{name}' has {plural(gaps, 'empty cell')} "
                f"(first in row {row}); fill them"
            )
    return as_text(frame["user"]), as_text(frame["item"])


def name_of(source: Source) -> str:
    """How messages call a source: its file name, or 'the table'."""
    return Path(source).name if isinstance(source, str | Path) else "the table"


def _load(source: Source) -> pl.DataFrame:
    import polars as pl

    if isinstance(source, pl.DataFrame):
        return source
    if isinstance(source, str | Path):
        return _load_file(Path(source))
    if hasattr(source, "to_numpy") and hasattr(source, "columns"):  # a pandas frame
        return pl.from_pandas(source)
    raise UserError(
        f"a table must be a path or a polars or pandas frame, got {type(source).__name__}"
    )


def _load_file(path: Path) -> pl.DataFrame:
    import polars as pl

    if path.suffix.lower() not in SUFFIXES:
        kinds = ", ".join(SUFFIXES)
        raise UserError(f"{path.name}: unknown kind of file '{path.suffix}'; use one of {kinds}")
    if path.is_dir():
        raise UserError(f"{path.name}: this is a directory; name the file inside it")
    if not path.exists():
        raise UserError(f"{path}: no such file; check the path")
    size = path.stat().st_size
    if size == 0:
        raise UserError(f"{path.name}: the file is empty; write a header and rows into it")
    if size > MAX_BYTES:
        raise UserError(f"{path.name}: {size / 2**30:.0f} GiB is over the 32 GiB limit; split it")
    return _checked_parse(path, pl)


def _checked_parse(path: Path, pl: Any) -> pl.DataFrame:
    _check_content(path)
    try:
        frame: pl.DataFrame = _parse(path, pl)
    except UserError:
        raise
    except Exception as error:  # polars raises many kinds, some from Rust panics
        first = str(error).strip().splitlines()[0][:160]
        raise UserError(
            f"{path.name}: not readable as {path.suffix[1:]} ({first}); "
            "check that the content is what the name says"
        ) from None
    if frame.height == 0:
        raise UserError(f"{path.name}: it has a header but no rows; add rows")
    return frame


def _parse(path: Path, pl: Any) -> Any:
    match path.suffix.lower():
        case ".parquet":
            return pl.read_parquet(path)
        case ".jsonl":
            return pl.read_ndjson(path, infer_schema_length=None)
        case suffix:
            separator = "\t" if suffix == ".tsv" else ","
            # everything as text: an id '007' must not become 7
            return pl.read_csv(path, separator=separator, infer_schema=False)


def _check_content(path: Path) -> None:
    """Refuse what a parser would half accept: binary under a text name, undecodable bytes."""
    with path.open("rb") as file:
        head = file.read(4)
        is_parquet = head == b"PAR1"
        if is_parquet != (path.suffix.lower() == ".parquet"):
            got = "a parquet file" if is_parquet else "no parquet file"
            raise UserError(f"{path.name}: the content is {got}; rename it to what it is")
        if is_parquet:
            return
        file.seek(0)
        for number, line in enumerate(file, 1):
            if b"\0" in line:
                raise UserError(f"{path.name}: line {number} holds binary data; save it as text")
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise UserError(
                    f"{path.name}: line {number} has bytes that are not UTF-8 "
                    f"(position {error.start}); save the file as UTF-8"
                ) from None
