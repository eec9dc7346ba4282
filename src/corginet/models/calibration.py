"""How much each member is trusted, and what makes the average mean what it says."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from corginet.data.task import Task
from corginet.models.values import loss_of

TRUST = 20.0  # validation pairs that 'leave everything as it is' counts for


class Calibration(NamedTuple):
    """Weights of the members, which add up to 1, and a scale and a shift of their average."""

    weights: Float[Tensor, " member"]
    line: Float[Tensor, 2]


def fit_calibration(
    raw: Float[Tensor, "member pair"], targets: Float[Tensor, " pair"], task: Task
) -> Calibration:
    """The weights, scale and shift with the least validation loss, drawn towards equal, 1 and 0.

    Source: stacking with convex weights; Platt scaling of logits, and for numbers a line.
    """
    raw, targets = raw.double(), targets.double()
    start = torch.cat([raw.new_zeros(len(raw)), raw.new_tensor([1.0, 0.0])])
    found = start.clone().requires_grad_()
    optimizer = torch.optim.LBFGS([found], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        average = found[:-2].softmax(0) @ raw
        drawn = TRUST / max(1, len(targets)) * (found - start).square().sum()
        total = loss_of(found[-2] * average + found[-1], targets, task) + drawn
        total.backward()
        return total

    optimizer.step(loss)
    best = found.detach()
    if not best.isfinite().all() or best[-2] <= 0:
        best = start
    return Calibration(best[:-2].softmax(0).float(), best[-2:].float())
