"""Goodreads' raw files, in their exact format, into ratings and items."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import polars as pl
import pytest

from corginet.cli.app import run
from corginet.errors import UserError
from corginet.raw.goodreads import prepare_goodreads
from corginet.raw.texts import is_english, strip_html

EARLY = (
    "Id,Name,RatingDist1,pagesNumber,RatingDist4,RatingDistTotal,PublishMonth,PublishDay,Publisher,"
    "CountsOfReview,PublishYear,Language,Authors,Rating,RatingDist2,RatingDist5,ISBN,RatingDist3"
)
LATE = (
    "Id,Name,Authors,ISBN,Rating,PublishYear,PublishMonth,PublishDay,Publisher,RatingDist5,"
    "RatingDist4,RatingDist3,RatingDist2,RatingDist1,RatingDistTotal,CountsOfReview,Language,"
    "PagesNumber,Description,Count of text reviews"
)
ENGLISH = (
    "<i>The hero</i> leaves the village where he was born &amp; learns what the sea takes from "
    'those who love it.<br /><br />A story about fathers, ships and "luck".'
)
SPANISH = "Una historia de amor y de guerra en la España del siglo XX, contada por una mujer."
NO_RATING = "This user doesn't have any rating"


def book(identifier: int, name: str, description: str) -> dict[str, object]:
    return {
        "Id": identifier,
        "Name": name,
        "Authors": "A. Writer",
        "RatingDist1": "1:5",
        "RatingDistTotal": "total:55",
        "Language": "",
        "Description": description,
    }


def write_csv(path: Path, columns: str, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns.split(","), restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def write_ratings(path: Path, rows: list[tuple[int, str, str]]) -> None:
    write_csv(path, "ID,Name,Rating", [{"ID": u, "Name": n, "Rating": p} for u, n, p in rows])


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    folder = tmp_path / "raw"
    write_csv(folder / "book1-100k.csv", EARLY, [book(1, "The Sea", "")])
    write_csv(
        folder / "book600k-700k.csv",
        LATE,
        [
            book(600002, "The Sea", ENGLISH + "\n\nSecond edition."),
            book(600001, "The Sea", ENGLISH),
            book(600003, "El mar", SPANISH),
            book(600004, "Empty Harbour", "<p> </p>"),
            book(600005, "Nobody Rated This", ENGLISH),
        ],
    )
    write_csv(
        folder / "more" / "book700k-800k.csv",
        LATE,
        [book(700001, "the  sea", ENGLISH), book(700002, "Ships, and Men", ENGLISH)],
    )
    write_ratings(
        folder / "user_rating_0_to_1000.csv",
        [
            (1, "The Sea", "it was amazing"),
            (1, "El mar", "liked it"),
            (1, "Empty Harbour", "liked it"),
            (1, "Ships, and Men", "did not like it"),
            (2, "Rating", NO_RATING),
            (3, "The Sea", "it was ok"),
            (3, "THE SEA", "really liked it"),
        ],
    )
    write_ratings(
        folder / "user_rating_1000_to_2000.csv",
        [(1001, "Ships, and Men", "liked it"), (1002, "Not in the files", "liked it")],
    )
    return folder


def test_tables_and_counts(raw: Path) -> None:
    done = prepare_goodreads(raw)
    assert done.ratings.sort("user", "item").rows() == [
        ("1", "600001", 5),
        ("1", "700002", 1),
        ("1001", "700002", 3),
        ("3", "600001", 4),
    ]
    assert done.items.columns == ["item", "text", "title"]
    assert done.items["item"].to_list() == ["600001", "700002"]
    assert done.items["title"].to_list() == ["The Sea", "Ships, and Men"]
    assert done.items["text"][0].startswith("The hero leaves the village")
    assert done.items["text"][0].endswith('love it. A story about fathers, ships and "luck".')
    counts = [(s["users"], s["items"], s["ratings"]) for s in done.steps]
    assert counts == [
        (5, 6, 9),  # rows
        (4, 5, 8),  # a rating
        (3, 6, 7),  # title among the described books
        (3, 5, 6),  # a description
        (3, 4, 5),  # in English
        (3, 2, 5),  # one book per title
        (3, 2, 4),  # one rating per user and book
    ]
    report = done.report()
    assert report["counts"]["edges"] == 4 and report["counts"]["density"] == pytest.approx(4 / 6)
    assert report["paper"]["users"] == 2243 and report["paper"]["words_per_item"] == 132.32


def test_few_ratings(raw: Path) -> None:
    assert prepare_goodreads(raw, min_item_ratings=2).items.height == 2
    with pytest.raises(UserError, match="at least 3 ratings per book"):
        prepare_goodreads(raw, min_item_ratings=3)


def test_command(raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run(["data", "goodreads", str(raw), "--out", str(out), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["counts"]["users"] == 3 and result["paper"]["edges"] == 114_839
    assert len(result["steps"]) == 7
    assert pl.read_parquet(out / "ratings.parquet").columns == ["user", "item", "value"]
    assert pl.read_parquet(out / "items.parquet").columns == ["item", "text", "title"]
    again = ["data", "goodreads", str(raw), "--out", str(out)]
    assert run(again) == 2
    assert "pass --overwrite" in capsys.readouterr().err
    assert run([*again, "--overwrite"]) == 0
    shown = capsys.readouterr().out
    assert "Table 1" in shown and "114,839" in shown and "description in English" in shown


def test_the_tables_are_what_fit_reads(raw: Path) -> None:
    from corginet.data.dataset import Dataset

    done = prepare_goodreads(raw)
    dataset = Dataset.read(done.ratings, done.items)
    assert dataset.ratings.n_users == 3 and dataset.ratings.n_items == 2


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("book*.csv", r"no file book\*\.csv .* published at Kaggle under CC0"),
        ("user_rating_*.csv", r"no file user_rating_\*\.csv .*goodreads-book-datasets-10m"),
        ("book[67]*.csv", "has a column Description; add the later ones"),
    ],
)
def test_missing_files(
    raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], pattern: str, sentence: str
) -> None:
    for path in raw.rglob(pattern):
        path.unlink()
    with pytest.raises(UserError, match=sentence):
        prepare_goodreads(raw)
    out = tmp_path / "out"
    assert run(["data", "goodreads", str(raw), "--out", str(out)]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["raw"]


def test_bad_input(raw: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        prepare_goodreads(tmp_path / "nowhere")
    with pytest.raises(UserError, match="unpack it"):
        prepare_goodreads(raw / "book1-100k.csv")
    write_ratings(raw / "user_rating_2000_to_3000.csv", [(2, "The Sea", "meh")])
    with pytest.raises(UserError, match=r"1 row without a known rating \('meh'\)"):
        prepare_goodreads(raw)
    (raw / "user_rating_2000_to_3000.csv").write_text("ID,Title,Rating\n1,a,liked it\n")
    with pytest.raises(UserError, match=r"user_rating_2000_to_3000\.csv: no column 'Name'"):
        prepare_goodreads(raw)
    (raw / "user_rating_2000_to_3000.csv").write_text("")
    with pytest.raises(UserError, match=r"user_rating_2000_to_3000\.csv: the file is empty"):
        prepare_goodreads(raw)


def test_nothing_in_common(raw: Path) -> None:
    for path in raw.glob("user_rating*"):
        path.unlink()
    write_ratings(raw / "user_rating_0_to_1000.csv", [(1, "Elsewhere", "liked it")])
    with pytest.raises(UserError, match="after the step 'title found among the books'"):
        prepare_goodreads(raw)


def test_html() -> None:
    assert strip_html("a<br/>b &lt;3 <i>c</i>d<script>x()</script>") == "a b <3 cd"
    assert strip_html("1 < 2 &amp; 3\n\n4") == "1 < 2 & 3 4"
    assert strip_html("<p>One.</p><p>Two.</p>") == "One. Two."


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("A quiet novel about a family and its secrets.", True),
        (SPANISH, False),
        ("Wie alle Hauptwerke ist auch dieser Roman ein Buch der Suche.", False),
        ("Jeune astronome convaincue de l'existence d'une vie extraterrestre.", False),
        ("قصة حب طويلة في زمن الحرب", False),
        ("Een boek over liefde en de oorlog in Nederland.", False),
    ],
)
def test_languages(text: str, english: bool) -> None:
    assert is_english(text) is english
