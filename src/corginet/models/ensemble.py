"""Several networks of one kind, averaged, and calibrated on the validation part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from corginet.data.graph import InteractionGraph
from corginet.data.task import Task
from corginet.models.calibration import fit_calibration
from corginet.models.graph_model import GraphModel, GraphModelConfig
from corginet.models.parts import BuildsModel
from corginet.nn.components import NAME, TextComponents
from corginet.nn.content import Content
from corginet.nn.conv_taste import TasteConfig
from corginet.nn.readout import Pairs

if TYPE_CHECKING:
    from corginet.training.trainer import TrainingData


class EnsembleConfig(BuildsModel):
    """Networks that start from different weights and see different hidden edges."""

    kind: Literal["ensemble"] = "ensemble"
    members: int = Field(3, ge=1, le=64, description="networks that are averaged")
    components: int = Field(
        64, ge=1, le=1024, description="directions kept of the texts' meaning, and of their stems"
    )
    dropout_spread: float = Field(
        0.75,
        ge=0,
        lt=1,
        description="members' state dropout goes from (1 - this) to (1 + this) times the one set",
    )
    member: GraphModelConfig = GraphModelConfig()

    @property
    def reads_words(self) -> bool:
        return self.member.reads_words

    @property
    def reads_components(self) -> bool:
        return self.member.states.summary == NAME

    @property
    def summaries(self) -> tuple[str, ...]:
        return ("average",) if self.reads_components else self.member.summaries

    @property
    def reads_stems(self) -> bool:
        return self.reads_components or self.member.reads_stems

    def build(
        self, task: Task, n_users: int, n_items: int, dims: Mapping[str, int], seed: int
    ) -> Ensemble:
        components = None
        if self.reads_components:
            components = TextComponents(dims["average"], dims["bow"], self.components)
            dims = {**dims, NAME: components.width}
        members = [
            self._varied(number).build(task, n_users, n_items, dims, seed + number)
            for number in range(self.members)
        ]
        return Ensemble(task, members, components)

    def _varied(self, number: int) -> GraphModelConfig:
        """A member's config: data differ in how much dropout they want, so members do too."""
        conv = self.member.conv
        if not isinstance(conv, TasteConfig) or self.members == 1:
            return self.member
        place = 2 * number / (self.members - 1) - 1
        rate = min(0.9, conv.state_dropout * (1 + place * self.dropout_spread))
        varied = conv.model_copy(update={"state_dropout": rate})
        return self.member.model_copy(update={"conv": varied})


class Ensemble(nn.Module):
    """Average what several networks say; each learns in its turn, from its own hidden edges.

    In training a call asks the member whose turn it is; an epoch gives each a turn, and early
    stopping watches the average. raw = scale * (sum over k of weight_k * raw_k) + shift; weights,
    scale and shift are set on the validation part.
    """

    def __init__(
        self, task: Task, members: list[GraphModel], components: TextComponents | None
    ) -> None:
        super().__init__()
        self.task, self.components = task, components
        self.members = nn.ModuleList(members)
        self.register_buffer("turn", torch.zeros((), dtype=torch.long))
        self.register_buffer("weights", torch.full((len(members),), 1 / len(members)))
        self.register_buffer("line", torch.tensor([1.0, 0.0]))
        self.turn: Tensor
        self.weights: Tensor
        self.line: Tensor
        self._read: WeakKeyDictionary[Content, Content] = WeakKeyDictionary()

    @property
    def n_turns(self) -> int:
        """Steps of an epoch: one per member."""
        return len(self.members)

    def prepare(self, content: Content) -> None:
        """Learn what follows from the texts alone."""
        if self.components is not None:
            self.components.fit(content)

    def forward(
        self, graph: InteractionGraph, pairs: Pairs, content: Content
    ) -> Float[Tensor, " pair"]:
        content = self.read(content)
        if self.training:
            member = self.members[int(self.turn) % self.n_turns]
            self.turn += 1
            learned: Tensor = member(graph, pairs, content)
            return learned
        scale, shift = self.line
        return scale * (self.weights @ self.each(graph, pairs, content)) + shift

    def each(
        self, graph: InteractionGraph, pairs: Pairs, content: Content
    ) -> Float[Tensor, "member pair"]:
        """What every member says."""
        return torch.stack([member(graph, pairs, content) for member in self.members])

    def read(self, content: Content) -> Content:
        """The content with the texts' components, made once per content."""
        if self.components is None or NAME in content.summaries:
            return content
        if content not in self._read:
            self._read[content] = self.components(content)
        return self._read[content]

    def graph_models(self) -> Iterator[GraphModel]:
        for member in self.members:
            assert isinstance(member, GraphModel)
            yield member

    @torch.no_grad()
    def calibrate(self, data: TrainingData) -> None:
        """Set weights, scale and shift of all that follows, on the validation part."""
        self.eval()
        raw = self.each(data.graph, data.validation, self.read(data.content))
        with torch.enable_grad():
            found = fit_calibration(raw, data.validation_targets, self.task)
        self.weights.copy_(found.weights)
        self.line.copy_(found.line)
