"""The moves of message passing, edges ← nodes and nodes ← edges, fast on a CPU.

Both fused moves work chunk by chunk in the processor's cache and write nothing of the size
[edge, dim] to memory, forward or backward: what a chunk held is computed again when needed.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding_bag

CHUNK = 2**18  # numbers handled at a time: 1 MB of fp32, half of a usual L2 cache

Tables = Sequence[Tensor]
Indices = Sequence[Tensor | None]


class Incidence:
    """Which node each edge points at."""

    def __init__(self, index: Int[Tensor, " edge"], n_nodes: int) -> None:
        self.index = index
        self.n_nodes = n_nodes
        self.degrees = torch.bincount(index, minlength=n_nodes)

    def sum(self, edges: Float[Tensor, "edge dim"]) -> Float[Tensor, "node dim"]:
        """Add up what the edges bring to each node; 0 for a node without edges."""
        return edges.new_zeros(self.n_nodes, edges.shape[1]).index_add(0, self.index, edges)

    def mean(self, edges: Float[Tensor, "edge dim"]) -> Float[Tensor, "node dim"]:
        """Average what the edges bring to each node; 0 for a node without edges."""
        return self.per_edge(self.sum(edges))

    def max(self, edges: Float[Tensor, "edge dim"]) -> Float[Tensor, "node dim"]:
        """The largest that the edges bring, per channel; 0 for a node without edges."""
        index = self.index[:, None].expand_as(edges)
        start = edges.new_zeros(self.n_nodes, edges.shape[1])
        return start.scatter_reduce(0, index, edges, "amax", include_self=False)

    def per_edge(self, sums: Float[Tensor, "node dim"]) -> Float[Tensor, "node dim"]:
        """Divide sums by the number of edges behind each."""
        return sums / self.degrees.clamp(min=1).to(sums.dtype)[:, None]


def gather(
    table: Float[Tensor, "node dim"], index: Int[Tensor, " edge"]
) -> Float[Tensor, "edge dim"]:
    """The row of each edge's node. index_select is 3 times faster than table[index]."""
    return table.index_select(0, index)


def sum_relu(
    tables: Tables, indices: Indices, target: Int[Tensor, " edge"], n_nodes: int, rate: float = 0.0
) -> Float[Tensor, "node dim"]:
    """Per node, the sum over its edges of dropout(relu(sum over t of tables[t][indices[t]])).

    An index of None means that the table already has one row per edge; one index at least is
    not None.
    """
    return _SumRelu.apply(target, n_nodes, rate, tuple(indices), *tables)


def dot_relu(
    tables: Tables, indices: Indices, weight: Float[Tensor, " dim"], rate: float = 0.0
) -> Float[Tensor, " edge"]:
    """Per edge, weight · dropout(relu(sum over t of tables[t][indices[t]]))."""
    return _DotRelu.apply(weight, rate, tuple(indices), *tables)


class _Hidden:
    """relu and dropout of a sum of gathered rows, for any chunk of edges, repeatably."""

    def __init__(
        self,
        tables: Tables,
        indices: Indices,
        rate: float = 0.0,
        masks: DropoutMasks | None = None,
    ) -> None:
        self.tables, self.indices = tables, indices
        first = tables[0] if indices[0] is None else indices[0]
        step = max(1, CHUNK // tables[0].shape[1])
        n = len(first)
        self.chunks = [slice(start, min(start + step, n)) for start in range(0, n, step)]
        if rate:
            masks = DropoutMasks(rate, tables[0].dtype, len(self.chunks))
        self.masks = masks
        self.gathered, self.index = _stack(tables, indices)
        self.per_edge = [t for t, i in zip(tables, indices, strict=True) if i is None]

    def __call__(self, number: int) -> Tensor:
        rows = self.chunks[number]
        index = self.index[rows]
        if index.shape[1] == 1:
            part = self.gathered.index_select(0, index.view(-1))
        else:  # half the time of picking rows and adding them
            part = embedding_bag(index, self.gathered, mode="sum")
        for table in self.per_edge:
            part += table[rows]
        part.relu_()
        if self.masks is not None:
            part *= self.masks.window(number, part.shape)
        return part

    @property
    def scale(self) -> float:
        """What makes up for the dropped; masks leave it to their readers, who apply it once."""
        return self.masks.scale if self.masks is not None else 1.0

    def through(self, number: int, grad: Tensor) -> Tensor:
        """The gradient at the sum, given the one at the result."""
        part: Tensor = torch.ops.aten.threshold_backward(grad, self(number), 0)
        return part

    def zeros(self, needed: Sequence[bool]) -> list[Tensor | None]:
        return [
            None if not need else torch.zeros_like(t) if i is not None else torch.empty_like(t)
            for t, i, need in zip(self.tables, self.indices, needed, strict=True)
        ]

    def scatter(self, number: int, part: Tensor, grads: list[Tensor | None]) -> None:
        rows = self.chunks[number]
        for grad, index in zip(grads, self.indices, strict=True):
            if grad is None:
                continue
            if index is None:
                grad[rows] = part
            else:
                grad.index_add_(0, index[rows], part)


def _stack(tables: Tables, indices: Indices) -> tuple[Tensor, Int[Tensor, "edge table"]]:
    """The tables that are gathered from, one below the other, and the rows of each edge."""
    gathered = [(t, i) for t, i in zip(tables, indices, strict=True) if i is not None]
    starts = [0, *itertools.accumulate(len(t) for t, _ in gathered)]
    rows = [i + start for (_, i), start in zip(gathered, starts, strict=False)]
    if len(gathered) == 1:
        return gathered[0][0], gathered[0][1][:, None]
    return torch.cat([t for t, _ in gathered]), torch.stack(rows, dim=1)


class _SumRelu(Function):
    @staticmethod
    def forward(
        ctx: Any, target: Tensor, n_nodes: int, rate: float, indices: Indices, *tables: Tensor
    ) -> Tensor:
        hidden = _Hidden(tables, indices, rate)
        out = tables[0].new_zeros(n_nodes, tables[0].shape[1])
        for number, rows in enumerate(hidden.chunks):
            out.index_add_(0, target[rows], hidden(number))
        _keep(ctx, hidden, target)
        return out.mul_(hidden.scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        hidden, (target,) = _kept(ctx)
        grad = grad * hidden.scale
        grads = hidden.zeros(ctx.needs_input_grad[4:])
        for number, rows in enumerate(hidden.chunks):
            part = hidden.through(number, grad.index_select(0, target[rows]))
            hidden.scatter(number, part, grads)
        return None, None, None, None, *grads


class _DotRelu(Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, rate: float, indices: Indices, *tables: Tensor) -> Tensor:
        hidden = _Hidden(tables, indices, rate)
        scaled = weight * hidden.scale
        parts = [hidden(number) @ scaled for number in range(len(hidden.chunks))]
        _keep(ctx, hidden, weight)
        return torch.cat(parts) if parts else weight.new_zeros(0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        hidden, (weight,) = _kept(ctx)
        grads = hidden.zeros(ctx.needs_input_grad[3:])
        weight_grad, scaled = torch.zeros_like(weight), weight * hidden.scale
        for number, rows in enumerate(hidden.chunks):
            result = hidden(number)
            weight_grad += grad[rows] @ result
            part = torch.ops.aten.threshold_backward(torch.outer(grad[rows], scaled), result, 0)
            hidden.scatter(number, part, grads)
        return weight_grad.mul_(hidden.scale), None, None, *grads


def _keep(ctx: Any, hidden: _Hidden, *others: Tensor) -> None:
    """Save what the backward pass needs, tables through autograd so that it notices changes."""
    ctx.indices, ctx.masks = hidden.indices, hidden.masks
    ctx.save_for_backward(*others, *hidden.tables)


def _kept(ctx: Any) -> tuple[_Hidden, tuple[Tensor, ...]]:
    split = len(ctx.saved_tensors) - len(ctx.indices)
    hidden = _Hidden(ctx.saved_tensors[split:], ctx.indices, masks=ctx.masks)
    return hidden, ctx.saved_tensors[:split]


class DropoutMasks:
    """Masks of 0 and 1, windows at random offsets into one pool of fresh bits.

    Drawing every mask anew costs more than the layer that it regularises; a window costs one
    product and can be looked at again. The rate has a resolution of 1/256.
    """

    def __init__(self, rate: float, dtype: torch.dtype, n_windows: int) -> None:
        dropped = min(round(rate * 256), 255)
        self.scale = 256 / (256 - dropped)
        words = torch.empty(CHUNK // 4, dtype=torch.int64).random_(-(2**63), None)
        self.pool = (words.view(torch.uint8) >= dropped).to(dtype)
        self.starts = torch.randint(CHUNK, (n_windows,)).tolist()

    def window(self, number: int, shape: torch.Size) -> Tensor:
        start = self.starts[number]
        return self.pool[start : start + shape.numel()].view(shape)


class SparseMatrix:
    """A constant sparse matrix that multiplies node states, with a fast backward pass.

    Both the matrix and its transpose are kept in CSR form: 20 times faster than gathering and
    scattering per edge, as nothing of the size [edge, dim] exists.
    """

    def __init__(
        self, rows: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]
    ) -> None:
        self.forward_csr = _csr(rows, columns, values, shape)
        self.backward_csr = _csr(columns, rows, values, (shape[1], shape[0]))

    @property
    def t(self) -> SparseMatrix:
        """Rows for columns: nothing is copied."""
        turned = SparseMatrix.__new__(SparseMatrix)
        turned.forward_csr, turned.backward_csr = self.backward_csr, self.forward_csr
        return turned

    def __matmul__(self, states: Float[Tensor, "column dim"]) -> Float[Tensor, "row dim"]:
        return _SparseProduct.apply(states, self)


def _csr(rows: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    order = torch.argsort(rows, stable=True)
    starts = torch.zeros(shape[0] + 1, dtype=torch.long)
    torch.cumsum(torch.bincount(rows, minlength=shape[0]), 0, out=starts[1:])
    return csr(starts, columns[order], values[order], shape)


def csr(starts: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A sparse tensor from rows that are in order already."""
    with warnings.catch_warnings():  # torch calls CSR support a beta each time
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        return torch.sparse_csr_tensor(starts, columns, values, size=shape, check_invariants=False)


class _SparseProduct(Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, matrix: SparseMatrix) -> Tensor:
        ctx.matrix = matrix
        return matrix.forward_csr @ states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.matrix.backward_csr @ grad.contiguous(), None
