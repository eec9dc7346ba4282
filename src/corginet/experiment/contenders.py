"""What is compared: a contender is a recipe with its settings, a cell one fit of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from corginet import __version__
from corginet.config import override
from corginet.data.dataset import Dataset
from corginet.experiment.settings import settings_for
from corginet.recipes import RunConfig, recipe

TextUse = Literal["real", "none", "random", "permuted"]
CONTROLS: tuple[TextUse, ...] = ("none", "random", "permuted")


@dataclass(frozen=True)
class Contender:
    """A line of the comparison: a recipe, settings of its own, and the texts it gets.

    Of the users, the share `held_out` is unseen in training; where it is 0, the recipe's own
    split decides.
    """

    recipe: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    text: TextUse = "real"
    held_out: float = 0.0
    label: str = ""

    @property
    def name(self) -> str:
        return self.label or self.recipe + ("" if self.text == "real" else f":{self.text}")


@dataclass(frozen=True)
class Cell:
    """One fit: a contender, a seed, and the settings of a trial."""

    contender: Contender
    seed: int
    trial: Mapping[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, Any]:
        """What is changed of the recipe; the trial's settings win."""
        mine = settings_for(self.contender.recipe, self.contender.settings)
        return mine | settings_for(self.contender.recipe, self.trial)

    @property
    def config(self) -> RunConfig:
        name = self.contender.recipe
        changes = {**self.settings, "seed": self.seed}
        return override(recipe(name).config, changes, f"recipe '{name}'")


def data_digest(dataset: Dataset) -> str:
    """A hash of all that a fit reads: ratings, times, texts, and what the values mean."""
    r = dataset.ratings
    digest = hashlib.sha256(r.fingerprint().encode())
    digest.update(r.task.model_dump_json().encode())
    digest.update(json.dumps(dataset.texts).encode())
    if r.times is not None:
        digest.update(r.times.tobytes())
    return digest.hexdigest()[:16]


def cell_id(cell: Cell, data: str, encoder: str) -> str:
    """The cell's name in the journal: it changes whenever its numbers could."""
    spec = {
        "data": data,
        "text": cell.contender.text,
        "held_out": cell.contender.held_out,
        "config": cell.config.model_dump(mode="json"),
        "encoder": encoder,
        "version": __version__,
    }
    return hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:16]
