"""Settings that are given to several recipes at once, each taking those that it has."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from corginet.config import choices_of_kind, fields
from corginet.errors import UserError, did_you_mean
from corginet.recipes import recipe

Settings = Mapping[str, Any]
ALL_DROPOUTS = "dropout"
PAPER_GRID: dict[str, tuple[Any, ...]] = {ALL_DROPOUTS: (0.1, 0.3, 0.5, 0.7)}


def fields_of(recipe_name: str) -> set[str]:
    """The names of a recipe's settings and exchangeable parts, by leaf and by path."""
    config = recipe(recipe_name).config
    paths = [*(path for path, _, _ in fields(config)), *choices_of_kind(config)]
    return {*paths, *(path.rsplit(".", 1)[-1] for path in paths)}


def settings_for(recipe_name: str, settings: Settings) -> dict[str, Any]:
    """Those of the settings that the recipe has; 'dropout' becomes each of its dropouts."""
    known = fields_of(recipe_name)
    found: dict[str, Any] = {}
    if ALL_DROPOUTS in settings:
        dropouts = {name for name in known if name.endswith("_dropout") and "." not in name}
        found |= dict.fromkeys(sorted(dropouts), settings[ALL_DROPOUTS])
    names = {name: name.replace("-", "_") for name in settings}
    return found | {names[k]: v for k, v in settings.items() if names[k] in known}


def variants(recipe_name: str, grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """The distinct settings that a grid offers a recipe; one, empty, where it has none of them."""
    found = [
        settings_for(recipe_name, dict(zip(grid, values, strict=True)))
        for values in itertools.product(*grid.values())
    ]
    return [one for n, one in enumerate(found) if one not in found[:n]]


def check_known(recipe_names: Iterable[str], names: Iterable[str], option: str) -> None:
    """Refuse a setting that none of the recipes has."""
    known = set().union(*(fields_of(name) for name in recipe_names)) | {ALL_DROPOUTS}
    for name in names:
        if name.replace("-", "_") not in known:
            near = did_you_mean(name.replace("-", "_"), known)
            raise UserError(
                f"{option} got '{name}', which is a setting of none of the recipes{near}; "
                "see corginet recipes NAME"
            )
