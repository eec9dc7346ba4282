"""How far users and items lie from the mean, from observed values alone."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from corginet.data.graph import InteractionGraph

ROUNDS = 10  # of setting users' and items' biases in turn: far beyond what they need


class Biases(NamedTuple):
    """How far each user and each item lies from the mean."""

    mean: Float[Tensor, ""]
    users: Float[Tensor, " user"]
    items: Float[Tensor, " item"]

    def of(self, users: Tensor, items: Tensor) -> Float[Tensor, " pair"]:
        return self.mean + self.users.index_select(0, users) + self.items.index_select(0, items)


def damped_biases(
    graph: InteractionGraph,
    user_damping: float | Tensor,
    item_damping: float | Tensor,
    rounds: int = ROUNDS,
) -> Biases:
    """Least squares of value = mean + b_user + b_item with b shrunk as by `damping` more zeros.

    A user or item without observed values has a bias of 0.
    """
    mean = graph.mean_value
    degrees = graph.degrees.to(graph.values.dtype)
    n_users = degrees[: graph.n_users] + user_damping
    n_items = degrees[graph.n_users :] + item_damping
    users, items = torch.zeros_like(n_users), torch.zeros_like(n_items)
    for _ in range(rounds):
        rest = graph.values - mean - users.index_select(0, graph.users)
        items = torch.zeros_like(items).index_add(0, graph.items, rest) / n_items
        rest = graph.values - mean - items.index_select(0, graph.items)
        users = torch.zeros_like(users).index_add(0, graph.users, rest) / n_users
    return Biases(mean, users, items)
