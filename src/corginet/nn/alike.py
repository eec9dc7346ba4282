"""Items whose texts are alike: what is known of the one says something of the other."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float, Int
from torch import Tensor

from corginet.data.graph import InteractionGraph
from corginet.nn.content import Content

SHARPNESS = 8.0  # of the kernel: texts at a cosine of 0.7 count a tenth of equal ones
DAMPING = 5.0  # observed values at which an item is half heard
FAINT = 1e-3  # a smaller sum of weights says less than a mean
CHUNK = 2**24  # cosines held at a time


def text_means(
    numbers: Float[Tensor, " item"],
    graph: InteractionGraph,
    content: Content,
    summary: str,
    n_alike: int,
) -> Float[Tensor, " item"]:
    """Per item, the mean of the numbers of the observed items that read most like it.

    mean over j of w_mj x_j, w_mj = exp(8 (cos(text_m, text_j) - 1)) d_j / (d_j + 5) over the most
    similar items j other than m, d_j the observed values of j. An item without a text, or like
    nothing observed, gets 0.  Source: kernel regression (Nadaraya, Watson).
    """
    near = nearest_texts(content, summary, n_alike)
    degrees = graph.degrees[graph.n_users :].to(near.weights.dtype)
    weights = near.weights * (degrees / (degrees + DAMPING))[near.others]
    sums = (weights * numbers.take(near.others)).sum(1)
    means = sums / weights.sum(1).clamp(min=FAINT)
    return torch.zeros_like(numbers).index_copy(0, near.items, means.to(numbers.dtype))


class Nearest(NamedTuple):
    """The items with a text, and the most similar others of each, with the kernel's weights."""

    items: Int[Tensor, " present"]
    others: Int[Tensor, "present other"]
    weights: Float[Tensor, "present other"]


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
        none = torch.zeros(0, 0, dtype=torch.long)
        return Nearest(none.flatten(), none, vectors.new_zeros(0, 0))
    cosines, places = [], []
    for rows in torch.arange(len(unit)).split(max(1, CHUNK // len(unit))):
        part = unit[rows] @ unit.t()
        part[torch.arange(len(rows)), rows] = -torch.inf  # an item does not hear itself
        best = part.topk(n, dim=1)
        cosines.append(best.values)
        places.append(best.indices)
    weights = (SHARPNESS * (torch.cat(cosines) - 1)).exp()
    return Nearest(present, present[torch.cat(places)], weights)
