"""Ridge regression and gradient boosting on pair features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from corginet.config import searched_among
from corginet.data.graph import InteractionGraph
from corginet.data.task import Task
from corginet.errors import UserError
from corginet.models.features import PairFeatures
from corginet.models.parts import BuildsModel
from corginet.models.values import raw_of
from corginet.nn.content import Content
from corginet.nn.readout import Pairs

if TYPE_CHECKING:
    from corginet.training.trainer import TrainingData

SHRINKAGES = tuple(10.0**power for power in range(-2, 5))
BOOSTING = {
    "learning_rate": 0.03,
    "num_leaves": 15,
    "min_data_in_leaf": 50,
    "feature_fraction": 0.5,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 5.0,
    "verbosity": -1,
    "deterministic": True,
    "force_row_wise": True,
}
MOST_TREES = 2000
PATIENCE = 50  # trees without a better validation error to stop


class RegressionConfig(BuildsModel):
    """A plain regression on statistics of both sides and the item's text vector."""

    kind: Literal["regression"] = "regression"
    method: Literal["ridge", "boosting"] = Field("ridge", description="linear, or boosted trees")
    summary: Literal["average", "cls", "sentence"] = Field(
        "average", description="the text vector that is read"
    )
    n_components: int = Field(
        32,
        ge=1,
        le=4096,
        description="principal components kept of it",
        json_schema_extra=searched_among(8, 16, 32, 64, 128),
    )

    @property
    def summaries(self) -> tuple[str, ...]:
        return (self.summary,)

    def build(
        self, task: Task, n_users: int, n_items: int, dims: Mapping[str, int], seed: int
    ) -> nn.Module:
        features = PairFeatures(task, self.summary, dims[self.summary], self.n_components)
        if self.method == "ridge":
            return RidgeModel(task, features)
        return BoostingModel(task, features, seed)


class RidgeModel(nn.Module):
    """value = mean + w . standardised features + b, w shrunk as the validation part asks."""

    def __init__(self, task: Task, features: PairFeatures) -> None:
        super().__init__()
        self.task, self.features = task, features
        self.register_buffer("weights", torch.zeros(features.width + 1))
        self.weights: Tensor

    def fit_closed_form(self, data: TrainingData) -> None:
        self.features.fit(data)
        x, y = (part.double() for part in self.features.out_of_fold(data.graph, data.content))
        shift, scale = x.mean(0), x.std(0).clamp(min=1e-6)
        z = (x - shift) / scale
        asked = (self.features(data.graph, data.validation, data.content).double() - shift) / scale
        wanted = (data.validation_targets - data.graph.mean_value).double()
        gram, moments = z.t() @ z, z.t() @ (y - y.mean())
        best = torch.inf
        for shrinkage in SHRINKAGES:
            w = torch.linalg.solve(gram + shrinkage * torch.eye(len(gram)).to(gram), moments)
            error = float((asked @ w + y.mean() - wanted).square().mean())
            if error < best:
                best, slopes = error, w / scale
                self.weights.copy_(torch.cat([slopes, (y.mean() - shift @ slopes)[None]]))

    def forward(
        self, graph: InteractionGraph, pairs: Pairs, content: Content
    ) -> Float[Tensor, " pair"]:
        x = self.features(graph, pairs, content)
        return raw_of(graph.mean_value + x @ self.weights[:-1] + self.weights[-1], self.task)


class BoostingModel(nn.Module):
    """LightGBM on the same features; early stopping on the validation part.

    The trees are kept as text in a buffer of bytes, so that they are saved like weights.
    """

    def __init__(self, task: Task, features: PairFeatures, seed: int) -> None:
        super().__init__()
        self.task, self.features, self.seed = task, features, seed
        self.register_buffer("trees", torch.zeros(0, dtype=torch.uint8))
        self.trees: Tensor

    def fit_closed_form(self, data: TrainingData) -> None:
        lightgbm = _lightgbm()
        self.features.fit(data)
        x, y = self.features.out_of_fold(data.graph, data.content)
        asked = self.features(data.graph, data.validation, data.content)
        wanted = data.validation_targets - data.graph.mean_value
        settings = {**BOOSTING, "objective": "regression", "seed": self.seed, "num_threads": 1}
        train = lightgbm.Dataset(x.numpy(), y.numpy())
        found = lightgbm.train(
            settings,
            train,
            MOST_TREES,
            [lightgbm.Dataset(asked.numpy(), wanted.numpy(), reference=train)],
            callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
        )
        text = found.model_to_string(num_iteration=found.best_iteration).encode()
        self.trees = torch.from_numpy(np.frombuffer(text, np.uint8).copy())

    def forward(
        self, graph: InteractionGraph, pairs: Pairs, content: Content
    ) -> Float[Tensor, " pair"]:
        x = self.features(graph, pairs, content)
        if not len(x):
            return raw_of(x.new_zeros(0), self.task)
        booster = _lightgbm().Booster(model_str=self.trees.numpy().tobytes().decode())
        rest = torch.from_numpy(booster.predict(x.numpy(), num_threads=1)).to(x)
        return raw_of(graph.mean_value + rest, self.task)

    def _load_from_state_dict(self, state: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        """Trees have the size that they have: make room before they are copied."""
        if prefix + "trees" in state:
            self.trees = torch.empty_like(state[prefix + "trees"])
        super()._load_from_state_dict(state, prefix, *rest)


def _lightgbm() -> Any:
    try:
        import lightgbm
    except ImportError:
        raise UserError(
            "this recipe needs LightGBM; install it with pip install 'corginet[boosting]'"
        ) from None
    return lightgbm
