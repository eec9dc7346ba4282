"""Values as a network learns best from them: what biases leave, in units of its spread."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from corginet.data.graph import InteractionGraph
from corginet.data.task import Task
from corginet.nn.alike import Source, by_meaning, taste_for, text_means
from corginet.nn.biases import Biases, damped_biases
from corginet.nn.content import Content
from corginet.nn.readout import Pairs

ROUNDS = 4  # of setting biases in turn, in every step
DAMPING = 5.0  # of both sides' biases at the start; learned from there
PRIOR = 3.0  # values of usual spread that every node's own spread starts from
N_ALIKE = 50  # items whose biases an item leans on
TASTE = 2.0  # at the start, of what a user gave to items with alike texts
FEW = 10  # observed values from which on an item speaks for itself
SURE = 0.02  # a probability that biases alone may state, and one minus it


class ResidualValues(nn.Module):
    """Edges carry how far a value lies from what biases expect; outputs start from those.

    Mean, biases and spread are those of the edges observed now, with dampings that are
    learned: a hidden value is in none of them, and new users and items need no fitting.
    Every node also learns its own statistics: bias, spread, number of edges. What others tell
    of a pair, each a module called as the network is, is added to what biases say.
    """

    def __init__(self, task: Task, tellers: Sequence[nn.Module] = ()) -> None:
        super().__init__()
        self.task, self.tellers = task, nn.ModuleList(tellers)
        self.centre = (task.low + task.high) / 2
        self.log_dampings = nn.Parameter(torch.full((2,), math.log(DAMPING)))
        self.trust = nn.Parameter(torch.ones(()))
        self.shift = nn.Parameter(torch.zeros(()))

    @torch.no_grad()
    def forward(self, graph: InteractionGraph, content: Content) -> InteractionGraph:
        """The graph that the network reads. The dampings learn from `output` alone."""
        biases = self._biases(graph, content)
        rest = graph.values - biases.of(graph.users, graph.items)
        spread = self._spread(rest)
        rest = rest / spread
        statistics = self._statistics(graph, biases, rest, spread)
        return graph.with_values(rest, statistics)

    def output(
        self, raw: Float[Tensor, " pair"], graph: InteractionGraph, pairs: Pairs, content: Content
    ) -> Float[Tensor, " pair"]:
        """The network's output laid over what biases say of the pair."""
        biases = self._biases(graph, content)
        expected = self._expected(biases, graph, pairs, content)
        for teller in self.tellers:
            expected = expected + teller(graph, pairs, content)
        if self.task.binary:
            logits = torch.logit(expected.clamp(SURE, 1 - SURE))
            return self.trust * logits + self.shift + raw
        spread = self._spread(graph.values - biases.of(graph.users, graph.items))
        by_biases = self.trust * (expected - biases.mean) + biases.mean
        return by_biases + spread * (self.shift + raw)

    def _expected(
        self, biases: Biases, graph: InteractionGraph, pairs: Pairs, content: Content
    ) -> Float[Tensor, " pair"]:
        return biases.of(pairs.users, pairs.items)

    def _biases(self, graph: InteractionGraph, content: Content) -> Biases:
        if not len(graph):
            none = self.log_dampings.new_zeros(graph.n_nodes)
            mean = torch.as_tensor(self.centre).to(none)
            return Biases(mean, none[: graph.n_users], none[graph.n_users :])
        user, item = self.log_dampings.exp()
        return damped_biases(graph, user, item, ROUNDS)

    def _spread(self, rest: Float[Tensor, " edge"]) -> Float[Tensor, ""]:
        if not len(rest):
            return torch.as_tensor(self.task.scale / 2).to(rest)
        return rest.square().mean().sqrt().clamp(min=1e-3 * self.task.scale)

    def _statistics(
        self,
        graph: InteractionGraph,
        biases: Biases,
        rest: Float[Tensor, " edge"],
        spread: Float[Tensor, ""],
    ) -> Float[Tensor, "node statistic"]:
        degrees = graph.degrees.to(rest.dtype)
        squares = rest.new_zeros(graph.n_nodes).index_add(0, graph.targets, rest.square().repeat(2))
        columns = (
            torch.cat([biases.users, biases.items]) / spread,
            degrees.log1p() / 3 - 1,
            (degrees == 0).to(rest.dtype),
            ((squares + PRIOR) / (degrees + PRIOR)).sqrt() - 1,
            (degrees + 1).rsqrt(),
        )
        return torch.stack(columns, dim=1)


class ReadingResiduals(ResidualValues):
    """The same, where an item's own values are few, with what texts tell in their place.

    Its bias leans on those of items with alike texts, and the pair on what its user gave to
    such items:  b_m + o_m * lean * mean over j of w_mj b_j,  and + o_m * taste * t_um,  with
    o_m = damping / (d_m + damping), d_m the item's observed values, lean and taste learned.
    No item takes part in its own means, so nothing can be learned by heart: a hidden item stands
    in training where a new one stands later.
    """

    def __init__(self, task: Task, source: Source, tellers: Sequence[nn.Module] = ()) -> None:
        super().__init__(task, tellers)
        self.source = source
        self.lean = nn.Parameter(torch.ones(()))
        self.taste = nn.Parameter(torch.full((), TASTE))

    def _open(self, graph: InteractionGraph) -> Float[Tensor, " item"]:
        damping = self.log_dampings[1].exp()
        return damping / (graph.degrees[graph.n_users :] + damping)

    def _biases(self, graph: InteractionGraph, content: Content) -> Biases:
        own = super()._biases(graph, content)
        told = text_means(own.items, graph, content, self.source, N_ALIKE)
        return own._replace(items=own.items + self.lean * self._open(graph) * told)

    def _expected(
        self, biases: Biases, graph: InteractionGraph, pairs: Pairs, content: Content
    ) -> Float[Tensor, " pair"]:
        expected = super()._expected(biases, graph, pairs, content)
        few = torch.nonzero(graph.degrees[graph.n_users + pairs.items] < FEW).flatten()
        if not len(few) or not len(graph):
            return expected
        asked = Pairs(pairs.users[few], pairs.items[few])
        with torch.no_grad():
            rest = graph.values - biases.of(graph.users, graph.items)
            told = taste_for(rest, graph, asked, content, by_meaning(content, self.source))
        own = self.taste * self._open(graph)[asked.items] * told
        return expected.index_add(0, few, own.to(expected.dtype))
