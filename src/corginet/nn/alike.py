"""Items hear from items whose texts are alike: what is known of those is known of these."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from corginet.config import Config, searched_among
from corginet.data.graph import InteractionGraph
from corginet.nn.content import Content
from corginet.nn.sparse import SparseMatrix

SHARPNESS = 8.0  # of the kernel: texts at a cosine of 0.7 count a tenth of equal ones
DAMPING = 5.0  # observed values at which an item is half heard
CHUNK = 2**24  # cosines held at a time

NodeStates = Float[Tensor, "node channel"]


class AlikeConfig(Config):
    """Messages between items by their texts."""

    alike: int = Field(
        0,
        ge=0,
        le=4096,
        description="items with the most similar texts that an item hears from; 0 leaves it out",
        json_schema_extra=searched_among(0, 20, 50, 100),
    )

    def build(self, channels: int, n_layers: int, summary: str | None) -> Alike:
        if not self.alike or summary in (None, "bow"):
            return Alike()
        return AlikeTexts(channels, n_layers + 1, self.alike, summary)


class Alike(nn.Module):
    """Items hear from users alone."""

    def start(self, graph: InteractionGraph, content: Content) -> None:
        """Prepare for one pass over the layers."""

    def forward(self, layer: int, states: NodeStates, n_users: int) -> NodeStates:
        return states


class AlikeTexts(Alike):
    """Let what is known of an item speak for those that read like it, new ones above all.

    h_m = relu(h_m + V_l mean over j of w_mj h_j), before the first layer and after each, with
    w_mj = exp(8 (cos(text_m, text_j) - 1)) d_j / (d_j + 5) over the most similar items j other
    than m, d_j the observed values of j: kernel regression on texts, of whole states.
    An item without a text, or like nothing observed, keeps its state.
    """

    def __init__(self, channels: int, n_places: int, n_alike: int, summary: str) -> None:
        super().__init__()
        self.n_alike, self.summary = n_alike, summary
        places = [nn.Linear(channels, channels, bias=False) for _ in range(n_places)]
        for place in places:
            nn.init.zeros_(place.weight)  # learned only where it helps
        self.hear = nn.ModuleList(places)

    def start(self, graph: InteractionGraph, content: Content) -> None:
        near = nearest_texts(content, self.summary, self.n_alike)
        degrees = graph.degrees[graph.n_users :].to(near.weights.dtype)
        weights = near.weights * (degrees / (degrees + DAMPING))[near.others]
        total = weights.new_zeros(graph.n_items).index_add(0, near.items, weights)
        mean = weights / total.clamp(min=1e-9)[near.items]
        shape = (graph.n_items, graph.n_items)
        self.matrix = SparseMatrix(near.items, near.others, mean, shape)

    def forward(self, layer: int, states: NodeStates, n_users: int) -> NodeStates:
        items = states[n_users:]
        heard = torch.relu(items + self.hear[layer](self.matrix @ items))
        return torch.cat([states[:n_users], heard])


class Nearest(NamedTuple):
    """Per item its most similar others, with the kernel's weights."""

    items: Int[Tensor, " entry"]
    others: Int[Tensor, " entry"]
    weights: Float[Tensor, " entry"]


_found: WeakKeyDictionary[Content, dict[tuple[str, int], Nearest]] = WeakKeyDictionary()


def nearest_texts(content: Content, summary: str, n: int) -> Nearest:
    """By cosine of the whole-text vectors; found once per content, whatever model asks."""
    found = _found.setdefault(content, {})
    if (summary, n) not in found:
        found[summary, n] = _nearest(content.summaries[summary].detach(), n)
    return found[summary, n]


def _nearest(vectors: Float[Tensor, "item dim"], n: int) -> Nearest:
    length = vectors.norm(dim=1)
    present = torch.nonzero(length > 0).flatten()
    unit = vectors[present] / length[present, None]
    n = min(n, len(present) - 1)
    if n < 1:
        none = torch.zeros(0, dtype=torch.long)
        return Nearest(none, none, vectors.new_zeros(0))
    cosines, places = [], []
    for rows in torch.arange(len(unit)).split(max(1, CHUNK // len(unit))):
        part = unit[rows] @ unit.t()
        part[torch.arange(len(rows)), rows] = -torch.inf  # an item does not hear itself
        best = part.topk(n, dim=1)
        cosines.append(best.values)
        places.append(best.indices)
    weights = (SHARPNESS * (torch.cat(cosines) - 1)).exp()
    items = present.repeat_interleave(n)
    return Nearest(items, present[torch.cat(places).flatten()], weights.flatten())
