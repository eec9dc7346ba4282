"""How values enter a network, and how its raw output becomes a value."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, mse_loss

from corginet.data.graph import InteractionGraph
from corginet.data.task import Task
from corginet.nn.content import Content
from corginet.nn.readout import Pairs

ValuesInput = Literal["read", "hidden", "residuals", "reading_residuals"]


class PlainOutput(nn.Module):
    """A network's output in units of the task's range, laid over one value for all pairs."""

    task: Task

    def offset(self, graph: InteractionGraph) -> Float[Tensor, ""]:
        """The raw output that says 'the average value'."""
        raise NotImplementedError

    def output(
        self, raw: Float[Tensor, " pair"], graph: InteractionGraph, pairs: Pairs, content: Content
    ) -> Float[Tensor, " pair"]:
        return self.offset(graph) + (1.0 if self.task.binary else self.task.scale) * raw


class ReadValues(PlainOutput):
    """Observed values, centred and scaled by the task's bounds; raw outputs start from their mean.

    The mean is that of the edges observed now: a hidden value is not in it.
    """

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.task = task
        self.centre = (task.low + task.high) / 2

    def forward(self, graph: InteractionGraph, content: Content) -> InteractionGraph:
        return graph.with_values((graph.values - self.centre) / self.task.scale)

    def offset(self, graph: InteractionGraph) -> Float[Tensor, ""]:
        if not len(graph):
            return torch.tensor(0.0 if self.task.binary else self.centre)
        if self.task.binary:
            return torch.logit(graph.mean_value.clamp(0.01, 0.99))
        return graph.mean_value


class HideValues(PlainOutput):
    """Who met what is seen, what came of it is not: values only serve as targets."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.task = task
        self.centre = (task.low + task.high) / 2

    def forward(self, graph: InteractionGraph, content: Content) -> InteractionGraph:
        return graph.with_values(torch.zeros_like(graph.values))

    def offset(self, graph: InteractionGraph) -> Float[Tensor, ""]:
        return torch.tensor(0.0 if self.task.binary else self.centre)


def to_values(raw: Float[Tensor, " pair"], task: Task) -> Float[Tensor, " pair"]:
    """Raw outputs as probabilities, or as numbers within the bounds."""
    return raw.sigmoid() if task.binary else raw.clamp(task.low, task.high)


def raw_of(values: Float[Tensor, " pair"], task: Task) -> Float[Tensor, " pair"]:
    """The raw outputs that stand for these values or probabilities."""
    return torch.logit(values.clamp(0.01, 0.99)) if task.binary else values


def penalty_of(model: nn.Module) -> Tensor | float:
    """What a model adds to its own training loss for its last call, by a method `penalty`."""
    penalty = getattr(model, "penalty", None)
    return 0.0 if penalty is None else penalty()


def loss_of(
    raw: Float[Tensor, " pair"], targets: Float[Tensor, " pair"], task: Task
) -> Float[Tensor, ""]:
    """Binary cross entropy, or squared error in units of the range."""
    if task.binary:
        return binary_cross_entropy_with_logits(raw, targets)
    return mse_loss(raw / task.scale, targets / task.scale)
