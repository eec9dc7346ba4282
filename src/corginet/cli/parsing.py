"""From words on the command line to what the library takes."""

from __future__ import annotations

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
