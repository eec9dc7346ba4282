"""The Goodreads ratings and books of the paper, from the raw CSV files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from corginet.errors import UserError, examples, plural
from corginet.raw.prepared import Prepared, Progress, count_step
from corginet.raw.sources import GOODREADS, collect, find_files, header, scan_csv
from corginet.raw.texts import is_english, strip_html

if TYPE_CHECKING:
    import polars as pl

PHRASES = {
    "did not like it": 1,
    "it was ok": 2,
    "liked it": 3,
    "really liked it": 4,
    "it was amazing": 5,
}
NO_RATING = "this user doesn't have any rating"


def prepare_goodreads(
    raw: Path, progress: Progress | None = None, min_item_ratings: int = 1
) -> Prepared:
    """Ratings joined to books by title; one English description per title.

    Only books that somebody rated are read into memory. Of several books with one title the
    ratings cannot tell which was meant: the one with the lowest Id stays.
    """
    rating_files = find_files(raw, "user_rating_*.csv", GOODREADS)
    book_files = _described(find_files(raw, "book*.csv", GOODREADS))
    rows = _read_ratings(rating_files)
    done = Prepared("goodreads", rows, rows)
    done.steps.append(count_step("rows of the rating files", rows, item="title"))
    ratings = _to_values(rows)
    done.steps.append(count_step("a rating from 1 to 5", ratings, item="title"))
    books = _read_books(book_files, ratings, progress)
    _join(done, ratings, books, progress, min_item_ratings)
    done.notes = {"rating_files": len(rating_files), "book_files": len(book_files)}
    return done


def _described(files: list[Path]) -> list[Path]:
    """The book files with descriptions: the collection's first ones have none."""
    with_text = [f for f in files if "description" in {name.strip().lower() for name in header(f)}]
    if not with_text:
        raise UserError(
            f"none of the {len(files)} book files ({examples(f.name for f in files)}) has a column "
            f"Description; add the later ones, book600k-700k.csv and so on: {GOODREADS.where()}"
        )
    return with_text


def _read_ratings(files: list[Path]) -> pl.DataFrame:
    import polars as pl

    frames = [collect(scan_csv(f, ("ID", "Name", "Rating"), GOODREADS), f) for f in files]
    return pl.concat(frames).select(
        user=pl.col("ID").str.strip_chars(),
        title=_title_key(pl.col("Name")),
        phrase=pl.col("Rating").str.strip_chars().str.to_lowercase(),
    )


def _to_values(rows: pl.DataFrame) -> pl.DataFrame:
    """Phrases as numbers; the phrase for users without ratings goes, an unknown one is an error."""
    import polars as pl

    rated = rows.filter(pl.col("phrase").fill_null("") != NO_RATING).drop_nulls()
    unknown = rated.filter(~pl.col("phrase").is_in(list(PHRASES)))["phrase"]
    if unknown.len():
        seen = examples(repr(v) for v in unknown.unique(maintain_order=True))
        raise UserError(
            f"user_rating files: column 'Rating' has {plural(unknown.len(), 'row')} without a "
            f"known rating ({seen}); expected "
            f"{', '.join(repr(p) for p in PHRASES)}; correct or remove these rows"
        )
    if rated.height == 0:
        raise UserError(
            f"user_rating files: no row has a rating; add the others: {GOODREADS.where()}"
        )
    value = pl.col("phrase").replace_strict(PHRASES, return_dtype=pl.Int64)
    return rated.select("user", "title", value=value)


def _read_books(
    files: list[Path], ratings: pl.DataFrame, progress: Progress | None
) -> pl.DataFrame:
    """item, title, name and text of the books whose title somebody rated, by Id."""
    import polars as pl

    titles = ratings.lazy().select("title").unique()
    frames = []
    for number, file in enumerate(files, 1):
        books = scan_csv(file, ("Id", "Name", "Description"), GOODREADS).select(
            item=pl.col("Id").str.strip_chars().str.strip_suffix(".0"),
            title=_title_key(pl.col("Name")),
            name=pl.col("Name").str.strip_chars(),
            text=pl.col("Description").fill_null(""),
        )
        frames.append(collect(books.join(titles, on="title", how="semi"), file))
        if progress:
            progress(number, len(files), file.name)
    by_id = pl.col("item").cast(pl.Int64, strict=False)
    return pl.concat(frames).drop_nulls("item").sort(by_id, "item", maintain_order=True)


def _join(
    done: Prepared,
    ratings: pl.DataFrame,
    books: pl.DataFrame,
    progress: Progress | None,
    min_item_ratings: int,
) -> None:
    """The filters over books in turn, then one rating per user and book."""
    import polars as pl

    def step(name: str, kept: pl.DataFrame) -> pl.DataFrame:
        found = ratings.join(kept, on="title", how="semi")
        done.steps.append(count_step(name, found, item="title") | {"items": kept.height})
        return kept

    books = step("title found among the books", books)
    books = books.with_columns(pl.Series("text", [strip_html(t) for t in books["text"]], pl.String))
    books = step("a description, without HTML", books.filter(pl.col("text") != ""))
    books = step("description in English", books.filter(_english(books["text"], progress)))
    books = step("one book per title", books.unique("title", keep="first", maintain_order=True))
    joined = ratings.join(books, on="title", how="inner", maintain_order="left")
    joined = joined.unique(["user", "item"], keep="last", maintain_order=True)
    done.steps.append(count_step("one rating per user and book (the last)", joined))
    if min_item_ratings > 1:
        joined = joined.filter(pl.len().over("item") >= min_item_ratings)
        done.steps.append(count_step(f"at least {min_item_ratings} ratings per book", joined))
    if joined.height == 0:
        raise UserError(_nothing_left(done))
    done.ratings = joined.select("user", "item", "value")
    done.items = books.join(
        joined.select("item").unique(), on="item", how="semi", maintain_order="left"
    ).select("item", "text", title="name")


def _english(texts: pl.Series, progress: Progress | None) -> pl.Series:
    import polars as pl

    verdicts = []
    for number, text in enumerate(texts, 1):
        verdicts.append(is_english(text))
        if progress and (number % 100 == 0 or number == len(texts)):
            progress(number, len(texts), "languages")
    return pl.Series(verdicts, dtype=pl.Boolean)


def _title_key(name: pl.Expr) -> pl.Expr:
    """Titles are equal up to case and white space."""
    return name.str.strip_chars().str.replace_all(r"\s+", " ").str.to_lowercase()


def _nothing_left(done: Prepared) -> str:
    last = next(s["step"] for s in done.steps if s["ratings"] == 0)
    return (
        f"no rating is left after the step '{last}'; put all files book*.csv and "
        f"user_rating_*.csv into one folder: {GOODREADS.where()}"
    )
