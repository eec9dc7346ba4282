"""Splits are seeded, disjoint, complete, and keep what they promise apart."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import make_tables
from corginet.data.ratings import Ratings
from corginet.data.splits import TEST, TRAIN, VALIDATION, SplitConfig, make_split
from corginet.data.vocabulary import Vocabulary
from corginet.errors import UserError

RATINGS = Ratings.read(make_tables()[0])


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from(["rating", "user", "item"]))
def test_seeded_disjoint_complete(seed: int, kind: str) -> None:
    config = SplitConfig(split=kind)
    split = make_split(RATINGS, config, seed)
    assert (split.part == make_split(RATINGS, config, seed).part).all()
    rows = np.concatenate([split.rows(p) for p in (TRAIN, VALIDATION, TEST)])
    assert sorted(rows.tolist()) == list(range(len(RATINGS)))
    if kind != "rating":
        group = RATINGS.users if kind == "user" else RATINGS.items
        parts = [set(group[split.rows(p)].tolist()) for p in (TRAIN, VALIDATION, TEST)]
        assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])


def test_shares_are_eight_one_one() -> None:
    split = make_split(RATINGS, SplitConfig(), 0)
    assert [len(split.rows(p)) for p in (TRAIN, VALIDATION, TEST)] == [160, 20, 20]


def test_time_keeps_the_latest_for_the_end() -> None:
    frame, _ = make_tables()
    timed = Ratings.read(frame.with_columns(pl.int_range(pl.len()).reverse().alias("time")))
    assert timed.times is not None
    split = make_split(timed, SplitConfig(split="time"), 0)
    latest = [timed.times[split.rows(p)] for p in (TRAIN, VALIDATION, TEST)]
    assert latest[0].max() < latest[1].min() <= latest[1].max() < latest[2].min()


def test_messages() -> None:
    with pytest.raises(UserError, match="needs a column 'time'"):
        make_split(RATINGS, SplitConfig(split="time"), 0)
    one_user = Ratings.read(
        pl.DataFrame({"user": ["a", "a"], "item": ["x", "y"], "value": [1.0, 2.0]})
    )
    with pytest.raises(UserError, match="too few to split by user"):
        make_split(one_user, SplitConfig(split="user"), 0)
    with pytest.raises(UserError, match="leave nothing to train on"):
        make_split(RATINGS, SplitConfig(validation_share=0.5, test_share=0.5), 0)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=30))
def test_vocabulary_goes_there_and_back(ids: list[str]) -> None:
    vocabulary = Vocabulary.sorted_from(pl.Series(ids))
    rows = vocabulary.rows(pl.Series(ids))
    assert [vocabulary.ids[int(r)] for r in rows] == ids
    more = vocabulary.extended(pl.Series([*ids, "\0new"]))
    assert (more.rows(pl.Series(ids)) == rows).all()
    assert len(more) == len(vocabulary) + 1
