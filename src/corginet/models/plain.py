"""Models without texts and networks: the mean, biases, nearest neighbours."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from corginet.config import searched_among
from corginet.data.graph import InteractionGraph
from corginet.data.task import Task
from corginet.models.parts import BuildsModel
from corginet.models.values import raw_of
from corginet.nn.biases import Biases, damped_biases
from corginet.nn.content import Content
from corginet.nn.readout import Pairs
from corginet.nn.sparse import SparseMatrix

if TYPE_CHECKING:
    from corginet.training.trainer import TrainingData

DAMPINGS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # the choices for each side
CHUNK = 256  # items whose similarities to all others are held at a time


class MeanConfig(BuildsModel):
    """Every pair gets the average of the observed values."""

    kind: Literal["mean"] = "mean"

    def build(
        self, task: Task, n_users: int, n_items: int, dims: Mapping[str, int], seed: int
    ) -> nn.Module:
        return MeanModel(task)


class MeanModel(nn.Module):
    """What any other model must beat."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.task = task

    def fit_closed_form(self, data: TrainingData) -> None:
        """Nothing is learned before it is asked."""

    def forward(
        self, graph: InteractionGraph, pairs: Pairs, content: Content
    ) -> Float[Tensor, " pair"]:
        return raw_of(graph.mean_value.expand(len(pairs.users)), self.task)


class BiasConfig(BuildsModel):
    """The mean, plus how far the user and the item usually lie from it."""

    kind: Literal["bias"] = "bias"

    def build(
        self, task: Task, n_users: int, n_items: int, dims: Mapping[str, int], seed: int
    ) -> nn.Module:
        return BiasModel(task)


class BiasModel(nn.Module):
    """Some users are kind, some items are good; that is most of what there is to know.

    value = mean + b_user + b_item, computed from the values observed when it is asked, so new
    users and items need no fitting. The dampings are chosen on the validation part.
    """

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.task = task
        self.register_buffer("damping", torch.ones(2))
        self.damping: Tensor

    def fit_closed_form(self, data: TrainingData) -> None:
        def error(dampings: tuple[float, ...]) -> float:
            user, item = dampings
            found = damped_biases(data.graph, user, item).of(*data.validation)
            return float((found - data.validation_targets).square().mean())

        self.damping.copy_(torch.tensor(min(itertools.product(DAMPINGS, repeat=2), key=error)))

    def biases(self, graph: InteractionGraph) -> Biases:
        user, item = self.damping.tolist()
        return damped_biases(graph, user, item)

    def forward(
        self, graph: InteractionGraph, pairs: Pairs, content: Content
    ) -> Float[Tensor, " pair"]:
        return raw_of(self.biases(graph).of(pairs.users, pairs.items), self.task)


class NeighbourConfig(BuildsModel):
    """Biases, plus what the user gave to similar items."""

    kind: Literal["neighbours"] = "neighbours"
    most: int = Field(
        60,
        ge=1,
        description="similar items kept per item",
        json_schema_extra=searched_among(10, 20, 40, 60, 100, 200),
    )

    def build(
        self, task: Task, n_users: int, n_items: int, dims: Mapping[str, int], seed: int
    ) -> nn.Module:
        return NeighbourModel(task, self.most)


class NeighbourModel(nn.Module):
    """Who liked this liked that.

    value = biases + sum over j of s_mj r_uj / (sum over j of s_mj + damping), where j runs over
    those of item m's most similar items that the user rated, r are what biases leave, and
    s_mj = r_m . r_j / (|r_m| |r_j| + shrinkage), if above 0.
    Shrinkage and damping are chosen on the validation part.
    """

    shrinkages = (5.0, 20.0, 80.0)
    dampings = (0.3, 1.0, 3.0, 10.0)

    def __init__(self, task: Task, most: int) -> None:
        super().__init__()
        self.task, self.most = task, most
        self.bias = BiasModel(task)
        self.register_buffer("settings", torch.ones(2))
        self.settings: Tensor

    def fit_closed_form(self, data: TrainingData) -> None:
        self.bias.fit_closed_form(data)
        errors = {}
        for shrinkage in self.shrinkages:
            near, similar = self._near(data.graph, data.validation, shrinkage)
            base = self.bias.biases(data.graph).of(*data.validation)
            for damping in self.dampings:
                found = base + near / (similar + damping)
                error = (found - data.validation_targets).square().mean()
                errors[shrinkage, damping] = float(error)
        self.settings.copy_(torch.tensor(min(errors, key=lambda key: errors[key])))

    def forward(
        self, graph: InteractionGraph, pairs: Pairs, content: Content
    ) -> Float[Tensor, " pair"]:
        shrinkage, damping = self.settings.tolist()
        near, similar = self._near(graph, pairs, shrinkage)
        base = self.bias.biases(graph).of(pairs.users, pairs.items)
        return raw_of(base + near / (similar + damping), self.task)

    def _near(
        self, graph: InteractionGraph, pairs: Pairs, shrinkage: float
    ) -> tuple[Float[Tensor, " pair"], Float[Tensor, " pair"]]:
        """Per pair, the weighted sum of the user's residuals on similar items, and of weights."""
        residuals = graph.values - self.bias.biases(graph).of(graph.users, graph.items)
        shape = (graph.n_users, graph.n_items)
        given = SparseMatrix(graph.users, graph.items, residuals, shape)
        seen = SparseMatrix(graph.users, graph.items, torch.ones_like(residuals), shape)
        squares = residuals.new_zeros(graph.n_items).index_add(0, graph.items, residuals.square())
        near, similar = residuals.new_zeros(2, len(pairs.users))
        order = torch.argsort(pairs.items, stable=True)
        for first in range(0, graph.n_items, CHUNK):
            items = torch.arange(first, min(first + CHUNK, graph.n_items))
            ends = torch.tensor([first, first + len(items)])
            low, high = torch.searchsorted(pairs.items[order], ends).tolist()
            if low == high:
                continue
            weights = self._similar(graph, given, squares.sqrt(), items, shrinkage)
            rows = order[low:high]
            users, columns = pairs.users[rows], pairs.items[rows] - first
            near[rows] = (given @ weights)[users, columns]
            similar[rows] = (seen @ weights)[users, columns]
        return near, similar

    def _similar(
        self,
        graph: InteractionGraph,
        given: SparseMatrix,
        norms: Tensor,
        items: Tensor,
        shrinkage: float,
    ) -> Float[Tensor, "other item"]:
        """Similarities of some items (columns) to all; zero beyond each one's most similar."""
        wanted = (graph.items >= items[0]) & (graph.items <= items[-1])
        columns = norms.new_zeros(graph.n_users, len(items))
        rest = graph.values - self.bias.biases(graph).of(graph.users, graph.items)
        columns[graph.users[wanted], graph.items[wanted] - items[0]] = rest[wanted]
        products = given.backward_csr @ columns
        found = products / (norms[:, None] * norms[items] + shrinkage * self._unit(rest))
        found[items, torch.arange(len(items))] = 0.0
        best = found.clamp(min=0).topk(min(self.most, len(found)), dim=0)
        return torch.zeros_like(found).scatter(0, best.indices, best.values)

    def _unit(self, residuals: Tensor) -> Tensor:
        """The variance of residuals, so that a shrinkage counts users whatever the scale."""
        return residuals.square().mean() if len(residuals) else residuals.new_ones(())
