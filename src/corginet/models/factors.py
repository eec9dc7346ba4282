"""Matrix factorisation with biases, and SVD++."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from corginet.config import searched, searched_among
from corginet.data.graph import InteractionGraph
from corginet.data.task import Task
from corginet.models.parts import BuildsModel
from corginet.nn.content import Content
from corginet.nn.readout import Pairs
from corginet.nn.sparse import SparseMatrix


class FactorConfig(BuildsModel):
    """Biases, and the product of a user's and an item's learned vectors."""

    kind: Literal["factors"] = "factors"
    n_factors: int = Field(
        16,
        ge=1,
        le=4096,
        description="length of the learned vectors",
        json_schema_extra=searched_among(4, 8, 16, 32, 64),
    )
    factor_damping: float = Field(
        7.0,
        ge=0,
        description="shrinkage of vectors, in values of 0",
        json_schema_extra=searched(1.0, 40.0, log=True),
    )
    bias_damping: float = Field(
        5.0,
        ge=0,
        description="shrinkage of biases, in values of 0",
        json_schema_extra=searched(0.5, 40.0, log=True),
    )
    implicit: bool = Field(
        False, description="users also show who they are by which items they met (SVD++)"
    )

    def build(
        self, task: Task, n_users: int, n_items: int, dims: Mapping[str, int], seed: int
    ) -> nn.Module:
        kind = ImplicitFactors if self.implicit else Factors
        dampings = (self.factor_damping, self.bias_damping)
        return kind(task, n_users, n_items, self.n_factors, dampings)


class Factors(nn.Module):
    """A user's taste and an item's nature as two short vectors.

    raw = b + b_u + b_m + p_u . q_m, all learned. Over a pass the training loss has
    damping * (sum over u of |p_u|² + sum over m of |q_m|²) / n_pairs, and the same for biases:
    who has many values is shrunk less.
    The pairs' values enter through parameters alone, so a training step may observe all
    edges. A row unseen in training has zeros: its prediction is what the other side says.
    """

    def __init__(
        self,
        task: Task,
        n_users: int,
        n_items: int,
        n_factors: int,
        dampings: tuple[float, float],
    ) -> None:
        super().__init__()
        self.task, self.dampings = task, dampings
        self.centre = 0.0 if task.binary else (task.low + task.high) / 2
        self.bias = nn.Parameter(torch.zeros(()))
        self.user_biases = nn.Parameter(torch.zeros(n_users))
        self.item_biases = nn.Parameter(torch.zeros(n_items))
        self.user_factors = nn.Parameter(torch.randn(n_users, n_factors) * 0.1)
        self.item_factors = nn.Parameter(torch.randn(n_items, n_factors) * 0.1)
        self.shrunk: Tensor = torch.zeros(())

    def forward(
        self, graph: InteractionGraph, pairs: Pairs, content: Content
    ) -> Float[Tensor, " pair"]:
        users, items = graph.user_rows[pairs.users], graph.item_rows[pairs.items]
        of_user, of_item = rows_of(self.user_biases, users), rows_of(self.item_biases, items)
        p, q = self.tastes(graph, pairs), rows_of(self.item_factors, items)
        factors, biases = self.dampings
        degrees = graph.degrees.clamp(min=1).to(p.dtype)  # each row counts once in a full pass
        per_user = factors * p.square().sum(-1) + biases * of_user.square()
        per_item = factors * q.square().sum(-1) + biases * of_item.square()
        self.shrunk = (
            per_user / degrees[pairs.users] + per_item / degrees[graph.n_users + pairs.items]
        ).mean()
        raw = self.bias + of_user + of_item + (p * q).sum(-1)
        return self.centre + (1.0 if self.task.binary else self.task.scale) * raw

    def tastes(self, graph: InteractionGraph, pairs: Pairs) -> Float[Tensor, "pair factor"]:
        return rows_of(self.user_factors, graph.user_rows[pairs.users])

    def penalty(self) -> Tensor:
        """Added to the training loss of the last call."""
        return self.shrunk


class ImplicitFactors(Factors):
    """Whom a user met says something, whatever came of it.

    p_u + |N(u)|^-1/2 sum over j in N(u) of y_j takes the place of p_u.  Source: SVD++.
    """

    def __init__(
        self,
        task: Task,
        n_users: int,
        n_items: int,
        n_factors: int,
        dampings: tuple[float, float],
    ) -> None:
        super().__init__(task, n_users, n_items, n_factors, dampings)
        self.met_factors = nn.Parameter(torch.randn(n_items, n_factors) * 0.1)

    def tastes(self, graph: InteractionGraph, pairs: Pairs) -> Float[Tensor, "pair factor"]:
        own = super().tastes(graph, pairs)
        degrees = graph.degrees[: graph.n_users].clamp(min=1).to(own.dtype)
        weights = degrees.rsqrt().index_select(0, graph.users)
        met = SparseMatrix(graph.users, graph.items, weights, (graph.n_users, graph.n_items))
        table = rows_of(self.met_factors, graph.item_rows)
        return own + (met @ table).index_select(0, pairs.users)


def rows_of(table: Tensor, rows: Int[Tensor, " row"]) -> Tensor:
    """Rows of a learned table; zeros for rows that came after training."""
    if not len(rows) or int(rows.max()) < len(table):
        return table.index_select(0, rows)
    known = rows < len(table)
    found = table.index_select(0, rows.clamp(max=len(table) - 1))
    return torch.where(known.view(-1, *[1] * (table.dim() - 1)), found, 0.0)
