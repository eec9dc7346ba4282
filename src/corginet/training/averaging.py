"""Weights averaged over the last epochs: what a falling step size brings, at any time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class AveragedWeights:
    """A running mean of a model's parameters, kept beside them.

    average = keep * average + (1 - keep) * weights after every epoch; a shorter memory at the
    start, so that the first weights are soon forgotten. With keep = 0 it is the weights themselves.
    Source: exponential moving averages (Polyak, Ruppert).
    """

    def __init__(self, model: nn.Module, keep: float) -> None:
        self.keep, self.epochs = keep, 0
        self.weights = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """After an epoch."""
        self.epochs += 1
        keep = min(self.keep, self.epochs / (self.epochs + 9))
        for name, weights in model.named_parameters():
            self.weights[name].lerp_(weights, 1 - keep)

    @contextmanager
    def inside(self, model: nn.Module) -> Iterator[None]:
        """The model has the averaged weights in here, and its own again afterwards."""
        self._exchange(model)
        try:
            yield
        finally:
            self._exchange(model)

    @torch.no_grad()
    def _exchange(self, model: nn.Module) -> None:
        for name, weights in model.named_parameters():
            own: Tensor = weights.data
            weights.data = self.weights[name]
            self.weights[name] = own
