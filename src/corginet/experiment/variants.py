"""A file of contenders: recipes under names of their own, each with settings and texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from corginet.config import read_toml
from corginet.errors import UserError, check_choice
from corginet.experiment.contenders import Contender, TextUse
from corginet.experiment.settings import Settings, check_known
from corginet.recipes import recipe


def read_variants(path: Path, shared: Settings) -> list[Contender]:
    """One contender per table of a TOML file: its recipe, its `text`, the rest are settings.

    Settings that all contenders share give way to a variant's own.
    """
    found = read_toml(path)
    if not found:
        raise UserError(f"{path}: no variants in it; write ['name'], recipe = '…', setting = …")
    return [_contender(path, label, about, shared) for label, about in found.items()]


def _contender(path: Path, label: str, about: Any, shared: Settings) -> Contender:
    where = f"{path}: variant '{label}'"
    if not isinstance(about, dict) or not isinstance(about.get("recipe"), str):
        raise UserError(f"{where} names no recipe; write recipe = 'NAME' below ['{label}']")
    own = dict(about)
    name, text = recipe(own.pop("recipe")).name, str(own.pop("text", "real"))
    check_choice(f"{where}, text", text, get_args(TextUse))
    check_known([name], own, where)
    return Contender(name, {**shared, **own}, text, label=label)  # type: ignore[arg-type]
