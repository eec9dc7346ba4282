"""The tables and figures by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from corginet.errors import UserError, did_you_mean
from corginet.paper.request import Findings, Request

# name → home; those of NEED_NO_DATA make their own data
COMMANDS = {
    "table1": "corginet.paper.tables:table1",
    "table2": "corginet.paper.tables:table2",
    "table3": "corginet.paper.tables:table3",
    "table4": "corginet.paper.inductive:table4",
    "fig2": "corginet.paper.synthetic_figure:fig2",
    "attention": "corginet.paper.words:attention",
    "degree": "corginet.paper.curves:degree",
    "truncation": "corginet.paper.curves:truncation",
    "caching": "corginet.paper.variants:caching",
    "combination": "corginet.paper.variants:combination",
    "bidirectional": "corginet.paper.variants:bidirectional",
}
NEED_NO_DATA = ("fig2",)


def command(name: str) -> Callable[[Request], Findings]:
    """The function that makes a table or figure."""
    if name not in COMMANDS:
        near = did_you_mean(name, COMMANDS) or ";"
        raise UserError(f"the paper has no '{name}' here{near} use one of {', '.join(COMMANDS)}")
    module, _, function = COMMANDS[name].partition(":")
    found: Callable[[Request], Findings] = getattr(import_module(module), function)
    return found
