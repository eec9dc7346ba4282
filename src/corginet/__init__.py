"""Predict what a user would give an item, when items carry text."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

# read once, when torch starts its threads. Spinning while waiting makes a busy machine 50 times
# slower, sleeping at once an idle one 6 times: spin for some microseconds, then sleep.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

__version__ = "0.1.0"
__all__ = ["Dataset", "Estimator", "Ratings", "UserError", "__version__"]

if TYPE_CHECKING:
    from corginet.data.dataset import Dataset
    from corginet.data.ratings import Ratings
    from corginet.errors import UserError
    from corginet.estimator import Estimator

_HOMES = {
    "Dataset": "corginet.data.dataset",
    "Estimator": "corginet.estimator",
    "Ratings": "corginet.data.ratings",
    "UserError": "corginet.errors",
}


def __getattr__(name: str) -> Any:
    """Import on first use, so that 'corginet --help' need not wait for torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'corginet' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
