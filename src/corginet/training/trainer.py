"""The one training loop."""

from __future__ import annotations

import copy
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from corginet.config import Config, searched
from corginet.data.graph import InteractionGraph
from corginet.data.task import Task
from corginet.errors import UserError
from corginet.models.values import loss_of, penalty_of, to_values
from corginet.nn.content import Content
from corginet.nn.readout import Pairs
from corginet.runtime import keep_memory
from corginet.training.averaging import AveragedWeights
from corginet.training.checkpoint import read_checkpoint, write_checkpoint
from corginet.training.observation import BatchConfig, ObservationConfig, Step


class TrainingConfig(Config):
    """The training loop."""

    epochs: int = Field(1000, ge=1, description="passes over the training data, at most")
    learning_rate: float = Field(
        1e-2,
        gt=0,
        le=10,
        description="step size at the start",
        json_schema_extra=searched(1e-3, 3e-2, log=True),
    )
    schedule: Literal["constant", "cosine"] = Field(
        "constant",
        description="the step size over the epochs: constant, or falling to 0 along a cosine",
    )
    optimizer: Literal["adam", "adamw"] = Field("adam", description="kind of optimiser")
    weight_decay: float = Field(0.0, ge=0, le=10, description="shrinkage of the weights")
    averaging: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="weights are averaged over epochs: the share of the average that each keeps",
    )
    patience: int = Field(40, ge=1, description="epochs without a better validation loss to stop")
    good_enough: float = Field(0.0, ge=0, description="validation loss at which to stop")
    validate_every: int = Field(1, ge=1, description="epochs between looks at the validation part")
    checkpoint_every: int = Field(20, ge=1, description="epochs between checkpoints")


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What training may look at: the training graph, the validation pairs, the texts."""

    graph: InteractionGraph
    validation: Pairs
    validation_targets: Tensor
    content: Content
    task: Task


@dataclass
class Progress:
    """Where training is; sent to whoever listens, once per epoch."""

    epoch: int
    epochs: int
    train_loss: float
    validation_loss: float | None
    best_epoch: int
    seconds_left: float


@dataclass
class Fitted:
    """What training found out; the model holds the best weights."""

    best_epoch: int
    epochs: int
    best_loss: float
    history: list[dict[str, float]] = field(default_factory=list)


class Interrupted(Exception):  # noqa: N818 - not an error
    """Stopped by the user at the end of a step, with a checkpoint written."""


class Trainer:
    """Fit a model, keep its best weights, stop when the validation loss no longer falls."""

    def __init__(
        self,
        config: TrainingConfig,
        observation: ObservationConfig,
        batches: BatchConfig,
        seed: int,
        listen: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        self.config, self.batches, self.listen = config, batches, listen
        self.policy = observation.build()
        self.rng = np.random.default_rng(seed)

    def fit(self, model: nn.Module, data: TrainingData, checkpoint: Path | None = None) -> Fitted:
        """Train from the start, or from the checkpoint where there is one."""
        keep_memory()
        optimizer = self._optimizer(model)
        state = Fitted(best_epoch=0, epochs=0, best_loss=math.inf)
        best = copy.deepcopy(model.state_dict())
        average = AveragedWeights(model, self.config.averaging)
        if checkpoint and checkpoint.exists():
            best = read_checkpoint(checkpoint, model, optimizer, self.rng, state, average)
        started, first = time.perf_counter(), state.epochs
        with _stop_requests() as stop_wanted:
            while not self._finished(state):
                self._epoch(model, optimizer, data, state, average)
                if state.best_epoch == state.epochs:
                    with average.inside(model):
                        best = copy.deepcopy(model.state_dict())
                due = state.epochs % self.config.checkpoint_every == 0 or stop_wanted.is_set()
                if checkpoint and due:
                    write_checkpoint(checkpoint, model, optimizer, self.rng, state, best, average)
                if stop_wanted.is_set():
                    raise Interrupted(f"stopped after epoch {state.epochs}")
                self._tell(state, (time.perf_counter() - started) / (state.epochs - first))
        model.load_state_dict(best)
        model.eval()
        return state

    def _finished(self, state: Fitted) -> bool:
        waited = state.epochs - state.best_epoch
        done = state.epochs >= self.config.epochs or waited >= self.config.patience
        return done or state.best_loss < self.config.good_enough

    def _epoch(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        data: TrainingData,
        state: Fitted,
        average: AveragedWeights,
    ) -> None:
        started = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = self._learning_rate(state.epochs)
        losses = [
            self._step(model, optimizer, step, data, state.epochs + 1)
            for step in self._steps(data, state.epochs, getattr(model, "n_turns", 1))
        ]
        state.epochs += 1
        average.update(model)
        row = {"epoch": state.epochs, "train_loss": float(np.mean(losses))}
        if state.epochs % self.config.validate_every == 0 or state.epochs == self.config.epochs:
            with average.inside(model):
                row["validation_loss"] = validation_loss(model, data)
            self._check(row["validation_loss"], state.epochs)
            if row["validation_loss"] < state.best_loss:
                state.best_loss, state.best_epoch = row["validation_loss"], state.epochs
        row["seconds"] = time.perf_counter() - started
        state.history.append(row)

    def _steps(self, data: TrainingData, epoch: int, n_turns: int) -> Iterator[Step]:
        """Networks that take turns get the same hidden edges, and share what follows from them."""
        step = self.policy.step(data.graph, epoch, self.rng)
        for _ in range(n_turns):
            yield from self.batches.batches(step, self.rng)

    def _step(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        step: Step,
        data: TrainingData,
        epoch: int,
    ) -> float:
        model.train()
        optimizer.zero_grad(set_to_none=True)
        raw = model(step.graph, step.pairs, content_of(data.content, step.graph))
        loss = loss_of(raw, step.targets, data.task) + penalty_of(model)
        self._check(float(loss.detach()), epoch)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    def _check(self, loss: float, epoch: int) -> None:
        if not math.isfinite(loss):
            raise UserError(
                f"the loss became {loss} in epoch {epoch}; lower --learning-rate "
                f"(now {self.config.learning_rate:g}) and check the values for outliers"
            )

    def _learning_rate(self, epoch: int) -> float:
        """It follows from the epoch alone, so that a resumed fit goes on as it would have."""
        c = self.config
        if c.schedule == "constant":
            return c.learning_rate
        return c.learning_rate * 0.5 * (1 + math.cos(math.pi * epoch / c.epochs))

    def _optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """AdamW shrinks matrices alone: a damping or a bias has no reason to be near 0."""
        rate, decay = self.config.learning_rate, self.config.weight_decay
        if self.config.optimizer == "adam":
            return torch.optim.Adam(model.parameters(), rate, weight_decay=decay)
        groups: list[dict[str, Any]] = [
            {"params": [p for p in model.parameters() if p.dim() > 1]},
            {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW([g for g in groups if g["params"]], rate, weight_decay=decay)

    def _tell(self, state: Fitted, seconds: float) -> None:
        row = state.history[-1]
        # early stopping usually ends it: the time left is to the sooner of both ends, if
        # nothing improves from here
        left = min(
            self.config.epochs - state.epochs,
            self.config.patience - (state.epochs - state.best_epoch),
        )
        self.listen(
            Progress(
                state.epochs,
                self.config.epochs,
                row["train_loss"],
                row.get("validation_loss"),
                state.best_epoch,
                left * seconds,
            )
        )


def content_of(content: Content, graph: InteractionGraph) -> Content:
    """The content of the graph's own items: all of it unless the graph is a sample."""
    if len(graph.item_rows) == len(content.words.counts):
        return content
    return content.for_items(graph.item_rows)


@torch.no_grad()
def predict_raw(
    model: nn.Module, graph: InteractionGraph, pairs: Pairs, content: Content
) -> Tensor:
    """Raw outputs in evaluation mode."""
    model.eval()
    raw: Tensor = model(graph, pairs, content_of(content, graph))
    return raw


def validation_loss(model: nn.Module, data: TrainingData) -> float:
    """The loss on the validation part, predictions clipped as users see them."""
    raw = predict_raw(model, data.graph, data.validation, data.content)
    clipped = raw if data.task.binary else to_values(raw, data.task)
    return float(loss_of(clipped, data.validation_targets, data.task))


@contextmanager
def _stop_requests() -> Iterator[threading.Event]:
    """Ctrl-C asks for a stop at the end of the step; a second one stops at once."""
    wanted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield wanted
        return

    def ask(number: int, frame: Any) -> None:
        if wanted.is_set():
            raise KeyboardInterrupt
        wanted.set()

    before = {s: signal.signal(s, ask) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield wanted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
