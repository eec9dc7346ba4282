"""What commands print: one JSON document on stdout, or tables for people; the rest on stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corginet.training.trainer import Progress


def emit(result: Mapping[str, Any], as_json: bool, show: Callable[[], None]) -> None:
    """Print the result as JSON, or let `show` print it for people."""
    if as_json:
        print(json.dumps(_plain(result), indent=1, allow_nan=False))
    else:
        show()


def _plain(value: Any) -> Any:
    """Numbers of numpy as Python's; what is not a number becomes null."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def say(text: str) -> None:
    """A line for people, on stderr."""
    print(text, file=sys.stderr, flush=True)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table on stdout."""
    from rich.console import Console
    from rich.table import Table

    out = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for i, column in enumerate(columns):
        out.add_column(column, justify="left" if i == 0 else "right", overflow="fold")
    for row in rows:
        out.add_row(*(_cell(value) for value in row))
    Console().print(out)


def _cell(value: object) -> str:
    from rich.markup import escape

    return f"{value:.4f}" if isinstance(value, float) else escape(str(value))


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int, str], None]]:
    """A bar on stderr: call it with done, total and a note."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=1, note="")
        yield lambda done, total, note: bar.update(task, completed=done, total=total, note=note)


@contextmanager
def watched(estimator: Any) -> Iterator[None]:
    """Show an estimator's encoding and training as bars with the time left."""
    with progress("encoding texts") as encoding:
        estimator.on_encode = lambda done, total, speed: encoding(
            done, total, f"{speed:,.0f} words/s"
        )
        with progress("training") as training:

            def show(p: Progress) -> None:
                loss = "" if p.validation_loss is None else f"validation {p.validation_loss:.4f}"
                left = f"at most {p.seconds_left:.0f} s unless it improves"
                training(p.epoch, p.epochs, f"{loss}, best in epoch {p.best_epoch}, {left}")

            estimator.on_epoch = show
            yield
