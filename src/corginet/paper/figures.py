"""Figures of the synthetic experiment, as PNG and SVG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import torch

from corginet.data.synthetic import WORDS, Synthetic
from corginet.models.inspect import attention_weights
from corginet.nn.readout import Pairs
from corginet.paper.plots import save_figure
from corginet.paper.synthetic import Outcome, example_pairs, node_maps, word_numbers

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COLOURS = np.array(
    [
        [0.90, 0.62, 0.0],
        [0.34, 0.71, 0.91],
        [0.0, 0.62, 0.45],
        [0.80, 0.47, 0.65],
        [0.84, 0.37, 0.0],
    ]
)  # told apart by colour-blind readers too


def save_figures(data: Synthetic, outcomes: list[Outcome], folder: Path) -> list[Path]:
    """Accuracies, t-SNE maps and attention bars; answers the PNG files."""
    drawn = draw_figures(data, outcomes)
    return [save_figure(figure, folder, name)[0] for name, figure in drawn.items()]


def draw_figures(data: Synthetic, outcomes: list[Outcome]) -> dict[str, Any]:
    """The same, not written yet."""
    by_name = {o.row.name: o for o in outcomes}
    shown = by_name["corgi_read"] if "corgi_read" in by_name else outcomes[-1]
    mapped = by_name.get("corgi_dp", shown)
    return {
        "accuracy": _accuracies(outcomes),
        "node_states": _maps(data, mapped),
        "attention": _bars(data, shown),
    }


def _accuracies(outcomes: list[Outcome]) -> Any:
    figure, axes = plt.subplots(figsize=(7, 0.45 * len(outcomes) + 1))
    names = [o.row.label for o in outcomes]
    values = [o.accuracy for o in outcomes]
    bars = axes.barh(names, values, color=["#8c8c8c" if "GCN" in n else "#c8102e" for n in names])
    axes.bar_label(bars, fmt="%.3f", padding=3, fontsize=9)
    axes.set_xlim(0, 1.1)
    axes.axvline(0.5, color="black", linewidth=0.8, linestyle=":")
    axes.set_xlabel("test accuracy (dotted: guessing)")
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _maps(data: Synthetic, outcome: Outcome) -> Any:
    """Items are coloured by the mix of their words, users by their focus word."""
    items, users = node_maps(outcome.estimator)
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.4))
    counts = np.maximum(data.holds.sum(1, keepdims=True), 1)
    colours = data.holds @ COLOURS / counts
    axes[0].scatter(*items.T, c=colours, s=9)
    axes[0].set_title("items, coloured by the words they hold")
    for word, colour in enumerate(COLOURS):
        mine = data.focus == word
        axes[1].scatter(*users[mine].T, color=colour, s=9, label=WORDS[word])
    axes[1].set_title("users, coloured by their focus word")
    axes[1].legend(title="focus word", markerscale=2, frameon=False, bbox_to_anchor=(1, 1))
    for ax in axes:
        ax.set(xticks=[], yticks=[])
    figure.suptitle(f"t-SNE of the final states: {outcome.row.label}")
    return figure


def _bars(data: Synthetic, outcome: Outcome) -> Any:
    """Weights of one pair whose item holds the focus word, and of one whose item does not."""
    examples = example_pairs(outcome.estimator, data)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True)
    content = outcome.estimator.content()
    for ax, (name, (user, item)) in zip(axes, examples.items(), strict=True):
        pair = Pairs(torch.tensor([user]), torch.tensor([item]))
        found = attention_weights(
            outcome.estimator.model, outcome.estimator.training_graph(), pair, content
        )
        place, weights = list(found.items())[-1]
        words = word_numbers(content, pair)[0]
        real = words >= 0
        labels = [WORDS[w] for w in words[real].tolist()]
        focus = WORDS[data.focus[user]]
        colours = ["#c8102e" if label == focus else "#8c8c8c" for label in labels]
        ax.bar(labels, weights[0, : len(words)][real].numpy(), color=colours)
        ax.set_title(f"{name} the focus word '{focus}'", fontsize=10)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel(f"attention weight ({place})")
    return figure
