"""The Eedi responses and question texts of the paper, from the challenge's raw files."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from corginet.errors import UserError, check_choice, examples, plural
from corginet.raw.ocr import ImageReader, read_images
from corginet.raw.prepared import Prepared, Progress, count_step
from corginet.raw.sources import EEDI, check_raw, collect, find_file, scan_csv

if TYPE_CHECKING:
    import polars as pl

TASKS = ("1_2", "3_4")
START, END = date(2020, 3, 4), date(2020, 3, 27)
IMAGE_KINDS = (".jpg", ".jpeg", ".png")


def prepare_eedi(
    raw: Path,
    make_reader: Callable[[], ImageReader],
    *,
    task: str | None = None,
    images: Path | None = None,
    start: date = START,
    end: date = END,
    missing_images: str = "drop",
    progress: Progress | None = None,
) -> Prepared:
    """Responses of some days as 0 and 1, and each question's text as read from its image.

    Each pair of tasks numbers its questions anew, so one pair is taken. The published images
    belong to tasks 3 and 4; without a choice these are taken where they are there.
    """
    check_choice("missing_images", missing_images, ("drop", "error"))
    if start > end:
        raise UserError(f"the days run from {start} to {end}; the first must not be the later")
    chosen, both = _choose_task(raw, task)
    if chosen == "1_2" and both and images is None:
        raise UserError(
            f"{raw}: the images there belong to tasks 3 and 4, whose question numbers are others; "
            "name a folder with the images of tasks 1 and 2 with --images, or take --task 3_4"
        )
    train = find_file(raw, f"train_task_{chosen}.csv", EEDI)
    answers = find_file(raw, f"answer_metadata_task_{chosen}.csv", EEDI)
    found = find_images(images or raw)
    reader = make_reader()  # before the long work: it may not be installed
    done = _responses(train, answers, start, end)
    _keep(done, "the question's image is there", _with_image(done, found, missing_images))
    kept = {q: found[q] for q in done.ratings["item"].unique(maintain_order=True)}
    texts, n_read = read_images(kept, reader, progress)
    _finish(done, texts)
    done.notes |= {"task": chosen, "ocr": reader.name, "images_read": n_read}
    done.notes["images_cached"] = len(texts) - n_read
    return done


def _choose_task(raw: Path, task: str | None) -> tuple[str, bool]:
    """The pair of tasks to take, and whether the files of both are there."""
    check_raw(raw, EEDI)
    there = [t for t in TASKS if any(raw.rglob(f"train_task_{t}.csv"))]
    if task is not None:
        check_choice("--task", task, TASKS)
    elif not there:
        raise UserError(
            f"{raw}: neither train_task_1_2.csv nor train_task_3_4.csv in it or below; "
            f"{EEDI.where()}"
        )
    return task or there[-1], len(there) == 2


def find_images(folder: Path) -> dict[str, Path]:
    """QUESTIONID.jpg below the folder, by question id."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; name the one with the images of the questions")
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in IMAGE_KINDS and path.stem.isascii() and path.stem.isdigit():
            found.setdefault(str(int(path.stem)), []).append(path)
    if not found:
        raise UserError(f"{folder}: no image QUESTIONID.jpg in it or below; {EEDI.where()}")
    for question, paths in found.items():
        if len({path.read_bytes() for path in paths} if len(paths) > 1 else paths) > 1:
            raise UserError(
                f"{folder}: question {question} has {len(paths)} different images "
                f"({examples(paths)}); name the folder with the right ones with --images"
            )
    return {question: paths[0] for question, paths in found.items()}


def _responses(train: Path, answers: Path, start: date, end: date) -> Prepared:
    """The responses of the days, one per user and question."""
    import polars as pl

    columns = ("QuestionId", "UserId", "AnswerId", "IsCorrect")
    rows = collect(
        scan_csv(train, columns, EEDI).select(
            user=_whole("UserId"),
            item=_whole("QuestionId"),
            answer=_whole("AnswerId"),
            value=_whole("IsCorrect"),
        ),
        train,
    )
    _check_rows(rows, train)
    done = Prepared("eedi", rows, rows)
    done.steps.append(count_step(f"responses in {train.name}", rows))
    dates = _dates(answers, start, end)
    dated = rows.join(dates, on="answer", how="inner", maintain_order="left")
    _keep(done, f"answered from {start} to {end}", dated)
    if dated.height == 0:
        raise UserError(_no_response(answers, start, end))
    last = dated.sort("time", maintain_order=True).unique(
        ["user", "item"], keep="last", maintain_order=True
    )
    last = last.with_columns(pl.col("user", "item").cast(pl.String))
    _keep(done, "one response per user and question (the last)", last)
    return done


def _check_rows(rows: pl.DataFrame, train: Path) -> None:
    import polars as pl

    wrong = rows.with_row_index("row", offset=2).filter(
        ~pl.col("value").is_in([0, 1]).fill_null(False)
        | pl.col("user").is_null()
        | pl.col("item").is_null()
    )
    if wrong.height:
        raise UserError(
            f"{train.name}: {plural(wrong.height, 'row')} (line {examples(wrong['row'])}) with no "
            "whole number in UserId or QuestionId, or neither 0 nor 1 in IsCorrect; "
            "download the file again"
        )
    if rows.height == 0:
        raise UserError(f"{train.name}: it has a header but no rows; download the file again")


def _dates(answers: Path, start: date, end: date) -> pl.DataFrame:
    """answer, time of what was answered on these days; the last day counts whole."""
    import polars as pl

    day = pl.col("time").str.slice(0, 10)  # 2020-03-04 09:51:00.000: sorts like the time itself
    found = scan_csv(answers, ("AnswerId", "DateAnswered"), EEDI).select(
        answer=_whole("AnswerId"), time=pl.col("DateAnswered").str.strip_chars()
    )
    inside = found.filter(day.is_between(pl.lit(start.isoformat()), pl.lit(end.isoformat())))
    return collect(inside.drop_nulls().unique("answer", keep="last", maintain_order=True), answers)


def _no_response(answers: Path, start: date, end: date) -> str:
    times = collect(scan_csv(answers, ("DateAnswered",), EEDI), answers)["DateAnswered"]
    days = times.str.strip_chars().str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False)
    days = days.drop_nulls()
    if days.len() == 0:
        seen = examples(repr(t) for t in times.drop_nulls().unique(maintain_order=True))
        return (
            f"{answers.name}: column 'DateAnswered' has no date like 2020-03-04 09:51:00.000, got "
            f"{seen or 'no rows'}; {EEDI.where()}"
        )
    return (
        f"{answers.name}: none of the responses was given from {start} to {end}; the dates there "
        f"run from {days.sort()[0]} to {days.sort()[-1]}: choose others with --start and --end"
    )


def _with_image(done: Prepared, found: dict[str, Path], missing: str) -> pl.DataFrame:
    import polars as pl

    questions = done.ratings["item"].unique(maintain_order=True)
    without = [q for q in questions if q not in found]
    done.notes["questions_without_image"] = len(without)
    if without and (missing == "error" or len(without) == questions.len()):
        raise UserError(
            f"{plural(len(without), 'question')} of {questions.len():,} without an image "
            f"({examples(f'{q}.jpg' for q in without)}); {EEDI.where()}"
            + ("; --missing-images drop leaves them out" if missing == "error" else "")
        )
    return done.ratings.filter(pl.col("item").is_in(list(found)))


def _finish(done: Prepared, texts: dict[str, str]) -> None:
    """Leave out questions whose image shows no text, and sort both tables."""
    import polars as pl

    readable = [q for q, text in texts.items() if text]
    done.notes["questions_without_text"] = len(texts) - len(readable)
    if not readable:
        raise UserError(f"no text found in any of {plural(len(texts), 'image')}; look at them")
    _keep(done, "text found in the image", done.ratings.filter(pl.col("item").is_in(readable)))
    done.ratings = done.ratings.select("user", "item", "value")
    items = pl.DataFrame({"item": readable, "text": [texts[q] for q in readable]})
    done.items = items.sort(pl.col("item").cast(pl.Int64))


def _keep(done: Prepared, step: str, ratings: pl.DataFrame) -> None:
    done.ratings = ratings
    done.steps.append(count_step(step, ratings))


def _whole(column: str) -> pl.Expr:
    """Whole numbers, also where a column with gaps was written as 17.0."""
    import polars as pl

    number = pl.col(column).str.strip_chars().str.strip_suffix(".0")
    return number.cast(pl.Int64, strict=False)
