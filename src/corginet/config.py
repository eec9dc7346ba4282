"""Configs: one frozen class per part holds type, default, help and validation.

The command line, config files and reference docs are derived from these classes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError
from pydantic.fields import FieldInfo

from corginet.errors import UserError, did_you_mean, raise_together


class Config(BaseModel):
    """A frozen part config that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


C = TypeVar("C", bound=Config)


def searched(low: float, high: float, log: bool = False) -> dict[str, JsonValue]:
    """Beside a field: the range in which `corginet tune` looks for its value."""
    return {"search": {"low": low, "high": high, "log": log}}


def searched_among(*choices: int | float) -> dict[str, JsonValue]:
    """Beside a field: the values that `corginet tune` tries."""
    return {"search": {"choices": list(choices)}}


def fields(config: Config, prefix: str = "") -> Iterator[tuple[str, FieldInfo, Any]]:
    """Every leaf field of a config and its nested parts, as (dotted path, field, value)."""
    for name, info in type(config).model_fields.items():
        value = getattr(config, name)
        if isinstance(value, Config):
            yield from fields(value, f"{prefix}{name}.")
        elif name != "kind":
            yield prefix + name, info, value


def override(config: C, changes: Mapping[str, Any], name: str = "config") -> C:
    """Set fields by leaf name ('epochs') or dotted path ('model.readout.dropout').

    A leaf name that several parts have sets all of them: '--dropout 0.3' means everywhere.
    """
    paths = [path for path, _, _ in fields(config)]
    tree = config.model_dump()
    for key, value in changes.items():
        wanted = key.replace("-", "_")
        found = [p for p in paths if p == wanted or p.rsplit(".", 1)[-1] == wanted]
        if not found:
            leaves = sorted({p.rsplit(".", 1)[-1] for p in paths})
            raise UserError(
                f"unknown option '--{key.replace('_', '-')}' for {name}"
                f"{did_you_mean(wanted, leaves)} Its fields: "
                + ", ".join(leaf.replace("_", "-") for leaf in leaves)
            )
        for path in found:
            *parents, leaf = path.split(".")
            node = tree
            for parent in parents:
                node = node[parent]
            node[leaf] = value
    return validate(type(config), tree, name)


def validate(kind: type[C], tree: Mapping[str, Any], where: str) -> C:
    """Build a config from plain data, with every problem in one readable error."""
    try:
        return kind.model_validate(tree)
    except ValidationError as error:
        raise_together(where, [_sentence(e) for e in error.errors()])
        raise AssertionError from error  # raise_together always raises here


def _sentence(error: Any) -> str:
    path = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"unknown field '{path}'; remove it"
    return f"'{path}' got {error['input']!r}; {error['msg'][:1].lower()}{error['msg'][1:]}"


def read_toml(path: Path) -> dict[str, Any]:
    """Read a config file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such config file; write one or leave --config out") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, IsADirectoryError) as error:
        raise UserError(f"{path}: not a TOML file ({error}); see docs/configuration.md") from None


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Lay one tree of settings over another."""
    out = dict(base)
    for key, value in changes.items():
        both = isinstance(value, Mapping) and isinstance(out.get(key), Mapping)
        out[key] = merge(out[key], value) if both else value
    return out


DEFAULT_RECIPE = "corgi-plus"  # what fit uses unless told otherwise
