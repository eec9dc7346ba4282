"""From the states after each layer to the final ones."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from corginet.config import Config

Layers = list[Float[Tensor, "node channel"]]


class LayersConfig(Config):
    """Which layers' states the readout sees."""

    final: Literal["last", "mean", "lstm"] = Field(
        "last",
        description="the last layer's states; the mean over the layers and the start (LightGCN); "
        "a mix of the layers that each node chooses by an LSTM (JK)",
    )

    def build(self, channels: int, n_layers: int) -> nn.Module:
        if self.final == "last":
            return LastLayer()
        return MeanOfLayers() if self.final == "mean" else LstmOfLayers(channels, n_layers)


class LastLayer(nn.Module):
    """The states after the last layer."""

    def forward(self, layers: Layers) -> Float[Tensor, "node channel"]:
        return layers[-1]


class MeanOfLayers(nn.Module):
    """The average over all layers, the initial states included.  Source: LightGCN."""

    def forward(self, layers: Layers) -> Float[Tensor, "node channel"]:
        return torch.stack(layers).mean(0)


class LstmOfLayers(nn.Module):
    """Let each node choose how far it looks.

    A bidirectional LSTM reads the node's states layer by layer; a softmax over its outputs
    weighs the layers' states. The initial states are not among them.  Source: JK-LSTM.
    """

    def __init__(self, channels: int, n_layers: int) -> None:
        super().__init__()
        hidden = max(1, n_layers * channels // 2)
        self.lstm = nn.LSTM(channels, hidden, bidirectional=True, batch_first=True)
        self.score = nn.Linear(2 * hidden, 1)

    def forward(self, layers: Layers) -> Float[Tensor, "node channel"]:
        states = torch.stack(layers[1:], dim=1)
        weights = self.score(self.lstm(states)[0]).softmax(1)
        mixed: Tensor = (states * weights).sum(1)
        return mixed
