"""How much every contender gets: seeds, trials, processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from corginet.config import Config
from corginet.experiment.contenders import Cell, Contender
from corginet.experiment.rows import Row
from corginet.experiment.settings import variants
from corginet.experiment.workers import n_cores


class PlanConfig(Config):
    """The same budget for all contenders."""

    seeds: int = Field(5, ge=1, le=1000, description="runs of each contender, by seed")
    seed: int = Field(0, ge=0, lt=2**31, description="the first seed; others count up from it")
    grid: dict[str, tuple[Any, ...]] = Field({}, description="settings tried, chosen by validation")
    tune_seeds: Literal["first", "every"] = Field(
        "first", description="whether settings are chosen on the first seed, or on every seed anew"
    )
    jobs: int = Field(0, ge=0, le=1024, description="processes at once; 0 takes one per core")

    @property
    def all_seeds(self) -> list[int]:
        return list(range(self.seed, self.seed + self.seeds))

    @property
    def n_processes(self) -> int:
        return self.jobs or n_cores()

    def trials(self, contender: Contender) -> list[Cell]:
        """The cells that choose the contender's settings; none where there is no choice."""
        offered = variants(contender.recipe, self.grid)
        if len(offered) == 1:
            return []
        tuned = self.all_seeds if self.tune_seeds == "every" else [self.seed]
        return [Cell(contender, seed, trial) for seed in tuned for trial in offered]

    def tuned_on(self, seed: int) -> int:
        """The seed whose trials choose the settings of this one."""
        return seed if self.tune_seeds == "every" else self.seed

    def final(self, contender: Contender, seed: int, trials: Sequence[tuple[Cell, Row]]) -> Cell:
        """The cell that is scored: its settings have the lowest validation loss of the trials."""
        offered = variants(contender.recipe, self.grid)
        if len(offered) == 1:
            return Cell(contender, seed, offered[0])
        mine = [(cell, row) for cell, row in trials if cell.seed == self.tuned_on(seed)]
        best, _ = min(mine, key=lambda found: found[1]["validation_loss"])
        return Cell(contender, seed, best.trial)
