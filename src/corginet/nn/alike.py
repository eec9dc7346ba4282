"""Items whose texts are alike: what is known of the one says something of the other."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from corginet.data.graph import InteractionGraph
from corginet.nn.components import MEANING
from corginet.nn.content import Content
from corginet.nn.histories import histories
from corginet.nn.readout import Pairs

SHARPNESS = 8.0  # of the kernel: texts at a cosine of 0.7 count a tenth of equal ones
TASTE_SHARPNESS = 6.0  # of the kernel within one user's items, which are fewer
TABLE = 2**26  # pairs of items up to which all of them are kept
SAMPLED = 1000  # items that typical likeness is measured on
DAMPING = 5.0  # observed values at which an item is half heard
FAINT = 1e-3  # a smaller sum of weights says less than a mean
CHUNK = 2**20  # cosines held at a time


class Source(NamedTuple):
    """Which whole-text vectors are compared, and how many items and users were fitted.

    What came with a question is likened to those, but says nothing of others: a prediction does
    not depend on what else is asked.
    """

    summary: str
    n_items: int
    n_users: int


def by_meaning(content: Content, source: Source) -> Source:
    """What texts mean, without their words, where that is known apart."""
    return source._replace(summary=MEANING) if MEANING in content.summaries else source


def text_means(
    numbers: Float[Tensor, " item"],
    graph: InteractionGraph,
    content: Content,
    source: Source,
    n_alike: int,
) -> Float[Tensor, " item"]:
    """Per item, the mean of the numbers of the observed items that read most like it.

    mean over j of w_mj x_j, w_mj = exp(8 (cos(text_m, text_j) - 1)) d_j / (d_j + 5) over the most
    similar items j other than m, d_j the observed values of j. An item without a text, or like
    nothing observed, gets 0.  Source: kernel regression (Nadaraya, Watson).
    """
    near = nearest_texts(content, source, graph.item_rows < source.n_items, n_alike)
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


_found: WeakKeyDictionary[Content, dict[tuple[Source, int], Nearest]] = WeakKeyDictionary()


def nearest_texts(
    content: Content, source: Source, known: Bool[Tensor, " item"], n: int
) -> Nearest:
    """By cosine of the whole-text vectors; found once per content, whatever model asks."""
    found = _found.setdefault(content, {})
    if (source, n) not in found:
        found[source, n] = _nearest(content.summaries[source.summary].detach(), known, n)
    return found[source, n]


def _nearest(vectors: Float[Tensor, "item dim"], known: Bool[Tensor, " item"], n: int) -> Nearest:
    length = vectors.norm(dim=1)
    present = torch.nonzero(length > 0).flatten()
    unit = vectors[present] / length[present, None]
    speaking = known[present]
    n = min(n, int(speaking.sum()) - 1)
    if n < 1:
        none = torch.zeros(0, 0, dtype=torch.long)
        return Nearest(none.flatten(), none, vectors.new_zeros(0, 0))
    silent = torch.where(speaking, 0.0, -torch.inf).to(unit.dtype)
    cosines, places = [], []
    for rows in torch.arange(len(unit)).split(max(1, CHUNK // len(unit))):
        part = unit[rows] @ unit.t() + silent
        part[torch.arange(len(rows)), rows] = -torch.inf  # an item does not hear itself
        best = part.topk(n, dim=1)
        cosines.append(best.values)
        places.append(best.indices)
    weights = (SHARPNESS * (torch.cat(cosines) - 1)).exp()
    return Nearest(present, present[torch.cat(places)], weights)


def taste_for(
    values: Float[Tensor, " edge"],
    graph: InteractionGraph,
    pairs: Pairs,
    content: Content,
    source: Source,
) -> Float[Tensor, " pair"]:
    """Per pair, what the user gave to items that read like the asked one.

    sum over the user's items j of K_mj v_uj / (sum over j of K_mj + 2 * the mean such sum), with
    K_mj = exp(6 (cos(text_m, text_j) - 1)) and K_mm = 0.  Source: kernel regression, per user.
    """
    kernel = kernel_of(content, source, graph.item_rows < source.n_items)
    n_users = int((graph.user_rows < source.n_users).sum())
    usual = kernel.typical.index_select(0, graph.items).sum() / max(1, n_users)
    columns = torch.stack([values, torch.ones_like(values)], dim=1)
    out = values.new_zeros(len(pairs.users))
    for run in histories(graph.users, graph.n_users, pairs.users):
        asked = pairs.items[run.part]
        weights = kernel(asked[run.rows], graph.items[run.edges]).to(values.dtype)
        told, total = run.sums(weights, columns).unbind(1)
        out[run.part] = told / (total + 2 * usual + FAINT)
    return out


class Kernel:
    """Likeness of any two items' texts: a table where it fits, else computed when asked."""

    def __init__(self, vectors: Float[Tensor, "item dim"], known: Bool[Tensor, " item"]) -> None:
        length = vectors.norm(dim=1, keepdim=True)
        self.unit, self.present = vectors / length.clamp(min=1e-9), (length > 0).flatten()
        n = len(vectors)
        self.table = self._rows(torch.arange(n)) if n * n <= TABLE else None
        some = torch.nonzero(known).flatten()
        some = some[:: max(1, len(some) // SAMPLED)]
        rows = self._rows(some) if self.table is None else self.table[some]
        self.typical = rows.sum(0) / max(1, len(some))

    def _rows(self, items: Int[Tensor, " some"]) -> Float[Tensor, "some item"]:
        weights = self._weigh(self.unit[items] @ self.unit.t())
        weights *= self.present[items, None] & self.present
        weights[torch.arange(len(items)), items] = 0
        return weights

    def __call__(
        self, items: Int[Tensor, " entry"], others: Int[Tensor, " entry"]
    ) -> Float[Tensor, " entry"]:
        if self.table is not None:
            return self.table.view(-1).take(items * len(self.unit) + others)
        real = self.present[items] & self.present[others] & (items != others)
        both = self.unit.index_select(0, items) * self.unit.index_select(0, others)
        return self._weigh(both.sum(1)) * real

    @staticmethod
    def _weigh(cosines: Tensor) -> Tensor:
        return ((cosines - 1) * TASTE_SHARPNESS).exp_()


_kernels: WeakKeyDictionary[Content, dict[Source, Kernel]] = WeakKeyDictionary()


def kernel_of(content: Content, source: Source, known: Bool[Tensor, " item"]) -> Kernel:
    """Made once per content."""
    found = _kernels.setdefault(content, {})
    if source not in found:
        found[source] = Kernel(content.summaries[source.summary].detach(), known)
    return found[source]
