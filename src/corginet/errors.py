"""The one exception that users see, and the wording helpers that make it useful."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class UserError(Exception):
    """Something the user can put right: one sentence saying where, what was got, what to do.

    The command line prints it without a traceback and exits with 2; the HTTP API answers 4xx.
    """


def raise_together(where: str, problems: Sequence[str]) -> None:
    """Raise every problem at once, so that one look at the data fixes them all."""
    if len(problems) == 1:
        raise UserError(f"{where}: {problems[0]}")
    if problems:
        raise UserError(f"{where}: {len(problems)} problems:\n  - " + "\n  - ".join(problems))


def did_you_mean(got: str, known: Iterable[str]) -> str:
    """' did you mean 'x'?' when a known name is close, else ''."""
    close = difflib.get_close_matches(got, list(known), n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""


def plural(count: int, noun: str) -> str:
    """'1 row', '3 rows'."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def examples(values: Iterable[object], limit: int = 3) -> str:
    """The first few values, with '…' when there are more."""
    shown: list[str] = []
    more = False
    for value in values:
        if len(shown) == limit:
            more = True
            break
        shown.append(str(value))
    return ", ".join(shown) + (", …" if more else "")


def check_choice(name: str, got: str, allowed: Sequence[str]) -> None:
    """Refuse a value that is not one of the allowed ones."""
    if got not in allowed:
        raise UserError(
            f"{name} got '{got}'{did_you_mean(got, allowed) or ';'} use one of {', '.join(allowed)}"
        )
