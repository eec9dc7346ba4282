"""What a value is: a yes/no, or a number between bounds."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from corginet.config import Config
from corginet.errors import UserError


class Task(Config):
    """The kind of value to predict, with its bounds."""

    kind: Literal["binary", "rating"] = Field(description="yes/no, or a number")
    low: float = Field(description="smallest possible value")
    high: float = Field(description="largest possible value")

    @property
    def binary(self) -> bool:
        return self.kind == "binary"

    @property
    def scale(self) -> float:
        """Half the width of the range: what one unit of a network's output means."""
        return (self.high - self.low) / 2

    def clip(self, values: np.ndarray) -> np.ndarray:
        return np.clip(values, self.low, self.high)


def infer_task(values: np.ndarray, stated: str | None, bounds: tuple[float, float] | None) -> Task:
    """Binary where every value is 0 or 1, unless the user states otherwise."""
    zero_one = bool(np.isin(values, (0.0, 1.0)).all())
    kind = stated or ("binary" if zero_one and bounds in (None, (0.0, 1.0)) else "rating")
    if kind not in ("binary", "rating"):
        raise UserError(f"unknown task '{kind}'; use --task binary or --task rating")
    if kind == "binary":
        if not zero_one:
            bad = values[~np.isin(values, (0.0, 1.0))][0]
            raise UserError(f"task binary needs values 0 and 1, got {bad:g}; pass --task rating")
        return Task(kind="binary", low=0, high=1)
    low, high = bounds or (float(values.min()), float(values.max()))
    if not low < high:
        raise UserError(
            f"all values are {low:g}: nothing to learn; check the value column or pass --bounds"
        )
    return Task(kind="rating", low=low, high=high)
