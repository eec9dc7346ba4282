"""Kindred items and users: who is judged alike, met by the same people, or reads alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from corginet.data.graph import InteractionGraph
from corginet.nn.alike import TABLE, Source, by_meaning
from corginet.nn.biases import damped_biases
from corginet.nn.content import Content
from corginet.nn.histories import histories
from corginet.nn.readout import Pairs, PairView
from corginet.nn.sparse import SparseMatrix

JUDGED, MET = 5.0, 1.0  # shrinkage of cosines: as if every node had this many edges more
DAMPING = 5.0  # of the biases that are taken off before values are compared
STARTS = (0.2, 0.2, 0.6, 0.3)  # weights before anything is learned: the order of `_tables`
AGREEING, OF_ITEMS = 1, (0, 2, 3)  # places of the kinds in `_tables`: users', and items'
FAINT = 1e-4  # a smaller sum of likenesses is as good as none
FAST = 10.0  # dampings that fit differ by powers of ten between data: they take larger steps
START_DAMPING = 0.02  # likeness at which what is told counts half, at the start


class Scope(NamedTuple):
    """Which kin are looked for: decided when the model is built, whoever comes later."""

    source: Source | None  # of the texts' vectors; none looks for no items that read alike
    users: bool  # whether users are few enough to compare all of them
    items: bool

    @classmethod
    def of(cls, n_users: int, n_items: int, source: Source | None = None) -> Scope:
        fits = n_users * n_items <= TABLE
        return cls(source, fits and n_users**2 <= TABLE, fits and n_items**2 <= TABLE)

    @property
    def n_kinds(self) -> int:
        return 3 if self.source is None else 4


class Kindred(nn.Module):
    """Who liked this liked that, and those who agreed so far will go on to.

    sum over four kinds k of kin:  w_k * (sum over j of s_j r_j) / (sum over j of s_j + damping_k)

    Kin are items that users judge alike, users who judge alike, items met by the same users, and
    items whose texts mean alike. r_j is what biases leave of the user's value of item j (of user
    j's value of the item); s_j = max(0, cos)^4, with the shrunk cosine of what biases leave of
    both nodes' values, of who met them, or of the texts' vectors. w and damping are learned, all
    else follows from the observed edges. A pair without kin gets 0.
    Source: neighbourhood models, with their weights learned beside the network's.
    """

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self.scope = scope
        starts = torch.tensor(STARTS[: scope.n_kinds])
        self.weights = nn.Parameter(starts)
        self.log_dampings = nn.Parameter(torch.full_like(starts, START_DAMPING).log() / FAST)

    def forward(
        self, graph: InteractionGraph, pairs: Pairs, content: Content
    ) -> Float[Tensor, " pair"]:
        told = told_by_kin(graph, pairs, content, self.scope)
        shares = told.sums / (told.weights + self.dampings[:, None])
        return self.weights @ shares

    @property
    def dampings(self) -> Float[Tensor, " kind"]:
        return (FAST * self.log_dampings).exp()


class KinReading(PairView):
    """The readout also sees what each kind of kin tells, and how many speak.

    W [sum over j of s_j r_j / (sum over j of s_j + damping), log(sum over j of s_j) / 4], one pair
    of numbers per kind: who listens to which kin can depend on all else that is known.
    """

    def __init__(self, hidden: int, scope: Scope) -> None:
        super().__init__()
        self.scope = scope
        self.map = nn.Linear(2 * scope.n_kinds, hidden, bias=False)

    def forward(
        self,
        graph: InteractionGraph,
        users: Float[Tensor, "user channel"],
        items: Float[Tensor, "item channel"],
        pairs: Pairs,
        content: Content,
    ) -> Float[Tensor, "pair hidden"]:
        told = told_by_kin(graph, pairs, content, self.scope)
        shares = told.sums / (told.weights + START_DAMPING)
        many = told.weights.clamp(min=FAINT).log() / 4
        read: Tensor = self.map(torch.cat([shares, many]).t())
        return read


class Told(NamedTuple):
    """Per kind of kin and pair, what they add up to."""

    sums: Float[Tensor, "kind pair"]
    weights: Float[Tensor, "kind pair"]


class _Asked(NamedTuple):
    pairs: Pairs
    content: Content
    scope: Scope
    told: Told


_told: WeakKeyDictionary[InteractionGraph, _Asked] = WeakKeyDictionary()


@torch.no_grad()
def told_by_kin(graph: InteractionGraph, pairs: Pairs, content: Content, scope: Scope) -> Told:
    """Found once for all networks that ask the same of the same graph, one after the other."""
    last = _told.get(graph)
    if last and last.pairs is pairs and last.content is content and last.scope == scope:
        return last.told
    told = _tell(graph, pairs, content, scope)
    _told[graph] = _Asked(pairs, content, scope, told)
    return told


def _tell(graph: InteractionGraph, pairs: Pairs, content: Content, scope: Scope) -> Told:
    sums = graph.values.new_zeros(scope.n_kinds, len(pairs.users))
    weights = torch.zeros_like(sums)
    if not len(graph) or not len(pairs.users):
        return Told(sums, weights)
    users, user_places = torch.unique(pairs.users, return_inverse=True)
    items, item_places = torch.unique(pairs.items, return_inverse=True)
    rest = _rest(graph)
    columns = torch.stack([rest, torch.ones_like(rest)], dim=1)
    tables = list(_tables(graph, rest, users, items, content, scope))
    by_users = _Side(graph.users, graph.items, graph.n_users, pairs.users, item_places)
    by_items = _Side(graph.items, graph.users, graph.n_items, pairs.items, user_places)
    for side, kinds in ((by_items, (AGREEING,)), (by_users, OF_ITEMS[: scope.n_kinds - 1])):
        found = {kind: table for kind in kinds if (table := tables[kind]) is not None}
        for kind, told in zip(found, side.told(list(found.values()), columns), strict=True):
            sums[kind], weights[kind] = told.unbind(1)
    return Told(sums, weights)


@torch.no_grad()
def closeness(graph: InteractionGraph, pair: Pairs, content: Content) -> Float[Tensor, " edge"]:
    """How much every edge at the user or the item of one pair has to tell of it; 0 for others."""
    if not len(graph):
        return graph.values.new_zeros(0)
    rest = _rest(graph)
    out = torch.zeros_like(rest)
    scope = Scope.of(graph.n_users, graph.n_items)
    for kind, table in enumerate(_tables(graph, rest, pair.users, pair.items, content, scope)):
        if table is not None:
            turned = kind == AGREEING
            at, kin = (graph.items, graph.users) if turned else (graph.users, graph.items)
            own = (pair.items if turned else pair.users)[0]
            out += torch.where(at == own, table[kin, 0] * rest.abs(), 0.0)
    return out


def _rest(graph: InteractionGraph) -> Float[Tensor, " edge"]:
    """What biases leave of the values."""
    biases = damped_biases(graph, DAMPING, DAMPING)
    return graph.values - biases.of(graph.users, graph.items)


class _Side(NamedTuple):
    """Kin on one side of the graph: items that the asked user met, or users who met the item."""

    ends: Int[Tensor, " edge"]  # the asked node's side
    kin: Int[Tensor, " edge"]
    n_nodes: int
    asked: Int[Tensor, " pair"]
    columns: Int[Tensor, " pair"]  # of the table of likenesses

    def told(
        self, tables: Sequence[Tensor], columns: Float[Tensor, "edge column"]
    ) -> list[Float[Tensor, "pair column"]]:
        """For each table of likenesses, the weighted sums of what kin gave or got."""
        out = [columns.new_zeros(len(self.asked), columns.shape[1]) for _ in tables]
        if not tables:
            return out
        for run in histories(self.ends, self.n_nodes, self.asked):
            own = self.columns[run.part]
            places = self.kin[run.edges] * tables[0].shape[1] + own[run.rows]
            for sums, table in zip(out, tables, strict=True):
                sums[run.part] = run.sums(table.view(-1).take(places), columns)
        return out


def _tables(
    graph: InteractionGraph,
    rest: Float[Tensor, " edge"],
    users: Int[Tensor, " asked_user"],
    items: Int[Tensor, " asked_item"],
    content: Content,
    scope: Scope,
) -> Iterator[Tensor | None]:
    """How alike all are to those asked for, one kind at a time; None for what is out of scope."""
    shape = (graph.n_users, graph.n_items)
    given = SparseMatrix(graph.users, graph.items, rest, shape)
    yield _alike(given, items, JUDGED) if scope.items else None
    yield _alike(given.t, users, JUDGED) if scope.users else None
    seen = SparseMatrix(graph.users, graph.items, torch.ones_like(rest), shape)
    yield _alike(seen, items, MET) if scope.items else None
    if scope.source is not None:
        yield _read_alike(content, items, scope.source, rest.dtype) if scope.items else None


def _alike(
    given: SparseMatrix, columns: Int[Tensor, " asked"], shrinkage: float
) -> Float[Tensor, "column asked"]:
    """By the shrunk cosines of a sparse matrix's columns."""
    n = given.forward_csr.shape[1]
    values = given.forward_csr.values()
    squares = values.new_zeros(n).index_add(0, given.forward_csr.col_indices(), values.square())
    usual = values.square().mean().clamp(min=1e-12)
    unit = (squares + shrinkage * usual).rsqrt()
    dense = given.forward_csr.to_dense()
    dense = dense.mul_(unit) if len(columns) == n else dense[:, columns] * unit[columns]
    table = (given.backward_csr @ dense).mul_(unit[:, None])
    return _sharpened(table, columns)


def _read_alike(
    content: Content, columns: Int[Tensor, " asked"], source: Source, dtype: torch.dtype
) -> Float[Tensor, "item asked"]:
    """By the cosines of the texts' vectors; an item without a text is like no other."""
    vectors = content.summaries[by_meaning(content, source).summary].detach().to(dtype)
    unit = vectors / vectors.norm(dim=1, keepdim=True).clamp(min=1e-9)
    return _sharpened(unit @ unit[columns].t(), columns)


def _sharpened(
    cosines: Float[Tensor, "node asked"], asked: Int[Tensor, " asked"]
) -> Float[Tensor, "node asked"]:
    """In place: positive parts to the fourth; nothing is kin to itself."""
    cosines.clamp_(min=0).square_().square_()
    cosines[asked, torch.arange(len(asked))] = 0
    return cosines
