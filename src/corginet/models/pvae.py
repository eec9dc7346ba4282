"""Partial variational autoencoder: a user as a distribution, inferred from what is observed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from corginet.config import searched
from corginet.data.graph import InteractionGraph
from corginet.data.task import Task
from corginet.models.factors import rows_of
from corginet.models.parts import BuildsModel
from corginet.models.values import ReadValues
from corginet.nn.content import Content
from corginet.nn.readout import Pairs
from corginet.nn.sparse import Incidence, gather

SET_DAMPING = 5.0  # values of 0 that a user's few values are averaged with


class PvaeConfig(BuildsModel):
    """Encode a user's observed values into a latent Gaussian, decode all others (PVAE)."""

    kind: Literal["pvae"] = "pvae"
    channels: int = Field(32, ge=1, le=4096, description="width of the item vectors")
    hidden: int = Field(64, ge=1, le=8192, description="width of the hidden layers")
    n_latent: int = Field(16, ge=1, le=4096, description="size of the latent Gaussian")
    kl_weight: float = Field(
        0.03,
        ge=0,
        description="weight of the divergence from the prior in the loss",
        json_schema_extra=searched(0.01, 3.0, log=True),
    )
    decoder_dropout: float = Field(
        0.1, ge=0, lt=1, description="dropout in the decoder", json_schema_extra=searched(0.0, 0.7)
    )

    def build(
        self, task: Task, n_users: int, n_items: int, dims: Mapping[str, int], seed: int
    ) -> nn.Module:
        encoder = SetEncoder(n_items, self.channels, self.hidden, self.n_latent)
        decoder = Decoder(n_items, self.n_latent, self.hidden, self.decoder_dropout)
        return PartialVae(task, encoder, decoder, self.kl_weight)


class PartialVae(nn.Module):
    """Guess a user's other values, and know how little a few values say.

    (mean, deviation) of z = encoder(set of (item, value)),  raw = decoder(z) at the item.
    In training z is drawn, in evaluation it is the mean. To the loss comes
    kl_weight * (sum over users of KL(z || standard normal)) / n_pairs; 1 is the bound for
    binary values, and twice the residual variance (in units of the range) that for numbers;
    less makes better predictions and a poorer distribution.
    Source: EDDI's partial VAE with the point-net encoder.
    """

    def __init__(self, task: Task, encoder: SetEncoder, decoder: Decoder, kl_weight: float) -> None:
        super().__init__()
        self.task, self.kl_weight, self.values = task, kl_weight, ReadValues(task)
        self.encoder, self.decoder = encoder, decoder
        self.divergence: Tensor = torch.zeros(())

    def forward(
        self, graph: InteractionGraph, pairs: Pairs, content: Content
    ) -> Float[Tensor, " pair"]:
        values = (graph.values - graph.mean_value) / self.task.scale
        mean, log_variance = self.encoder(graph.with_values(values))
        per_user = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(-1)
        self.divergence = per_user.sum() / max(1, len(pairs.users))
        noise = torch.randn_like(mean) * (0.5 * log_variance).exp() if self.training else 0.0
        raw = self.decoder(mean + noise, graph, pairs)
        return self.values.output(raw, graph, pairs, content)

    def penalty(self) -> Tensor:
        """Added to the training loss of the last call."""
        return self.kl_weight * self.divergence


class SetEncoder(nn.Module):
    """A Gaussian from a set of (item, value), whatever its size and order.

    s_um = relu(A e_m + value * B e_m + a_m),  (mean, log variance) = MLP([sum of s / (n + 5),
    log(1 + n)]).  A user without values gets what the empty set says.
    Deviation: sums are divided by n + 5, as evaluation observes more than training.
    """

    def __init__(self, n_items: int, channels: int, hidden: int, n_latent: int) -> None:
        super().__init__()
        self.items = nn.Parameter(torch.randn(n_items, channels) * 0.1)
        self.item_biases = nn.Parameter(torch.zeros(n_items, hidden))
        self.from_item = nn.Linear(channels, hidden)
        self.from_value = nn.Linear(channels, hidden)
        self.mlp = nn.Sequential(
            nn.Linear(hidden + 1, hidden), nn.ReLU(), nn.Linear(hidden, 2 * n_latent)
        )

    def forward(self, graph: InteractionGraph) -> tuple[Tensor, Tensor]:
        items = rows_of(self.items, graph.item_rows)
        start = self.from_item(items) + rows_of(self.item_biases, graph.item_rows)
        slope = self.from_value(items)
        entries = gather(start, graph.items) + graph.values[:, None] * gather(slope, graph.items)
        incidence = Incidence(graph.users, graph.n_users)
        n = incidence.degrees.to(entries.dtype)[:, None]
        sums = incidence.sum(entries.relu()) / (n + SET_DAMPING)
        mean, log_variance = self.mlp(torch.cat([sums, n.log1p()], dim=1)).chunk(2, dim=1)
        return mean, log_variance.clamp(-10, 10)


class Decoder(nn.Module):
    """One hidden layer per user, one output row per item; an item unseen in training has 0."""

    def __init__(self, n_items: int, n_latent: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(n_latent, hidden), nn.ReLU(), nn.Dropout(dropout))
        self.weights = nn.Parameter(torch.randn(n_items, hidden) * 0.1 * hidden**-0.5)
        self.common = nn.Linear(hidden, 1)
        self.biases = nn.Parameter(torch.zeros(n_items))

    def forward(
        self, latent: Float[Tensor, "user latent"], graph: InteractionGraph, pairs: Pairs
    ) -> Float[Tensor, " pair"]:
        hidden: Tensor = self.hidden(latent)
        items = graph.item_rows[pairs.items]
        weights = rows_of(self.weights, items)
        own: Tensor = (hidden.index_select(0, pairs.users) * weights).sum(-1)
        level: Tensor = self.common(hidden)[pairs.users, 0]
        return own + level + rows_of(self.biases, items)
