"""The observed interactions, as a graph that messages travel on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True, eq=False)
class InteractionGraph:
    """Observed edges with values, sorted by item. What is asked for is never in here.

    Nodes are numbered users first, then items. In a sampled subgraph, user_rows and item_rows
    say which nodes of the whole these are. `key` names a set of observed edges that comes
    again, step after step; caches are kept per key, so that no value reaches a step in which
    it is hidden. `statistics` are numbers about each node that follow from the observed values.
    """

    users: Int[Tensor, " edge"]
    items: Int[Tensor, " edge"]
    values: Float[Tensor, " edge"]
    n_users: int
    n_items: int
    edge_ids: Int[Tensor, " edge"]
    user_rows: Int[Tensor, " user"]
    item_rows: Int[Tensor, " item"]
    key: str | None = None
    statistics: Float[Tensor, "node statistic"] | None = None

    @classmethod
    def build(
        cls,
        users: Int[Tensor, " edge"],
        items: Int[Tensor, " edge"],
        values: Float[Tensor, " edge"],
        n_users: int,
        n_items: int,
        key: str | None = None,
    ) -> InteractionGraph:
        order = torch.argsort(items, stable=True)
        return cls(
            users[order],
            items[order],
            values[order],
            n_users,
            n_items,
            torch.arange(len(items)),
            torch.arange(n_users),
            torch.arange(n_items),
            key,
        )

    def __len__(self) -> int:
        return len(self.users)

    @property
    def n_nodes(self) -> int:
        return self.n_users + self.n_items

    def keep(self, mask: Bool[Tensor, " edge"], key: str | None = None) -> InteractionGraph:
        """The same nodes with some of the edges."""
        rows = torch.nonzero(mask).flatten()
        return self._pick(rows, key)

    def _pick(self, rows: Tensor, key: str | None) -> InteractionGraph:
        return replace(
            self,
            users=self.users.index_select(0, rows),
            items=self.items.index_select(0, rows),
            values=self.values.index_select(0, rows),
            edge_ids=self.edge_ids.index_select(0, rows),
            key=key,
        )

    def with_values(
        self,
        values: Float[Tensor, " edge"],
        statistics: Float[Tensor, "node statistic"] | None = None,
    ) -> InteractionGraph:
        """The same edges with other values, in this graph's order."""
        return replace(self, values=values, statistics=statistics)

    @cached_property
    def sources(self) -> Int[Tensor, " message"]:
        """The sending node of each message: first item → user for every edge, then user → item."""
        return torch.cat([self.items + self.n_users, self.users])

    @cached_property
    def targets(self) -> Int[Tensor, " message"]:
        return torch.cat([self.users, self.items + self.n_users])

    @cached_property
    def degrees(self) -> Int[Tensor, " node"]:
        return torch.bincount(self.targets, minlength=self.n_nodes)

    @cached_property
    def levels(self) -> tuple[Float[Tensor, " level"], Int[Tensor, " edge"]]:
        """The distinct values, and which of them each edge has."""
        return torch.unique(self.values, return_inverse=True)

    @cached_property
    def mean_value(self) -> Float[Tensor, ""]:
        """The average of the observed values (0 without any)."""
        return self.values.sum() / max(1, len(self))
