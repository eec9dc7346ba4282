"""Are the explanations of a run true of its model, in general?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from corginet.errors import UserError
from corginet.estimator import Estimator
from corginet.experiment.statistics import mean_and_error, paired_p
from corginet.explain import MEANING, ask_about, removals, word_weights

Told = Callable[[int, int, str], None]  # pairs done, pairs in all, a note


def no_one(done: int, total: int, note: str) -> None:
    """Nobody watches."""


def study(
    estimator: Estimator, n_pairs: int = 50, top: int = 3, seed: int = 0, told: Told = no_one
) -> dict[str, Any]:
    """The same check on random pairs of the scored part: are the weights true in general?

    Items with too few words to tell the top ones from others are left out.
    """
    pairs, _ = estimator.scored_pairs()
    content = estimator.content()
    wanted = torch.nonzero(content.words.counts[pairs.items] >= 2 * top).flatten().numpy()
    if not len(wanted):
        raise UserError(
            f"no pair of the scored part has an item with {2 * top} words that this recipe reads; "
            "lower --top, or fit a recipe that reads words"
        )
    drawn = np.random.default_rng(seed).permutation(wanted)[:n_pairs]
    moved, by_chance, sources = [], [], []
    for number, row in enumerate(drawn.tolist(), 1):
        ask = ask_about(estimator, content, int(pairs.users[row]), int(pairs.items[row]))
        weights, source = word_weights(ask, ask.gradients())
        one, other = removals(ask, weights, top, seed + number)
        moved.append(one)
        by_chance.append(other)
        sources.append(source)
        told(number, len(drawn), "")
    gains = np.subtract(moved, by_chance)
    mean, error = mean_and_error(gains.tolist())
    return {
        "pairs": len(drawn),
        "top": top,
        "source": sources[0],
        "moved_by_top_words": float(np.mean(moved)),
        "moved_by_random_words": float(np.mean(by_chance)),
        "faithfulness": mean,
        "standard_error": error,
        "share_above_0": float((gains > 0).mean()),
        "p": paired_p(moved, by_chance),
        "faithfulness_meaning": MEANING,
    }
