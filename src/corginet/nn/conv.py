"""What every convolution is: states of all nodes in, states of all nodes out."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from corginet.data.graph import InteractionGraph

States = Float[Tensor, "node channel"]
EdgeContent = Float[Tensor, "edge channel"]
NO_CONTENT: tuple[None, None] = (None, None)


class Conv(nn.Module):
    """A layer: messages along edges, gathered at each node, and an update of its state.

    `content` holds what travels with the messages beside states and values: one vector per
    edge for messages to users, one for messages to items; None where there is nothing.
    """

    def forward(
        self,
        graph: InteractionGraph,
        states: States,
        content: tuple[EdgeContent | None, EdgeContent | None] = NO_CONTENT,
    ) -> States:
        raise NotImplementedError
