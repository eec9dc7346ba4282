"""Bags of stems, and words as nodes."""

from __future__ import annotations

import polars as pl
import pytest
import torch

from conftest import make_tables
from corginet.data.graph import InteractionGraph
from corginet.data.task import Task
from corginet.errors import UserError
from corginet.estimator import Estimator
from corginet.models.graph_model import GraphModelConfig
from corginet.nn.bag import Bag
from corginet.nn.content import Content
from corginet.nn.states import StatesConfig
from corginet.nn.word_nodes import NodesConfig, WordNodes
from corginet.nn.words import Words
from corginet.text.stems import Stems

TEXTS = ["Cats running, cats!", "the cat ran", "Running_shoes 42", "42 dogs; the end", ""]


def test_stems_are_alphanumeric_lower_case_and_in_two_texts_or_more() -> None:
    assert list(Stems(TEXTS).row_of) == ["42", "cat", "run", "the"]


def test_a_bag_counts_each_stem_once_and_passes_over_new_ones() -> None:
    bag = Stems(TEXTS).bag(["cats and the cat", "new words", "42"])
    assert bag.items.tolist() == [0, 0, 2]
    assert bag.words.tolist() == [1, 3, 0]
    assert (bag.n_items, bag.n_words) == (3, 4)


def test_a_subset_of_a_bag_is_that_of_its_rows() -> None:
    stems = Stems(TEXTS)
    rows = torch.tensor([3, 0, 4, 0])
    got = stems.bag(TEXTS).for_items(rows)
    want = stems.bag([TEXTS[row] for row in rows])
    assert torch.equal(got.items, want.items)
    assert torch.equal(got.words, want.words)


@pytest.mark.parametrize("name", ["gcn+bow", "gcn+words"])
def test_texts_without_a_common_stem_are_refused(name: str) -> None:
    ratings, items = make_tables()
    with pytest.raises(UserError, match="no stem occurs in two of the items' texts"):
        Estimator(name, channels=4, epochs=1).fit(ratings, items.with_columns(text=pl.col("item")))


def content_of(bag: Bag) -> Content:
    none = torch.zeros(bag.n_items, dtype=torch.long)
    return Content(Words(torch.zeros(0, 0), none, none), bag=bag)


def a_graph() -> InteractionGraph:
    users, items = torch.tensor([0, 1, 2, 0]), torch.tensor([4, 0, 0, 2])
    return InteractionGraph.build(users, items, torch.tensor([1.0, 0.5, -1.0, 0.0]), 3, 5)


def test_initial_states_from_a_bag_add_up_a_row_per_stem() -> None:
    bag = Stems(TEXTS).bag(TEXTS)
    states = StatesConfig(summary="bow").build(3, 5, 6, {"bow": 4}, 0)
    out = states(a_graph(), content_of(bag))[3:]
    for item in range(5):
        rows = bag.words[bag.items == item]
        assert torch.allclose(out[item], states.bias + states.weight[rows].sum(0), atol=1e-6)


def test_word_nodes_join_between_users_and_items_and_leave_again() -> None:
    graph, bag = a_graph(), Stems(TEXTS).bag(TEXTS)
    nodes, states = WordNodes(4, 6, 0), torch.randn(8, 6)
    joined, more = nodes.join(graph, states, content_of(bag))
    assert (joined.n_users, joined.n_items, len(joined)) == (7, 5, 4 + len(bag.items))
    assert torch.equal(joined.items, joined.items.sort().values)
    links = joined.users >= 3
    assert set(zip(joined.users[links].tolist(), joined.items[links].tolist(), strict=True)) == {
        (3 + w, i) for w, i in zip(bag.words.tolist(), bag.items.tolist(), strict=True)
    }
    assert not joined.values[links].any()
    assert torch.equal(more[3:7], nodes.words)
    assert torch.equal(nodes.leave(graph, more), states)


def test_items_that_share_a_word_hear_of_each_other() -> None:
    """Item 1 has no edge: only the words it shares with item 0 can move its state."""
    config = GraphModelConfig(nodes=NodesConfig(word_nodes=True), n_layers=4, channels=8)
    task = Task(kind="rating", low=-1, high=1)
    torch.manual_seed(0)
    model = config.build(task, 3, 5, {"bow": 4}, 0).eval()
    content, graph = content_of(Stems(TEXTS).bag(TEXTS)), a_graph()
    before = model.node_states(graph, content)[3:]
    changed = model.node_states(graph.with_values(-graph.values), content)[3:]
    assert not torch.allclose(before[1], changed[1])
