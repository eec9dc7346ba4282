"""What a pair looks like to a plain regression: statistics of both sides, and the item's text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor, nn

from corginet.data.graph import InteractionGraph
from corginet.data.task import Task
from corginet.models.plain import BiasModel
from corginet.nn.content import Content
from corginet.nn.readout import Pairs
from corginet.nn.sparse import SparseMatrix

if TYPE_CHECKING:
    from corginet.training.trainer import TrainingData

N_FOLDS = 10  # parts of the training edges; each one's statistics come from the others
PROFILE_DAMPING = 5.0  # in values of 0, as for biases
N_STATISTICS = 7


class PairFeatures(nn.Module):
    """Numbers that describe a (user, item) pair, from observed edges and the item's text.

    Biases of both, their sum, log degrees; the principal components of the item's text vector;
    and the match of that with the user's profile, the average of the texts they met, weighted
    by how far each value lay from what biases say.
    """

    def __init__(self, task: Task, summary: str, dim: int, n_components: int) -> None:
        super().__init__()
        self.summary, self.bias = summary, BiasModel(task)
        self.width = N_STATISTICS + min(dim, n_components)
        self.register_buffer("centre", torch.zeros(dim))
        self.register_buffer("components", torch.zeros(dim, self.width - N_STATISTICS))
        self.centre: Tensor
        self.components: Tensor

    def fit(self, data: TrainingData) -> None:
        """Choose the dampings, and find the texts' principal components, scaled to variance 1."""
        self.bias.fit_closed_form(data)
        vectors = data.content.summaries[self.summary].double()
        self.centre.copy_(vectors.mean(0))
        centred = vectors - vectors.mean(0)
        values, directions = torch.linalg.eigh(centred.t() @ centred / max(1, len(vectors)))
        n = self.components.shape[1]
        scale = values[-n:].clamp(min=1e-8).rsqrt()
        self.components.copy_((directions[:, -n:] * scale).flip(1))

    def forward(
        self, graph: InteractionGraph, pairs: Pairs, content: Content
    ) -> Float[Tensor, "pair feature"]:
        texts = (content.summaries[self.summary].to(self.centre) - self.centre) @ self.components
        biases = self.bias.biases(graph)
        rest = graph.values - biases.of(graph.users, graph.items)
        degrees = graph.degrees.to(rest.dtype)
        shape = (graph.n_users, graph.n_items)
        inverse = 1 / (degrees[: graph.n_users] + PROFILE_DAMPING)
        weights = rest * inverse.index_select(0, graph.users)
        profiles = SparseMatrix(graph.users, graph.items, weights, shape) @ texts
        users, items = pairs.users, pairs.items
        of_item = texts.index_select(0, items)
        match = profiles.index_select(0, users) * of_item
        parts = (
            biases.users[users],
            biases.items[items],
            biases.of(users, items) - biases.mean,
            degrees[users].log1p(),
            degrees[graph.n_users + items].log1p(),
            match.sum(1),
            match[:, :8].sum(1),  # the few broadest directions by themselves
        )
        return torch.cat([torch.stack(parts, dim=1), of_item], dim=1)

    def out_of_fold(
        self, graph: InteractionGraph, content: Content
    ) -> tuple[Float[Tensor, "edge feature"], Float[Tensor, " edge"]]:
        """Features of every training edge and what remains after the mean it was shown.

        An edge's own fold is taken out of the graph that its statistics come from.
        """
        n = len(graph)
        folds = torch.randperm(n, generator=torch.Generator().manual_seed(0)) % N_FOLDS
        features = torch.zeros(n, self.width, dtype=graph.values.dtype)
        rest = graph.values.clone()
        for fold in range(N_FOLDS):
            asked = torch.nonzero(folds == fold).flatten()
            if not len(asked):
                continue
            others = graph.keep(folds != fold)
            pairs = Pairs(graph.users[asked], graph.items[asked])
            features[asked] = self(others, pairs, content)
            rest[asked] -= others.mean_value
        return features, rest
