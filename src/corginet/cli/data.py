"""corginet data goodreads, corginet data eedi."""

from __future__ import annotations

import json as json_format
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from corginet.cli.output import emit, progress, say, table
from corginet.errors import UserError

if TYPE_CHECKING:
    from corginet.raw.prepared import Prepared

TABLE1 = {
    "users": "users",
    "items": "items",
    "edges": "edges",
    "edges_per_user": "edges / user",
    "edges_per_item": "edges / item",
    "vocabulary": "vocabulary",
    "words_per_item": "words / item",
    "density": "density",
    "labels": "labels",
}


def goodreads(
    raw: Path,
    /,
    *,
    out: Path,
    min_item_ratings: int = 1,
    overwrite: bool = False,
    seed: int = 0,
    json: bool = False,
) -> None:
    """Ratings and described books from the files of 'goodreads-book-datasets-10m'.

    Parameters
    ----------
    raw
        Folder with book*.csv and user_rating_*.csv, in it or below.
    out
        Folder for ratings.parquet, items.parquet and counts.json.
    min_item_ratings
        Leave out books with fewer ratings; the paper states no such filter.
    overwrite
        Replace a folder that this command made.
    seed
        Accepted everywhere; nothing is drawn.
    json
        Print one JSON document.
    """
    from corginet.raw.goodreads import prepare_goodreads

    if min_item_ratings < 1:
        raise UserError(f"--min-item-ratings got {min_item_ratings}; it must be at least 1")

    def prepare() -> Prepared:
        with progress("books") as bar:
            return prepare_goodreads(raw, bar, min_item_ratings)

    _into(out, overwrite, json, prepare)


def eedi(
    raw: Path,
    /,
    *,
    out: Path,
    task: str | None = None,
    images: Path | None = None,
    start: str = "2020-03-04",
    end: str = "2020-03-27",
    missing_images: str = "drop",
    threads: int | None = None,
    overwrite: bool = False,
    seed: int = 0,
    json: bool = False,
) -> None:
    """Responses and question texts from the NeurIPS 2020 challenge; interrupted, it goes on.

    Parameters
    ----------
    raw
        Folder with train_task_*.csv, answer_metadata_task_*.csv and the images, or above them.
    out
        Folder for ratings.parquet, items.parquet and counts.json.
    task
        1_2 or 3_4; without it 3_4 where it is there, whose images are the published ones.
    images
        Folder of QUESTIONID.jpg, where not below RAW.
    start
        First day of the responses.
    end
        Last day of the responses, included.
    missing_images
        Questions without an image: drop or error.
    threads
        Cores for reading images; all without it.
    overwrite
        Replace a folder that this command made.
    seed
        Accepted everywhere; nothing is drawn.
    json
        Print one JSON document.
    """
    from corginet.errors import check_choice
    from corginet.raw.eedi import prepare_eedi
    from corginet.raw.ocr import RapidReader

    check_choice("--missing-images", missing_images, ("drop", "error"))
    days = _day("--start", start), _day("--end", end)
    if threads is not None and threads < 1:
        raise UserError(f"--threads got {threads}; it must be at least 1")

    def prepare() -> Prepared:
        with progress("reading images") as bar:
            return prepare_eedi(
                raw,
                lambda: RapidReader(threads),
                task=task,
                images=images,
                start=days[0],
                end=days[1],
                missing_images=missing_images,
                progress=bar,
            )

    _into(out, overwrite, json, prepare)


def _day(option: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UserError(f"{option} got '{text}'; write a day like 2020-03-04") from None


def _into(out: Path, overwrite: bool, as_json: bool, prepare: Callable[[], Prepared]) -> None:
    """Prepare into a folder that appears when complete, and show the counts."""
    from corginet.run import complete_or_absent

    started = time.perf_counter()
    with complete_or_absent(out, overwrite, marker="counts.json") as folder:
        prepared = prepare()
        prepared.write(folder)
        result = prepared.report()
        text = json_format.dumps(result, indent=1, ensure_ascii=False) + "\n"
        (folder / "counts.json").write_text(text, encoding="utf-8")
    result |= {"out": str(out), "seconds": time.perf_counter() - started}
    emit(result, as_json, lambda: _show(result, out))


def _show(result: dict[str, object], out: Path) -> None:
    steps, here, paper = result["steps"], result["counts"], result["paper"]
    assert isinstance(steps, list) and isinstance(here, dict) and isinstance(paper, dict)
    rows = [(s["step"], *(f"{s[k]:,}" for k in ("users", "items", "ratings"))) for s in steps]
    rows.append(("the paper, Table 1", *(f"{paper[k]:,}" for k in ("users", "items", "edges"))))
    table("what is left after each step", ("step", "users", "items", "ratings"), rows)
    table(
        "Table 1",
        ("", "here", "paper"),
        [(name, _number(here[k]), _number(paper[k])) for k, name in TABLE1.items()],
    )
    notes = result["notes"]
    assert isinstance(notes, dict)
    say(", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in notes.items()))
    say(f"written to {out}")


def _number(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.2f}" if value >= 1 else f"{value:.3g}"
