"""Attention over the words inside an item, as one user weighs them, for many pairs at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import leaky_relu

from corginet.nn.words import Words

SLOPE = 0.2  # of LeakyReLU below 0, as the paper has it
BATCH = 2**18  # numbers in the largest tensor of one batch of items
MANY_USERS = 512  # of one item: for fewer, running sums cost more than they save

Queries = Float[Tensor, "item user channel"]
Keys = Float[Tensor, "item word channel"]
Real = Bool[Tensor, "item word"]
Weights = Float[Tensor, "item user word"]


@dataclass(frozen=True, eq=False)
class Batch:
    """A few items with about equally many pairs: pair numbers padded by repeating the last."""

    items: Int[Tensor, " item"]
    pairs: Int[Tensor, "item user"]
    real: Bool[Tensor, "item user"]


class PairBatches:
    """Pairs grouped by item and cut into batches of items, so that products are dense.

    A [pair, word, channel] tensor is never made. Items without words are left out: their
    content is 0.
    """

    def __init__(
        self, users: Int[Tensor, " pair"], items: Int[Tensor, " pair"], words: Words
    ) -> None:
        self.users, self.words = users, words
        order = torch.argsort(items, stable=True)
        degrees = torch.bincount(items, minlength=len(words.counts))
        starts = torch.cumsum(degrees, 0) - degrees
        wanted = torch.nonzero((degrees > 0) & (words.counts > 0)).flatten()
        wanted = wanted[torch.argsort(degrees[wanted], stable=True)]
        self.batches: list[Batch] = []
        for part in self._cut(wanted, degrees):
            place = torch.arange(int(degrees[part].max()))
            last = degrees[part, None] - 1
            pairs = order[starts[part, None] + torch.minimum(place, last)]
            self.batches.append(Batch(part, pairs, place <= last))

    def _cut(self, wanted: Tensor, degrees: Tensor) -> list[Tensor]:
        """Cut items, sorted by degree, so that items × users × words of a part are bounded."""
        width = max(8, int(self.words.counts.max()) if len(self.words.counts) else 0)
        sizes = degrees[wanted].tolist()
        cuts, start = [0], 0
        for i, size in enumerate(sizes):
            # the last item is the largest; a part also ends where padding would double it
            if i > start and ((i + 1 - start) * size * width > BATCH or size > 2 * sizes[start]):
                cuts.append(i)
                start = i
        return [wanted[a:b] for a, b in zip(cuts, [*cuts[1:], len(sizes)], strict=True) if b > a]


class ContentAttention(nn.Module):
    """What one user reads in an item's words.

    content = sum over words k of weight_k * W_M z_k, weight = softmax over k of score_k; the
    subclasses differ in the score. An item without words gives 0. `projected` holds W_M z.
    Source: CoRGi, eq. 6-9.  Deviation: eq. 9's bracket is read as (W_U h).(W_M z).
    """

    def __init__(self, dim: int, channels: int) -> None:
        super().__init__()
        self.query = nn.Linear(dim, channels, bias=False)
        self.scoring = nn.ParameterList(
            nn.Parameter(torch.randn(channels) * channels**-0.5) for _ in range(self.n_vectors)
        )

    n_vectors = 0  # how many learned vectors the score takes

    def forward(
        self,
        users: Float[Tensor, "user dim"],
        projected: Float[Tensor, "word channel"],
        batches: PairBatches,
    ) -> Float[Tensor, "pair channel"]:
        return _PerItem.apply(type(self), batches, self.query(users), projected, *self.scoring)

    @torch.no_grad()
    def weights(
        self,
        users: Float[Tensor, "user dim"],
        projected: Float[Tensor, "word channel"],
        batches: PairBatches,
    ) -> list[tuple[Batch, Tensor]]:
        """The weights themselves, batch by batch: to be looked at, not trained."""
        queries = self.query(users)
        out = []
        for batch in batches.batches:
            q, k, real = _batch_inputs(batch, batches, queries, projected)
            out.append((batch, _softmax(self.scores(q, k, *self.scoring), real)))
        return out

    @staticmethod
    def scores(queries: Queries, keys: Keys, *parameters: Tensor) -> Weights:
        raise NotImplementedError

    @classmethod
    def read(cls, queries: Queries, keys: Keys, real: Real, *parameters: Tensor) -> Queries:
        """The content of each pair of one batch."""
        return _softmax(cls.scores(queries, keys, *parameters), real) @ keys

    @classmethod
    def gradients(
        cls, grad: Queries, queries: Queries, keys: Keys, real: Real, *parameters: Tensor
    ) -> list[Tensor]:
        """What `read` passes back to queries, keys and parameters, computing it again.

        Only the scores go through autograd: softmax and sum have short formulas of their own.
        """
        inputs = [t.detach().requires_grad_() for t in (queries, keys, *parameters)]
        with torch.enable_grad():
            scores = cls.scores(*inputs)
        weights = _softmax(scores.detach(), real)
        of_weights = grad @ keys.transpose(1, 2)
        of_scores = torch._softmax_backward_data(of_weights, weights, -1, weights.dtype)
        found = list(torch.autograd.grad(scores, inputs, of_scores))
        found[1] = found[1].baddbmm_(weights.transpose(1, 2), grad)
        return found


def _softmax(scores: Weights, real: Real) -> Weights:
    if not real.all():  # adding a bias is 20 times faster than masked_fill
        scores = scores + torch.where(real, 0.0, -torch.inf).to(scores.dtype)[:, None]
    return scores.softmax(-1)


class DotProductAttention(ContentAttention):
    """Summarise an item's words by how well each fits the user.

    score_k = leaky((W_U h_u) . (W_M z_k)).  Source: CoRGi, eq. 9.
    """

    @staticmethod
    def scores(queries: Queries, keys: Keys, *_: Tensor) -> Weights:
        return leaky_relu(queries @ keys.transpose(1, 2), SLOPE)

    @classmethod
    def gradients(
        cls, grad: Queries, queries: Queries, keys: Keys, real: Real, *_: Tensor
    ) -> list[Tensor]:
        """Five products and no autograd, which would turn the keys' gradient round."""
        fit = queries @ keys.transpose(1, 2)
        weights = _softmax(leaky_relu(fit, SLOPE), real)
        of_weights = grad @ keys.transpose(1, 2)
        of_scores = torch._softmax_backward_data(of_weights, weights, -1, weights.dtype)
        of_fit = torch.ops.aten.leaky_relu_backward(of_scores, fit, SLOPE, False)
        read = weights.transpose(1, 2) @ grad
        return [of_fit @ keys, read.baddbmm_(of_fit.transpose(1, 2), queries)]


class AdditiveAttention(ContentAttention):
    """Summarise an item's words at a cost per pair that does not grow with the text.

    score_k = leaky(a_u + b_k), with a_u = p_u . W_U h_u and b_k = p_m . W_M z_k.
    leaky has two linear pieces, so each item's words, sorted by b, need only two running sums.
    The word with the largest b leads for every user: this form is sharp or flat, not personal.
    Source: CoRGi, eq. 8.  Deviation: none; the sums are exact.
    """

    n_vectors = 2

    @staticmethod
    def scores(queries: Queries, keys: Keys, *parameters: Tensor) -> Weights:
        from_user, from_word = parameters
        return leaky_relu((queries @ from_user)[:, :, None] + (keys @ from_word)[:, None], SLOPE)

    @classmethod
    def read(cls, queries: Queries, keys: Keys, real: Real, *parameters: Tensor) -> Queries:
        if queries.shape[1] < MANY_USERS:
            return super().read(queries, keys, real, *parameters)
        return read_by_running_sums(queries, keys, real, *parameters)

    @classmethod
    def gradients(
        cls, grad: Queries, queries: Queries, keys: Keys, real: Real, *parameters: Tensor
    ) -> list[Tensor]:
        if queries.shape[1] < MANY_USERS:
            return super().gradients(grad, queries, keys, real, *parameters)
        inputs = [t.detach().requires_grad_() for t in (queries, keys, *parameters)]
        with torch.enable_grad():
            content = read_by_running_sums(inputs[0], inputs[1], real, *inputs[2:])
        return list(torch.autograd.grad(content, inputs, grad))


class DynamicAttention(ContentAttention):
    """Additive attention whose order of words depends on the user, at a [word, channel]
    product per pair.

    score_k = p . leaky(W_U h_u + W_M z_k).  Source: GATv2's remedy, applied to CoRGi's eq. 8.
    """

    n_vectors = 1

    @staticmethod
    def scores(queries: Queries, keys: Keys, *parameters: Tensor) -> Weights:
        return leaky_relu(queries[:, :, None] + keys[:, None], SLOPE) @ parameters[0]


def read_by_running_sums(
    queries: Queries, keys: Keys, real: Real, from_user: Tensor, from_word: Tensor
) -> Queries:
    """Additive attention, exact, in O(words + users log words) per item.

    With words sorted by b and B the largest: S1[i] = sum over k >= i of e^(b_k - B) [W_M z_k, 1],
    S2[i] = sum over k < i of e^(s (b_k - B)) [W_M z_k, 1]. For a user whose kink lies before
    word i and x = max(a + B, 0): n = S1[i] + e^((s-1) x) S2[i], content = n[:-1] / n[-1].
    Where x > 0 S1 holds the largest word with weight 1, where x = 0 S2 does: nothing overflows.
    """
    a = queries @ from_user
    b, order = (keys @ from_word).masked_fill(~real, -torch.inf).sort(dim=1)
    largest = b[:, -1:]
    n_items, n_words, dim = keys.shape
    offsets = torch.arange(n_items)[:, None]
    words = keys.reshape(-1, dim).index_select(0, (order + offsets * n_words).view(-1))
    words = torch.cat([words.view_as(keys), keys.new_ones(n_items, n_words, 1)], dim=2)
    above = (b - largest).exp()[..., None] * words
    below = (SLOPE * (b - largest)).exp()[..., None] * words
    start = words.new_zeros(n_items, 1, dim + 1)
    s1 = torch.cat([above.flip(1).cumsum(1).flip(1), start], dim=1)
    s2 = torch.cat([start, below.cumsum(1)], dim=1)
    kink = torch.searchsorted(b.detach(), -a.detach())
    rows = (kink + offsets * (n_words + 1)).view(-1)
    n1 = s1.view(-1, dim + 1).index_select(0, rows)
    n2 = s2.view(-1, dim + 1).index_select(0, rows)
    x = (a + largest).clamp(min=0).view(-1, 1)
    n = n1 + ((SLOPE - 1) * x).exp() * n2
    return (n[:, :-1] / n[:, -1:]).view(n_items, -1, dim)


ATTENTIONS: dict[str, type[ContentAttention]] = {
    "additive": AdditiveAttention,
    "dot_product": DotProductAttention,
    "dynamic": DynamicAttention,
}


def _batch_inputs(
    batch: Batch, batches: PairBatches, queries: Tensor, projected: Tensor
) -> tuple[Queries, Keys, Real]:
    rows, real = batches.words.of(batch.items)
    users = batches.users.index_select(0, batch.pairs.view(-1))
    q = queries.index_select(0, users).view(*batch.pairs.shape, -1)
    k = projected.index_select(0, rows.view(-1)).view(*rows.shape, -1)
    return q, k.to(queries.dtype), real


class _PerItem(Function):
    """Run `read` batch by batch, keeping nothing: the backward pass computes a batch again.

    Peak memory is that of one batch, and its tensors never leave the cache.
    """

    @staticmethod
    def forward(
        ctx: Any,
        form: type[ContentAttention],
        batches: PairBatches,
        queries: Tensor,
        projected: Tensor,
        *parameters: Tensor,
    ) -> Tensor:
        out = queries.new_zeros(len(batches.users), projected.shape[1])
        for batch in batches.batches:
            content = form.read(*_batch_inputs(batch, batches, queries, projected), *parameters)
            out.index_copy_(0, batch.pairs.view(-1), content.flatten(0, 1))
        ctx.form, ctx.batches = form, batches
        ctx.save_for_backward(queries, projected, *parameters)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        queries, projected, *parameters = ctx.saved_tensors
        batches: PairBatches = ctx.batches
        grads = [torch.zeros_like(t) for t in (queries, projected, *parameters)]
        for batch in batches.batches:
            q, k, real = _batch_inputs(batch, batches, queries, projected)
            part = grad.index_select(0, batch.pairs.view(-1)).view_as(q)
            if not batch.real.all():
                part *= batch.real[..., None]
            q_grad, k_grad, *rest = ctx.form.gradients(part, q, k, real, *parameters)
            users = batches.users.index_select(0, batch.pairs.view(-1))
            grads[0].index_add_(0, users, q_grad.flatten(0, 1))
            rows, _ = batches.words.of(batch.items)
            grads[1].index_add_(0, rows.view(-1), k_grad.flatten(0, 1).to(projected.dtype))
            for total, one in zip(grads[2:], rest, strict=True):
                total += one
        return None, None, *grads
