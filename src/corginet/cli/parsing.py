"""From words on the command line to what the library takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corginet.errors import UserError


def parse_columns(text: str | None) -> dict[str, str]:
    """'user=student,item=question' as a mapping from our names to theirs."""
    out = {}
    for part in filter(None, (text or "").split(",")):
        ours, equals, theirs = part.partition("=")
        if not equals or ours.strip() not in ("user", "item", "value", "text", "time", "vectors"):
            raise UserError(
                f"--columns got '{part}'; write user=YOURS,item=YOURS,value=YOURS,text=YOURS,"
                "time=YOURS"
            )
        out[ours.strip()] = theirs.strip()
    return out


def parse_bounds(text: str | None) -> tuple[float, float] | None:
    """'1:5' as two numbers."""
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        raise UserError(f"--bounds got '{text}'; write LOW:HIGH, for instance 1:5") from None
    if not low < high:
        raise UserError(f"--bounds got '{text}'; the first number must be the smaller")
    return low, high


def reading_options(
    columns: str | None,
    task: str | None,
    bounds: str | None,
    duplicates: str,
    missing: str,
    missing_text: str,
) -> Mapping[str, Any]:
    """The options of Dataset.read."""
    from corginet.errors import check_choice

    check_choice("--missing-text", missing_text, ("error", "allow"))
    return {
        "columns": parse_columns(columns),
        "task": task,
        "bounds": parse_bounds(bounds),
        "duplicates": duplicates,
        "missing": missing,
        "missing_text": missing_text,
    }
