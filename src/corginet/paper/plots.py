"""Line plots and files of figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

matplotlib.use("Agg")
import matplotlib.pyplot as plt

# told apart by colour-blind readers too
CYCLE = ("#c8102e", "#0072b2", "#e69f00", "#009e73", "#56b4e9", "#cc79a7", "#4d4d4d")
MARKERS = ("o", "s", "^", "D", "v", "P", "x")


class Line(NamedTuple):
    """Points of one series; an error may be missing."""

    x: Sequence[float]
    y: Sequence[float]
    errors: Sequence[float | None]


def lines(
    series: Mapping[str, Line],
    x_label: str,
    y_label: str,
    ticks: Sequence[str] = (),
    log_x: bool = False,
) -> Figure:
    """One line with error bars per series; ticks name the points 0, 1, 2, …"""
    figure, axes = plt.subplots(figsize=(7, 4))
    for number, (name, line) in enumerate(series.items()):
        colour, marker = CYCLE[number % len(CYCLE)], MARKERS[number % len(MARKERS)]
        errors = [e or 0.0 for e in line.errors] if any(line.errors) else None
        axes.errorbar(
            line.x, line.y, errors, color=colour, marker=marker, label=name, capsize=2, markersize=5
        )
    if log_x:
        axes.set_xscale("log", base=2)
        marks = sorted({x for line in series.values() for x in line.x})
        axes.set_xticks(marks, [f"{x:g}" for x in marks])
    if ticks:
        axes.set_xticks(range(len(ticks)), ticks)
    finish(axes, x_label, y_label, legend=len(series) > 1)
    return figure


def finish(axes: Axes, x_label: str, y_label: str, legend: bool = True) -> None:
    """Labels, no box, a legend without a frame."""
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.spines[["top", "right"]].set_visible(False)
    if legend:
        axes.legend(frameon=False)


def save_figure(figure: Figure, folder: Path, name: str) -> list[Path]:
    """As PNG and SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{suffix}" for suffix in ("png", "svg")]
    for path in paths:
        figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)
    return paths
