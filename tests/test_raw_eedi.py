"""The Eedi challenge's raw files, in their exact format, into ratings and items."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from PIL import Image, ImageDraw, ImageFont

from corginet.cli.app import run
from corginet.errors import UserError
from corginet.raw.eedi import find_images, prepare_eedi
from corginet.raw.ocr import RapidReader, TextCache, in_reading_order, read_images

TRAIN = "QuestionId,UserId,AnswerId,IsCorrect,CorrectAnswer,AnswerValue"
ANSWERS = "AnswerId,DateAnswered,Confidence,GroupId,QuizId,SchemeOfWorkId"
RESPONSES = [  # question, user, answer, correct, when
    (3, 10, 100, 1, "2020-03-04 00:00:00.000"),
    (3, 11, 101, 0, "2020-03-03 23:59:00.000"),
    (4, 10, 102, 0, "2020-03-27 23:59:00.000"),
    (4, 11, 103, 1, "2020-03-28 00:00:00.000"),
    (4, 12, 104, 0, "2020-03-10 12:00:00.000"),
    (4, 12, 105, 1, "2020-03-11 12:00:00.000"),
    (5, 12, 106, 1, "2020-03-15 08:30:00.000"),
    (6, 13, 107, 0, "2020-03-15 08:30:00.000"),
    (3, 14, 108, 1, "2019-03-15 08:30:00.000"),
]


class FakeReader:
    """Reads an image's first line, counting its calls."""

    name = "fake-1"

    def __init__(self, fail_at: int = -1) -> None:
        self.calls, self.fail_at = 0, fail_at

    def read(self, image: bytes) -> str:
        if self.calls == self.fail_at:
            raise KeyboardInterrupt
        self.calls += 1
        if image.startswith(b"broken"):
            raise OSError("cannot identify image file")
        return image.decode()


def write_task(folder: Path, task: str, responses: list[tuple[Any, ...]]) -> None:
    train = folder / "train_data" / f"train_task_{task}.csv"
    answers = folder / "metadata" / f"answer_metadata_task_{task}.csv"
    train.parent.mkdir(parents=True, exist_ok=True)
    answers.parent.mkdir(parents=True, exist_ok=True)
    rows = [f"{q},{u},{a},{c},2,{2 if c else 3}" for q, u, a, c, _ in responses]
    train.write_text("\n".join([TRAIN, *rows]) + "\n")
    # a column with gaps is written with .0, as in the original
    dates = [f"{a}.0,{when},75.0,12,34,56.0" for _, _, a, _, when in responses]
    answers.write_text("\n".join([ANSWERS, *dates, ",2020-03-15 08:30:00.000,,12,34,"]) + "\n")


@pytest.fixture
def raw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CORGINET_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "raw" / "data"
    write_task(folder, "3_4", RESPONSES)
    (folder / "images").mkdir()
    for question, text in {3: "What is 2 + 2?", 4: "Which is larger?", 5: "", 99: "unused"}.items():
        (folder / "images" / f"{question}.jpg").write_text(text)
    (folder / "__MACOSX" / "images").mkdir(parents=True)
    (folder / "__MACOSX" / "images" / "._3.jpg").write_text("junk")
    return tmp_path / "raw"


def test_tables_and_counts(raw: Path) -> None:
    done = prepare_eedi(raw, FakeReader)
    assert done.ratings.sort("user", "item").rows() == [
        ("10", "3", 1),
        ("10", "4", 0),
        ("12", "4", 1),
    ]
    assert done.items.rows() == [("3", "What is 2 + 2?"), ("4", "Which is larger?")]
    counts = [(s["users"], s["items"], s["ratings"]) for s in done.steps]
    assert counts == [
        (5, 4, 9),  # all
        (3, 4, 6),  # 4 to 27 March, the last day whole
        (3, 4, 5),  # one per user and question
        (2, 3, 4),  # image there
        (2, 2, 3),  # text in it
    ]
    assert done.notes["questions_without_image"] == 1
    assert done.notes["questions_without_text"] == 1
    assert done.report()["paper"]["edges"] == 991_740


def test_interrupted_and_resumed(raw: Path) -> None:
    stopping = FakeReader(fail_at=1)
    with pytest.raises(KeyboardInterrupt):
        prepare_eedi(raw, lambda: stopping)
    again, seen = FakeReader(), []
    done = prepare_eedi(raw, lambda: again, progress=lambda *now: seen.append(now[:2]))
    assert again.calls == 2 and seen == [(1, 2), (2, 2)]
    assert (done.notes["images_read"], done.notes["images_cached"]) == (2, 1)
    third = FakeReader()
    assert prepare_eedi(raw, lambda: third).notes["images_read"] == third.calls == 0


def test_cache_is_by_content_and_survives_a_torn_line(raw: Path, tmp_path: Path) -> None:
    images = find_images(raw)
    read_images(images, FakeReader())
    moved = tmp_path / "elsewhere.jpg"
    moved.write_bytes(images["3"].read_bytes())
    assert read_images({"77": moved}, FakeReader()) == ({"77": "What is 2 + 2?"}, 0)
    moved.write_text("What is 2 + 3?")
    assert read_images({"77": moved}, FakeReader())[1] == 1
    file = tmp_path / "cache" / "ocr" / "fake-1.jsonl"
    with file.open("a") as out:
        out.write('{"image": "abc", "te')
    cache = TextCache(file)
    assert "abc" not in cache.texts and len(cache.texts) == 5
    cache.add("def", "line")
    assert TextCache(file).texts["def"] == "line"


def test_missing_images(raw: Path) -> None:
    with pytest.raises(UserError, match=r"1 question of 4 without an image \(6\.jpg\)"):
        prepare_eedi(raw, FakeReader, missing_images="error")
    for path in raw.rglob("[34569].jpg"):
        path.unlink()
    with pytest.raises(UserError, match=r"4 questions of 4 without an image"):
        prepare_eedi(raw, FakeReader)
    (raw / "data" / "images" / "99.jpg").unlink()
    with pytest.raises(UserError, match=r"no image QUESTIONID\.jpg .*eedi\.com"):
        prepare_eedi(raw, FakeReader)


def test_the_tasks_number_their_questions_anew(raw: Path, tmp_path: Path) -> None:
    write_task(raw / "data", "1_2", [(3, 10, 1, 0, "2020-03-05 10:00:00.000")])
    assert prepare_eedi(raw, FakeReader).notes["task"] == "3_4"
    with pytest.raises(UserError, match="the images there belong to tasks 3 and 4"):
        prepare_eedi(raw, FakeReader, task="1_2")
    other = tmp_path / "images"
    other.mkdir()
    (other / "3.jpg").write_text("Another question")
    done = prepare_eedi(raw, FakeReader, task="1_2", images=other)
    assert done.items["text"].to_list() == ["Another question"] and done.ratings.height == 1
    with pytest.raises(UserError, match="--task got '1_3'; did you mean"):
        prepare_eedi(raw, FakeReader, task="1_3")


def test_days(raw: Path) -> None:
    done = prepare_eedi(raw, FakeReader, start=date(2019, 3, 1), end=date(2019, 3, 31))
    assert done.ratings.rows() == [("14", "3", 1)]
    with pytest.raises(UserError, match="run from 2019-03-15 to 2020-03-28: choose others"):
        prepare_eedi(raw, FakeReader, start=date(2018, 3, 1), end=date(2018, 3, 31))
    with pytest.raises(UserError, match="must not be the later"):
        prepare_eedi(raw, FakeReader, start=date(2020, 3, 5), end=date(2020, 3, 4))


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("train_task*", "neither train_task_1_2.csv nor train_task_3_4.csv in it or below"),
        ("answer_metadata*", "no file answer_metadata_task_3_4.csv .* under CC BY-NC-ND 4.0"),
        ("*.jpg", "no image QUESTIONID.jpg"),
    ],
)
def test_missing_files(
    raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], pattern: str, sentence: str
) -> None:
    for path in raw.rglob(pattern):
        path.unlink()
    with pytest.raises(UserError, match=sentence):
        prepare_eedi(raw, FakeReader)
    assert run(["data", "eedi", str(raw), "--out", str(tmp_path / "out")]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not list(tmp_path.glob("out*"))


def test_bad_rows(raw: Path) -> None:
    train = raw / "data" / "train_data" / "train_task_3_4.csv"
    train.write_text(f"{TRAIN}\n3,10,100,1,2,2\n3,11,101,yes,2,2\n")
    with pytest.raises(UserError, match=r"train_task_3_4\.csv: 1 row \(line 3\)"):
        prepare_eedi(raw, FakeReader)
    train.write_text(f"{TRAIN}\n")
    with pytest.raises(UserError, match="a header but no rows"):
        prepare_eedi(raw, FakeReader)
    answers = raw / "data" / "metadata" / "answer_metadata_task_3_4.csv"
    train.write_text(f"{TRAIN}\n3,10,100,1,2,2\n")
    answers.write_text(f"{ANSWERS}\n100.0,soon,,1,1,1\n")
    with pytest.raises(UserError, match=r"no date like .* got 'soon'"):
        prepare_eedi(raw, FakeReader)


def test_broken_and_ambiguous_images(raw: Path) -> None:
    image = raw / "data" / "images" / "4.jpg"
    image.write_text("broken")
    with pytest.raises(UserError, match=r"4\.jpg: not readable as an image .*download it again"):
        prepare_eedi(raw, FakeReader)
    (raw / "data" / "4.png").write_text("different")
    with pytest.raises(UserError, match="question 4 has 2 different images"):
        prepare_eedi(raw, FakeReader)


def test_reading_order() -> None:
    boxes = [
        (300.0, 98.0, 122.0, "B 48"),
        (20.0, 10.0, 40.0, "What is the area?"),
        (20.0, 100.0, 124.0, "A 24"),
        (20.0, 140.0, 164.0, "C 14"),
    ]
    assert in_reading_order(boxes) == "What is the area?\nA 24 B 48\nC 14"
    assert in_reading_order([]) == ""


def draw_question(path: Path, question: str, options: list[str]) -> None:
    """A question as the platform shows it: wording, a labelled triangle, four options."""
    page = Image.new("RGB", (720, 460), "white")
    draw = ImageDraw.Draw(page)
    font = ImageFont.load_default(26)
    draw.text((30, 20), question, font=font, fill="black")
    draw.polygon([(140, 260), (340, 260), (140, 100)], outline="black", width=3)
    draw.arc((300, 235, 350, 285), 180, 230, fill="black", width=2)
    draw.text((215, 268), "8 cm", font=font, fill="black")
    draw.text((55, 165), "6 cm", font=font, fill="black")
    for number, (letter, option) in enumerate(zip("ABCD", options, strict=True)):
        corner = (60 + 340 * (number % 2), 330 + 60 * (number // 2))
        draw.text(corner, f"{letter}   {option}", font=font, fill="black")
    path.parent.mkdir(parents=True, exist_ok=True)
    page.save(path, quality=90)


@pytest.mark.slow
def test_real_engine_reads_drawn_questions(
    raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    def offline(*_: object) -> None:
        raise AssertionError("no network while reading images")

    pytest.importorskip("rapidocr")
    monkeypatch.setattr(socket.socket, "connect", offline)
    images = raw / "data" / "images"
    draw_question(images / "3.jpg", "What is the area of the triangle?", ["24", "48", "14", "28"])
    draw_question(
        images / "4.jpg", "Which side is the longest?", ["base", "height", "slope", "none"]
    )
    Image.new("RGB", (300, 200), "white").save(images / "5.jpg")
    out = tmp_path / "out"
    command = ["data", "eedi", str(raw), "--out", str(out), "--threads", "1", "--json"]
    assert run(command) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["notes"]["images_read"] == 3 and result["notes"]["questions_without_text"] == 1
    texts = dict(pl.read_parquet(out / "items.parquet").rows())
    first = texts["3"].splitlines()
    assert first[0] == "What is the area of the triangle?"
    assert {"6 cm", "8 cm"} <= set(first)
    assert [row.split() for row in first[-2:]] == [["A", "24", "B", "48"], ["C", "14", "D", "28"]]
    assert texts["4"].startswith("Which side is the longest?") and "height" in texts["4"]
    assert run([*command, "--overwrite"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"]["images_read"] == 0


@pytest.mark.slow
def test_real_engine_refuses_what_is_no_image(tmp_path: Path) -> None:
    pytest.importorskip("rapidocr")
    broken = tmp_path / "1.jpg"
    broken.write_text("no image")
    with pytest.raises(UserError, match="not readable as an image"):
        read_images({"1": broken}, RapidReader(1))


def test_engine_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "rapidocr", None)
    with pytest.raises(UserError, match=r"pip install 'corginet\[ocr\]'"):
        RapidReader()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--start", "4 March"], "--start got '4 March'; write a day like 2020-03-04"),
        (["--threads", "0"], "--threads got 0"),
        (["--missing-images", "drp"], "did you mean 'drop'"),
        (["--images", "nowhere"], "nowhere: no such folder"),
    ],
)
def test_bad_options(
    raw: Path, capsys: pytest.CaptureFixture[str], options: list[str], sentence: str
) -> None:
    assert run(["data", "eedi", str(raw), "--out", str(raw / "out"), *options]) == 2
    assert sentence in capsys.readouterr().err


def test_damaged_and_doubled_files(raw: Path) -> None:
    train = raw / "data" / "train_data" / "train_task_3_4.csv"
    whole = train.read_text()
    train.write_text(whole + '3,"10,100,1,2,2\n4,11,102,0,2,2\n')
    with pytest.raises(UserError, match=r"train_task_3_4\.csv: not readable as CSV .*download"):
        prepare_eedi(raw, FakeReader)
    train.write_text(whole)
    (raw / "copy").mkdir()
    (raw / "copy" / train.name).write_text(whole)
    with pytest.raises(UserError, match=r"train_task_3_4\.csv is there 2 times"):
        prepare_eedi(raw, FakeReader)
