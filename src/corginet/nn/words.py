"""The frozen words of the items, and the learned projection that reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from corginet.runtime import fast_bfloat16


@dataclass(frozen=True, eq=False)
class Words:
    """Word vectors of all texts, one after the other, and where each item's lie.

    Items with equal texts share their words. An item without text has a count of 0.
    """

    vectors: Float[Tensor, "word dim"]
    starts: Int[Tensor, " item"]
    counts: Int[Tensor, " item"]

    @property
    def dim(self) -> int:
        return self.vectors.shape[1]

    def of(
        self, items: Int[Tensor, " item"]
    ) -> tuple[Int[Tensor, "item word"], Bool[Tensor, "item word"]]:
        """Word rows of some items, padded to the longest, and which of them are real."""
        counts = self.counts[items]
        place = torch.arange(max(1, int(counts.max())) if len(items) else 1)
        real = place < counts[:, None]
        rows = self.starts[items, None] + torch.where(real, place, 0)
        return rows.clamp_(max=max(0, len(self.vectors) - 1)), real

    def for_items(self, items: Int[Tensor, " item"]) -> Words:
        """The same words seen from a subset of the items, in its order."""
        return Words(self.vectors, self.starts[items], self.counts[items])


class WordProjection(nn.Module):
    """W_M z for every word at once, for several layers in one product.

    Frozen vectors in bf16 are multiplied in bf16 where the hardware does that, 4 times faster
    than fp32; the results stay bf16 until a chunk of items needs them.
    """

    def __init__(self, dim: int, channels: int, n_layers: int = 1) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_layers * channels, dim))
        self.n_layers = n_layers
        nn.init.uniform_(self.weight, -(dim**-0.5), dim**-0.5)

    def forward(self, words: Words) -> list[Float[Tensor, "word channel"]]:
        """One table of projected words per layer."""
        return list(_Project.apply(words.vectors, self.weight, self.n_layers))


class _Project(Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor, weight: Tensor, n_layers: int) -> tuple[Tensor, ...]:
        ctx.save_for_backward(vectors, weight)
        projected = vectors @ weight.to(vectors.dtype).t()
        return tuple(part.contiguous() for part in projected.chunk(n_layers, dim=1))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor, None]:
        vectors, weight = ctx.saved_tensors
        grad = torch.cat([g.to(vectors.dtype) for g in grads], dim=1)
        of_vectors = grad @ weight.to(grad.dtype) if ctx.needs_input_grad[0] else None
        return of_vectors, (grad.t() @ vectors).to(weight.dtype), None


def working_precision(vectors: Tensor) -> Tensor:
    """bf16 vectors as they are where the hardware multiplies them, else in fp32."""
    slow = vectors.dtype == torch.bfloat16 and not fast_bfloat16()
    return vectors.float() if slow else vectors
