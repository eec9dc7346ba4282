"""Deep matrix factorisation: two towers over the rows and columns of the observed values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity

from corginet.config import searched, searched_among
from corginet.data.graph import InteractionGraph
from corginet.data.task import Task
from corginet.models.factors import rows_of
from corginet.models.parts import BuildsModel
from corginet.models.values import ReadValues
from corginet.nn.content import Content
from corginet.nn.readout import Pairs
from corginet.nn.sparse import SparseMatrix


class DmfConfig(BuildsModel):
    """Two networks that read the user's and the item's observed values (DMF)."""

    kind: Literal["dmf"] = "dmf"
    hidden: int = Field(128, ge=1, le=8192, description="width of the towers' first layer")
    n_factors: int = Field(
        64,
        ge=1,
        le=4096,
        description="width of the towers' outputs",
        json_schema_extra=searched_among(16, 32, 64, 128),
    )
    tower_dropout: float = Field(
        0.5,
        ge=0,
        lt=1,
        description="dropout between tower layers",
        json_schema_extra=searched(0.0, 0.8),
    )

    def build(
        self, task: Task, n_users: int, n_items: int, dims: Mapping[str, int], seed: int
    ) -> nn.Module:
        towers = [
            Tower(n, self.hidden, self.n_factors, self.tower_dropout) for n in (n_items, n_users)
        ]
        return DeepFactors(task, *towers)


class DeepFactors(nn.Module):
    """Know a user by all that they gave, and an item by all that it got.

    p_u = tower(row u of the observed values), q_m = tower'(column m),
    raw = scale * cos(p_u, q_m) + w . p_u + w' . q_m + b.
    A user or item without observed values starts from the towers' biases.
    Source: DMF.  Deviation: values are centred, so that 'unobserved' is not 'lowest', and which
    cells are observed is a second input; the cosine is scaled and has levels beside it, for the
    common loss instead of a normalised cross entropy.
    """

    def __init__(self, task: Task, of_user: Tower, of_item: Tower) -> None:
        super().__init__()
        self.task, self.values = task, ReadValues(task)
        self.of_user, self.of_item = of_user, of_item
        width = of_user.out.out_features
        self.user_level = nn.Linear(width, 1)
        self.item_level = nn.Linear(width, 1, bias=False)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(
        self, graph: InteractionGraph, pairs: Pairs, content: Content
    ) -> Float[Tensor, " pair"]:
        values = (graph.values - graph.mean_value) / self.task.scale
        ends = (graph.users, graph.items)
        p = self.of_user(ends, values, graph.n_users, graph.item_rows)
        q = self.of_item(ends[::-1], values, graph.n_items, graph.user_rows)
        levels = self.user_level(p)[pairs.users] + self.item_level(q)[pairs.items]
        p, q = p.index_select(0, pairs.users), q.index_select(0, pairs.items)
        raw = self.scale * cosine_similarity(p, q) + levels[:, 0]
        return self.values.output(raw, graph, pairs, content)


class Tower(nn.Module):
    """A network on sparse rows: two learned vectors per column, for its value and its presence.

    The sums are divided by the root of the row's count, as evaluation observes more than training.
    """

    def __init__(self, n_columns: int, hidden: int, width: int, dropout: float) -> None:
        super().__init__()
        self.of_value = nn.Parameter(torch.randn(n_columns, hidden) * hidden**-0.5)
        self.of_presence = nn.Parameter(torch.randn(n_columns, hidden) * hidden**-0.5)
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(hidden, width)

    def forward(
        self, ends: tuple[Tensor, ...], values: Tensor, n_rows: int, columns: Tensor
    ) -> Float[Tensor, "row factor"]:
        rows, others = ends
        shape = (n_rows, len(columns))
        degrees = torch.bincount(rows, minlength=n_rows).clamp(min=1).to(values.dtype)
        inverse = degrees.rsqrt().index_select(0, rows)
        given = SparseMatrix(rows, others, values * inverse, shape)
        seen = SparseMatrix(rows, others, inverse, shape)
        first = given @ rows_of(self.of_value, columns) + seen @ rows_of(self.of_presence, columns)
        out: Tensor = self.out(self.dropout(torch.relu(first + self.bias)))
        return out
