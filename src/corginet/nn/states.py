"""Initial node states: h^(0) of users and items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from corginet.config import Config, searched
from corginet.data.graph import InteractionGraph
from corginet.nn.bag import number_of_stems
from corginet.nn.content import Content

N_STATISTICS = 5  # columns of graph.statistics
MARK_SCALE = 0.5  # about the spread of a text's components
Summary = Literal["average", "cls", "sentence", "bow", "components"]


class StatesConfig(Config):
    """What a node knows before any message arrives."""

    states: Literal["random", "trainable", "constant", "statistics"] = Field(
        "random",
        description="fixed random vectors, learned ones, the same for all nodes, or what the "
        "node's observed values say of it (with --values residuals)",
    )
    summary: Summary | None = Field(
        None,
        description="items start from this vector of their text, through a linear map; bow is "
        "the set of its stems, components the directions in which texts differ most",
    )
    summary_dropout: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="dropout on the text's vector (with --states statistics)",
        json_schema_extra=searched(0.0, 0.6),
    )

    def build(
        self, n_users: int, n_items: int, channels: int, dims: Mapping[str, int], seed: int
    ) -> States:
        own: States
        if self.states == "statistics":
            width = dims[self.summary] if self.summary else 0
            marks = RandomStates(width, seed)
            return StatisticStates(channels, marks, self.summary, self.summary_dropout)
        if self.states == "random":
            own = RandomStates(channels, seed)
        elif self.states == "constant":
            own = ConstantStates(channels)
        elif self.summary:
            own = TrainableStates(channels, user=n_users)
        else:
            own = TrainableStates(channels, user=n_users, item=n_items)
        if not self.summary:
            return own
        if self.summary == "bow":
            return BowStates(own, number_of_stems(dims), channels)
        return SummaryStates(own, self.summary, dims[self.summary], channels)


class States(nn.Module):
    """Initial states of users and items; subclasses say what one side starts from."""

    def forward(self, graph: InteractionGraph, content: Content) -> Float[Tensor, "node channel"]:
        return torch.cat([self.side("user", graph.user_rows), self.side("item", graph.item_rows)])

    def side(self, side: str, rows: Int[Tensor, " node"]) -> Float[Tensor, "node channel"]:
        raise NotImplementedError


class RandomStates(States):
    """Each node a fixed random vector that depends on its row alone, so new rows have one too."""

    def __init__(self, channels: int, seed: int) -> None:
        super().__init__()
        self.channels, self.seed = channels, seed
        self.tables: dict[str, Tensor] = {}

    def side(self, side: str, rows: Int[Tensor, " node"]) -> Float[Tensor, "node channel"]:
        table = self.tables.get(side)
        wanted = int(rows.max()) + 1 if len(rows) else 0
        if table is None or len(table) < wanted:
            draw = random_rows(wanted, self.channels, self.seed * 2 + (side == "item"))
            table = self.tables[side] = draw.to(torch.get_default_dtype())
        return table.index_select(0, rows)


def random_rows(n: int, dim: int, seed: int) -> Tensor:
    """Standard normal rows; row r is the same however many rows are asked for."""
    rng = np.random.Generator(np.random.Philox(key=seed))
    return torch.from_numpy(rng.standard_normal((n, dim)))


class TrainableStates(States):
    """Each node a learned vector; a node unseen in training starts from the average one."""

    def __init__(self, channels: int, **n_rows: int) -> None:
        super().__init__()
        self.tables = nn.ParameterDict(
            {side: nn.Parameter(torch.randn(n, channels)) for side, n in n_rows.items()}
        )

    def side(self, side: str, rows: Int[Tensor, " node"]) -> Float[Tensor, "node channel"]:
        table = self.tables[side]
        if not len(rows) or int(rows.max()) < len(table):
            return table.index_select(0, rows)
        with_average = torch.cat([table, table.mean(0, keepdim=True)])
        return with_average.index_select(0, rows.clamp(max=len(table)))


class ConstantStates(States):
    """All nodes start alike: only the graph and the text tell them apart."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels

    def side(self, side: str, rows: Int[Tensor, " node"]) -> Float[Tensor, "node channel"]:
        return torch.ones(len(rows), self.channels)


class SummaryStates(States):
    """Items start from one vector of their text through a learned linear map."""

    def __init__(self, users: States, summary: str, dim: int, channels: int) -> None:
        super().__init__()
        self.users, self.summary = users, summary
        self.map = nn.Linear(dim, channels)

    def forward(self, graph: InteractionGraph, content: Content) -> Float[Tensor, "node channel"]:
        vectors = content.summaries[self.summary].to(self.map.weight.dtype)
        return torch.cat([self.users.side("user", graph.user_rows), self.map(vectors)])


class BowStates(States):
    """Items start from the set of their stems, through a learned linear map: one row per stem."""

    def __init__(self, users: States, n_words: int, channels: int) -> None:
        super().__init__()
        self.users = users
        self.weight = nn.Parameter(torch.empty(n_words, channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        nn.init.uniform_(self.weight, -(n_words**-0.5), n_words**-0.5)

    def forward(self, graph: InteractionGraph, content: Content) -> Float[Tensor, "node channel"]:
        assert content.bag is not None
        items = content.bag.matrix @ self.weight + self.bias
        return torch.cat([self.users.side("user", graph.user_rows), items])


class StatisticStates(States):
    """Nodes start from what their observed values say of them, items from their text as well.

    h = relu(W [bias, spread, degree] + M text), W for users and for items. Nothing is learned
    about a single node, so new ones start like any other. An item without a text has a fixed
    random mark in its place: what users liked must differ for them to be told apart.
    """

    def __init__(
        self, channels: int, marks: RandomStates, summary: str | None, dropout: float
    ) -> None:
        super().__init__()
        self.marks = marks
        self.summary = summary
        self.of_user = nn.Linear(N_STATISTICS, channels)
        self.of_item = nn.Linear(N_STATISTICS, channels)
        self.dropout = nn.Dropout(dropout)
        self.of_text = nn.Linear(marks.channels, channels, bias=False) if summary else None

    def forward(self, graph: InteractionGraph, content: Content) -> Float[Tensor, "node channel"]:
        assert graph.statistics is not None
        users, items = graph.statistics.split([graph.n_users, graph.n_items])
        of_items = self.of_item(items)
        if self.of_text is not None and self.summary is not None:
            text = content.summaries[self.summary].to(of_items.dtype)
            marks = MARK_SCALE * self.marks.side("item", graph.item_rows)
            text = torch.where((text != 0).any(1, keepdim=True), text, marks)
            of_items = of_items + self.of_text(self.dropout(text))
        return torch.cat([self.of_user(users), of_items]).relu()
