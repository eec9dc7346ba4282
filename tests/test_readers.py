"""Tables in: every format, and one clear sentence for each kind of bad input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from conftest import make_tables
from corginet.data.dataset import Dataset
from corginet.data.ratings import Ratings
from corginet.errors import UserError

GOOD = "user,item,value\na,x,1\na,y,2\nb,x,3\n"


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_every_format_reads_the_same(tmp_path: Path) -> None:
    frame, _ = make_tables()
    frame.write_csv(tmp_path / "r.csv")
    frame.write_csv(tmp_path / "r.tsv", separator="\t")
    frame.write_parquet(tmp_path / "r.parquet")
    frame.write_ndjson(tmp_path / "r.jsonl")
    sources = [tmp_path / f"r.{s}" for s in ("csv", "tsv", "parquet", "jsonl")]
    prints = {
        Ratings.read(s).fingerprint()
        for s in [*sources, frame, pd.DataFrame(frame.to_dict(as_series=False))]
    }
    assert len(prints) == 1


def test_other_names_and_any_ids(tmp_path: Path) -> None:
    path = write(tmp_path / "r.csv", "student,question,correct\n007,x,1\n7,x,0\n7,y,1\n")
    names = {"user": "student", "item": "question", "value": "correct"}
    ratings = Ratings.read(path, names)
    assert ratings.user_ids.ids.to_list() == ["007", "7"]
    assert ratings.task.binary
    integers = Ratings.read(pl.DataFrame({"user": [7, 8], "item": [1, 1], "value": [1.0, 4.0]}))
    assert integers.user_ids.ids.to_list() == ["7", "8"]
    floats = pd.DataFrame({"user": [7.0, 8.0], "item": ["x", "y"], "value": [1, 4]})
    assert Ratings.read(floats).user_ids.ids.to_list() == ["7", "8"]


def test_times_of_every_kind(tmp_path: Path) -> None:
    for stamps in (("3", "1", "2"), ("2024-03-01", "2024-01-01", "2024-02-01T10:00:00")):
        rows = "".join(f"u,i{k},{k},{t}\n" for k, t in enumerate(stamps))
        ratings = Ratings.read(write(tmp_path / "r.csv", "user,item,value,time\n" + rows))
        assert ratings.times is not None
        assert np.argsort(ratings.times).tolist() == [1, 2, 0]


BAD = {
    "missing column": ("user,thing,value\na,x,1\n", r"no column 'item'.*--columns"),
    "empty cell": ("user,item,value\na,,1\nb,x,2\n", r"column 'item' has 1 empty cell \(rows 1\)"),
    "empty value": ("user,item,value\na,x,\nb,x,2\n", r"column 'value' has 1 empty cell"),
    "no number": ("user,item,value\na,x,good\nb,x,2\n", r"no numbers \(good in rows 1\)"),
    "infinity": ("user,item,value\na,x,inf\nb,x,2\n", r"not finite \(inf in rows 1\)"),
    "nan": ("user,item,value\na,x,nan\nb,x,2\n", r"not finite"),
    "twice": ("user,item,value\na,x,1\na,x,2\n", r"repeat a .* pair.*--duplicates last"),
    "one value": ("user,item,value\na,x,3\nb,x,3\n", r"all values are 3"),
    "header only": ("user,item,value\n", r"no rows"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_bad_ratings_say_what_is_wrong(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Ratings.read(write(tmp_path / "r.csv", content))


def test_all_problems_come_together(tmp_path: Path) -> None:
    ratings = write(tmp_path / "r.csv", "user,item,value\na,x,bad\n,y,1\na,z,9\na,z,9\n")
    items = write(tmp_path / "i.csv", "item,text\nx,\nx,hello\n")
    with pytest.raises(UserError) as caught:
        Dataset.read(ratings, items, bounds=(0, 5))
    for part in (
        "no numbers",
        "empty cell",
        "outside 0 to 5",
        "repeat a",
        "empty text",
        "repeat an",
    ):
        assert part in str(caught.value)


def test_bad_files(tmp_path: Path) -> None:
    cases = {
        "r.csv": (b"", "the file is empty"),
        "b.csv": (b"user,item,value\na,x,\xff\xfe1\n", "line 2 has bytes that are not UTF-8"),
        "n.csv": (b"user,item\0,value\n", "binary data"),
        "p.parquet": (b"user,item,value\n", "no parquet file"),
        "q.csv": (b"PAR1abc", "a parquet file"),
        "j.jsonl": (b"not json at all\n", "not readable as jsonl"),
        "x.xlsx": (b"abc", "unknown kind of file"),
    }
    for name, (content, message) in cases.items():
        with pytest.raises(UserError, match=message):
            Ratings.read(write(tmp_path / name, content))
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(UserError, match="a directory"):
        Ratings.read(tmp_path / "d.csv")
    with pytest.raises(UserError, match="no such file"):
        Ratings.read(tmp_path / "absent.csv")
    with pytest.raises(UserError, match="polars or pandas"):
        Ratings.read(3)


def test_rules_for_repeats_and_gaps(tmp_path: Path) -> None:
    path = write(tmp_path / "r.csv", "user,item,value\na,x,1\na,x,3\nb,x,5\n,x,4\n")
    last = Ratings.read(path, duplicates="last", missing="drop")
    assert sorted(last.values.tolist()) == [3, 5]
    mean = Ratings.read(path, duplicates="mean", missing="drop")
    assert sorted(mean.values.tolist()) == [2, 5]
    with pytest.raises(UserError, match="--duplicates got 'lst'; did you mean 'last'"):
        Ratings.read(path, duplicates="lst")  # type: ignore[arg-type]


def test_task_is_inferred_and_overridable(tmp_path: Path) -> None:
    path = write(tmp_path / "r.csv", "user,item,value\na,x,1\nb,x,0\n")
    assert Ratings.read(path).task.binary
    assert Ratings.read(path, task="rating").task.kind == "rating"
    stars = write(tmp_path / "s.csv", GOOD)
    assert Ratings.read(stars, bounds=(1, 5)).task.high == 5
    with pytest.raises(UserError, match="values 0 and 1, got 2"):
        Ratings.read(stars, task="binary")
    with pytest.raises(UserError, match="unknown task"):
        Ratings.read(stars, task="stars")


def test_items_and_ratings_are_joined(tmp_path: Path) -> None:
    ratings = write(tmp_path / "r.csv", GOOD)
    items = write(tmp_path / "i.csv", "item,text\nx,hello there\nz,nobody rated this\n")
    with pytest.raises(UserError, match=r"1 rated item have no row here \(y\)"):
        Dataset.read(ratings, items)
    found = Dataset.read(ratings, items, missing_text="allow")
    texts = dict(zip(found.ratings.item_ids.ids.to_list(), found.texts, strict=True))
    assert texts == {"x": "hello there", "y": "", "z": "nobody rated this"}
