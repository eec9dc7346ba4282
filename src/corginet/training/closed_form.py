"""Models that are computed, not trained step by step."""

from __future__ import annotations

import time
from typing import Protocol, runtime_checkable

from torch import nn

from corginet.training.trainer import Fitted, TrainingData, validation_loss


@runtime_checkable
class ClosedForm(Protocol):
    """A module that learns everything at once, and is called like any other afterwards.

    It keeps what it learned in buffers, so that it is saved and loaded as weights are. It may
    look at the validation values to choose its settings, as early stopping does.
    """

    def fit_closed_form(self, data: TrainingData) -> None: ...


def fit_at_once(model: nn.Module, data: TrainingData) -> Fitted:
    """The counterpart of the training loop: one look at the data, one row of history."""
    assert isinstance(model, ClosedForm)
    started = time.perf_counter()
    model.fit_closed_form(data)
    loss = validation_loss(model, data)
    row = {"epoch": 1, "validation_loss": loss, "seconds": time.perf_counter() - started}
    return Fitted(best_epoch=1, epochs=1, best_loss=loss, history=[row])
