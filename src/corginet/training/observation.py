"""Which training edges are observed in a step, and which are supervised. Leaks would hide here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from corginet.config import Config, searched
from corginet.data.graph import InteractionGraph
from corginet.nn.readout import Pairs


class Step(NamedTuple):
    """What one optimisation step sees, and what it must predict."""

    graph: InteractionGraph
    pairs: Pairs
    targets: Tensor


class ObservationConfig(Config):
    """The policy of observed and supervised edges."""

    policy: Literal["hidden", "folds", "shared"] = Field(
        "hidden",
        description="hidden: a random share of the edges is hidden and predicted; folds: the "
        "same in fixed parts that take turns; shared: every edge is input and target at once, "
        "as in the paper, which leaks",
    )
    hidden_share: float = Field(
        0.5,
        gt=0,
        lt=1,
        description="share of edges hidden per step",
        json_schema_extra=searched(0.2, 0.7),
    )
    hidden_users: float = Field(
        0.0, ge=0, lt=1, description="share of users hidden whole in every second step"
    )
    hidden_items: float = Field(
        0.0, ge=0, lt=1, description="share of items hidden whole in every second step"
    )

    def build(self) -> Policy:
        kinds = {"hidden": HiddenShare, "folds": Folds, "shared": Shared}
        return kinds[self.policy](self.hidden_share, self.hidden_users, self.hidden_items)


class Policy:
    """Divides the training graph of each epoch into what is observed and what is asked."""

    def __init__(
        self, hidden_share: float, hidden_users: float = 0.0, hidden_items: float = 0.0
    ) -> None:
        self.hidden_share = hidden_share
        self.hidden_users, self.hidden_items = hidden_users, hidden_items

    def step(self, graph: InteractionGraph, epoch: int, rng: np.random.Generator) -> Step:
        hidden = self.hide(len(graph), epoch, rng) | self.hide_nodes(graph, rng)
        return _ask(graph, graph.keep(~hidden, self.key(epoch)), hidden)

    def hide(self, n_edges: int, epoch: int, rng: np.random.Generator) -> Tensor:
        raise NotImplementedError

    def hide_nodes(self, graph: InteractionGraph, rng: np.random.Generator) -> Tensor:
        """Edges of users and items hidden whole, in every second step: as new ones will come."""
        hidden = torch.zeros(len(graph), dtype=torch.bool)
        if not (self.hidden_users or self.hidden_items) or rng.random() < 0.5:
            return hidden
        for share, n, ends in (
            (self.hidden_users, graph.n_users, graph.users),
            (self.hidden_items, graph.n_items, graph.items),
        ):
            hidden |= torch.from_numpy(rng.random(n) < share)[ends]
        return hidden if not hidden.all() else torch.zeros_like(hidden)

    def key(self, epoch: int) -> str | None:
        """The name of the observed set, where it comes again."""
        return None


class HiddenShare(Policy):
    """A fresh random share of the edges is hidden and supervised in each step."""

    def hide(self, n_edges: int, epoch: int, rng: np.random.Generator) -> Tensor:
        n_hidden = min(max(1, round(n_edges * self.hidden_share)), max(1, n_edges - 1))
        mask = torch.zeros(n_edges, dtype=torch.bool)
        mask[torch.from_numpy(rng.permutation(n_edges)[:n_hidden])] = True
        return mask


class Folds(Policy):
    """Fixed random parts take turns in being hidden, so that caches can be kept per part."""

    @property
    def n_folds(self) -> int:
        return max(2, round(1 / self.hidden_share))

    def hide(self, n_edges: int, epoch: int, rng: np.random.Generator) -> Tensor:
        fixed = np.random.default_rng(0).permutation(n_edges) % self.n_folds
        return torch.from_numpy(fixed == epoch % self.n_folds)

    def key(self, epoch: int) -> str | None:
        return f"fold{epoch % self.n_folds}"


class Shared(Policy):
    """Every edge is both input and target. The paper's way; it leaks in training."""

    def step(self, graph: InteractionGraph, epoch: int, rng: np.random.Generator) -> Step:
        everything = self.hide(len(graph), epoch, rng)
        return _ask(graph, graph.keep(everything, "shared"), everything)

    def hide(self, n_edges: int, epoch: int, rng: np.random.Generator) -> Tensor:
        """All are asked; none is taken out of what is observed."""
        return torch.ones(n_edges, dtype=torch.bool)


def _ask(graph: InteractionGraph, observed: InteractionGraph, asked: Tensor) -> Step:
    rows = torch.nonzero(asked).flatten()
    pairs = Pairs(graph.users.index_select(0, rows), graph.items.index_select(0, rows))
    return Step(observed, pairs, graph.values.index_select(0, rows))


class BatchConfig(Config):
    """Full batch, or mini-batches on sampled subgraphs."""

    batch_size: int = Field(0, ge=0, description="pairs per step; 0 takes all at once")
    fanout: int = Field(0, ge=0, description="neighbours sampled per node and hop; 0 takes all")
    n_hops: int = Field(2, ge=1, le=8, description="hops of the sampled subgraph")

    def batches(self, step: Step, rng: np.random.Generator) -> Iterator[Step]:
        """Cut one step into mini-batches, each on its own sampled subgraph."""
        from corginet.data.sampling import NeighbourSampler

        if not self.batch_size and not self.fanout:
            yield step
            return
        sampler = NeighbourSampler(step.graph, self.fanout, self.n_hops) if self.fanout else None
        n = len(step.targets)
        order = torch.from_numpy(rng.permutation(n))
        for rows in order.split(self.batch_size or n):
            users, items = step.pairs.users[rows], step.pairs.items[rows]
            graph = step.graph
            if sampler is not None:
                graph, users, items = sampler.sample(users, items, rng)
            yield Step(graph, Pairs(users, items), step.targets[rows])
