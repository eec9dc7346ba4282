"""Look inside a trained model: which words a user's attention falls on."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from corginet.data.graph import InteractionGraph
from corginet.models.ensemble import Ensemble
from corginet.models.graph_model import GraphModel
from corginet.nn.attention import PairBatches
from corginet.nn.content import Content
from corginet.nn.edge_content import AttentionAlongEdges
from corginet.nn.readout import Pairs, WordReading


@torch.no_grad()
def attention_weights(
    model: nn.Module, graph: InteractionGraph, pairs: Pairs, content: Content
) -> dict[str, Float[Tensor, "pair word"]]:
    """Per place where the model attends ('layer 1', …, 'readout'), the pairs' weights on words.

    A pair need not be an edge: the weights are those that its user would give. Words beyond an
    item's own have weight 0.
    """
    model.eval()
    if isinstance(model, Ensemble):
        content = model.read(content)
        each = [attention_weights(m, graph, pairs, content) for m in model.graph_models()]
        return {place: torch.stack([found[place] for found in each]).mean(0) for place in each[0]}
    if not isinstance(model, GraphModel):
        return {}
    batches = PairBatches(pairs.users, pairs.items, content.words)
    out = {}
    along = model.along_edges
    with _watching_users(model) as seen:
        final = model.node_states(graph, content)[: graph.n_users]
    if isinstance(along, AttentionAlongEdges):
        first = along.n_layers - len(along.attentions)
        for place in range(len(along.attentions)):
            users, projected = seen[first + place], along.projected[place]
            found = along.attention(place).weights(users, projected, batches)
            out[f"layer {first + place + 1}"] = _table(found, pairs, content)
    for view in model.readout.views:
        if isinstance(view, WordReading):
            (projected,) = view.project(content.words)
            found = view.attention.weights(final, projected, batches)
            out["readout"] = _table(found, pairs, content)
    return out


class _watching_users:  # noqa: N801 - reads as a context manager
    """The users' states before each layer, of the last pass."""

    def __init__(self, model: GraphModel) -> None:
        self.model, self.seen = model, [torch.empty(0)] * len(model.convs)

    def __enter__(self) -> list[Tensor]:
        self.hooks = [
            conv.register_forward_pre_hook(self._hook(layer))
            for layer, conv in enumerate(self.model.convs)
        ]
        return self.seen

    def _hook(self, layer: int):  # type: ignore[no-untyped-def]
        def note(_: nn.Module, inputs: tuple[InteractionGraph, Tensor]) -> None:
            self.seen[layer] = inputs[1][: inputs[0].n_users]

        return note

    def __exit__(self, *_: object) -> None:
        for hook in self.hooks:
            hook.remove()


def _table(found: list, pairs: Pairs, content: Content) -> Tensor:  # type: ignore[type-arg]
    longest = int(content.words.counts[pairs.items].max()) if len(pairs.items) else 0
    out = torch.zeros(len(pairs.items), max(1, longest))
    for batch, weights in found:
        rows = batch.pairs.flatten()
        out[rows, : weights.shape[2]] = weights.flatten(0, 1).to(out.dtype)
    return out
