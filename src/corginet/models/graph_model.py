"""GraphModel: initial states, convolutions, content, readout; it composes, and decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from pydantic import Field, model_validator
from torch import Tensor, nn

from corginet.config import searched_among
from corginet.data.graph import InteractionGraph
from corginet.data.task import Task
from corginet.models.parts import BuildsModel
from corginet.models.residuals import ReadingResiduals, ResidualValues
from corginet.models.values import HideValues, ReadValues, ValuesInput
from corginet.nn.alike import Source
from corginet.nn.content import Content
from corginet.nn.conv_gat import GatConfig
from corginet.nn.conv_linear import GcmcConfig, GinConfig, LightGcnConfig, SageConfig
from corginet.nn.conv_taste import TasteConfig
from corginet.nn.convs import EdgeStateConfig, GcnConfig
from corginet.nn.edge_content import AlongEdges, AlongEdgesConfig
from corginet.nn.kindred import Kindred, KinReading, Scope
from corginet.nn.layers import LayersConfig
from corginet.nn.readout import Pairs, Readout, ReadoutConfig
from corginet.nn.states import StatesConfig
from corginet.nn.word_nodes import Nodes, NodesConfig

ConvConfig = Annotated[
    EdgeStateConfig
    | GcnConfig
    | SageConfig
    | GatConfig
    | GinConfig
    | GcmcConfig
    | LightGcnConfig
    | TasteConfig,
    Field(discriminator="kind"),
]


Values = ReadValues | HideValues | ResidualValues


def build_values(config: GraphModelConfig, task: Task, scope: Scope) -> Values:
    """How values enter; without a text to lean on, residuals are plain ones."""
    kinds: dict[str, Callable[[Task], Values]] = {"read": ReadValues, "hidden": HideValues}
    if config.values in kinds:
        return kinds[config.values](task)
    tellers = [Kindred(scope)] if config.kindred else []
    if scope.source is None:
        return ResidualValues(task, tellers)
    return ReadingResiduals(task, scope.source, tellers)


class GraphModelConfig(BuildsModel):
    """A graph network: its width and depth, and the config of each part."""

    kind: Literal["graph"] = "graph"
    channels: int = Field(
        64,
        ge=1,
        le=4096,
        description="width of node and edge states",
        json_schema_extra=searched_among(16, 32, 64),
    )
    n_layers: int = Field(
        3,
        ge=0,
        le=16,
        description="message-passing layers",
        json_schema_extra=searched_among(1, 2, 3),
    )
    edge_dropout: float = Field(0.0, ge=0, lt=1, description="share of edges left out per step")
    values: ValuesInput = Field(
        "read",
        description="observed values as an input: read; hidden; or residuals, what biases leave "
        "of them, which outputs are then laid over; or reading_residuals, with biases that lean on "
        "alike texts",
    )
    kindred: bool = Field(
        False,
        description="outputs also lean on kin: items judged alike, users who judge alike, items "
        "that the same users met or whose texts are alike (with residuals)",
    )
    states: StatesConfig = StatesConfig()
    nodes: NodesConfig = NodesConfig()
    conv: ConvConfig = EdgeStateConfig()
    along_edges: AlongEdgesConfig = AlongEdgesConfig()
    layers: LayersConfig = LayersConfig()
    readout: ReadoutConfig = ReadoutConfig()

    @model_validator(mode="after")
    def _parts_fit(self) -> GraphModelConfig:
        """A part that another one cannot use is refused, not passed over."""
        if self.along_edges.score is not None and not getattr(self.conv, "carries_content", False):
            raise ValueError(
                f"conv '{self.conv.kind}' carries no content along edges; "
                "take edge_states or gat, or set score to none"
            )
        if self.kindred and not self.values.endswith("residuals"):
            raise ValueError(
                f"kindred leans on residuals, and values are '{self.values}'; "
                "set kindred to false, or values to residuals"
            )
        return self

    @property
    def reads_words(self) -> bool:
        return self.along_edges.score is not None or self.readout.pair_score is not None

    @property
    def summaries(self) -> tuple[str, ...]:
        summary = self.states.summary
        return (summary,) if summary and summary != "bow" else ()

    @property
    def reads_stems(self) -> bool:
        return self.nodes.word_nodes or self.states.summary == "bow"

    def source(self, n_users: int, n_items: int) -> Source | None:
        """The texts' vectors that values lean on; none where they lean on none."""
        summary = self.states.summary
        if self.values != "reading_residuals" or summary in (None, "bow"):
            return None
        return Source(str(summary), n_items, n_users)

    def build(
        self, task: Task, n_users: int, n_items: int, dims: Mapping[str, int], seed: int
    ) -> GraphModel:
        """dims holds the width of the words and of each summary."""
        scope = Scope.of(n_users, n_items, self.source(n_users, n_items))
        views = [KinReading(self.readout.hidden, scope)] if self.kindred else []
        return GraphModel(
            task,
            build_values(self, task, scope),
            self.states.build(n_users, n_items, self.channels, dims, seed),
            self.nodes.build(self.channels, dims, seed),
            [self.conv.build(self.channels) for _ in range(self.n_layers)],
            self.along_edges.build(dims.get("words", 0), self.channels, self.n_layers),
            self.layers.build(self.channels, self.n_layers),
            self.readout.build(self.channels, dims.get("words", 0), views),
            self.edge_dropout,
        )


class GraphModel(nn.Module):
    """Predict pairs from the observed graph and the items' content.

    The pairs' own values are no argument of the call, so they cannot be used.
    """

    def __init__(
        self,
        task: Task,
        values: Values,
        states: nn.Module,
        nodes: Nodes,
        convs: list[nn.Module],
        along_edges: AlongEdges,
        final: nn.Module,
        readout: Readout,
        edge_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.task, self.edge_dropout = task, edge_dropout
        self.values, self.states, self.nodes = values, states, nodes
        self.convs = nn.ModuleList(convs)
        self.along_edges, self.final, self.readout = along_edges, final, readout

    def forward(
        self, graph: InteractionGraph, pairs: Pairs, content: Content
    ) -> Float[Tensor, " pair"]:
        """Raw outputs: logits, or values before they are clipped to their bounds."""
        states = self.node_states(graph, content)
        raw: Tensor = self.readout(graph, states, pairs, content)
        return self.values.output(raw, graph, pairs, content)

    def node_states(
        self, graph: InteractionGraph, content: Content
    ) -> Float[Tensor, "node channel"]:
        """Final states of all users and items."""
        graph = self._dropped(self.values(graph, content))
        if self.along_edges.n_passes == 2 and (graph.key is None or not self.training):
            with torch.no_grad():
                self._propagate(graph, content, first_pass=True)
            return self._propagate(graph, content, first_pass=False)
        return self._propagate(graph, content, first_pass=True)

    def _propagate(self, graph: InteractionGraph, content: Content, first_pass: bool) -> Tensor:
        joined, start = self.nodes.join(graph, self.states(graph, content), content)
        self.along_edges.start(joined, content.words, first_pass)
        layers: list[Tensor] = [start]
        for layer, conv in enumerate(self.convs):
            states = layers[-1]
            content_at = self.along_edges.at(layer, states[: joined.n_users])
            layers.append(conv(joined, states, content_at))
        return self.nodes.leave(graph, self.final(layers))

    def _dropped(self, graph: InteractionGraph) -> InteractionGraph:
        if not self.training or not self.edge_dropout:
            return graph
        return graph.keep(torch.rand(len(graph)) >= self.edge_dropout, graph.key)
