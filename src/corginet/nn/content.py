"""What the model may read of the items' texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxtyping import Float, Int
from torch import Tensor

from corginet.nn.bag import Bag
from corginet.nn.words import Words


@dataclass(frozen=True, eq=False)
class Content:
    """Frozen text of all items: word vectors, one vector per item for each kind asked, stems."""

    words: Words
    summaries: Mapping[str, Float[Tensor, "item dim"]] = field(default_factory=dict)
    bag: Bag | None = None

    def for_items(self, items: Int[Tensor, " item"]) -> Content:
        """The content of a subset of the items, in its order."""
        return Content(
            self.words.for_items(items),
            {kind: table.index_select(0, items) for kind, table in self.summaries.items()},
            None if self.bag is None else self.bag.for_items(items),
        )
