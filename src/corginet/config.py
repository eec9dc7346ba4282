"""Configs: one frozen class per part holds type, default, help and validation.

The command line, config files and reference docs are derived from these classes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

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


def choices_of_kind(config: Config, prefix: str = "") -> Iterator[str]:
    """Dotted paths of the nested parts that come in several kinds."""
    for name in type(config).model_fields:
        part = getattr(config, name)
        if isinstance(part, Config):
            if "kind" in type(part).model_fields:
                yield prefix + name
            yield from choices_of_kind(part, f"{prefix}{name}.")


def override(config: C, changes: Mapping[str, Any], name: str = "config") -> C:
    """Set fields by leaf name ('epochs') or dotted path ('model.readout.dropout').

    A leaf name that several parts have sets all of them: '--dropout 0.3' means everywhere.
    A part that comes in kinds is exchanged whole, for the kind's defaults: '--conv gat'. Parts
    are exchanged before fields are set.
    """
    tree = config.model_dump()
    kinds = list(choices_of_kind(config))
    exchanged = {key: value for key, value in changes.items() if _named(key, kinds)}
    for key, value in exchanged.items():
        for path in _named(key, kinds):
            _put(tree, path, value if isinstance(value, Mapping) else {"kind": value})
    if exchanged:
        config = validate(type(config), tree, name)
        tree = config.model_dump()
        changes = {key: value for key, value in changes.items() if key not in exchanged}
    known = {path: info for path, info, _ in fields(config)}
    for key, value in changes.items():
        found = _named(key, known)
        if not found:
            leaves = sorted({p.rsplit(".", 1)[-1] for p in [*known, *kinds]})
            raise UserError(
                f"unknown option '--{key.replace('_', '-')}' for {name}"
                f"{did_you_mean(key.replace('-', '_'), leaves)} Its fields: "
                + ", ".join(leaf.replace("_", "-") for leaf in leaves)
            )
        for path in found:
            may_lack = type(None) in get_args(known[path].annotation)
            _put(tree, path, None if value == "none" and may_lack else value)
    return validate(type(config), tree, name)


def _named(key: str, paths: Iterable[str]) -> list[str]:
    """The dotted paths that are meant by a path or by its last part."""
    wanted = key.replace("-", "_")
    return [p for p in paths if p == wanted or p.rsplit(".", 1)[-1] == wanted]


def _put(tree: dict[str, Any], path: str, value: Any) -> None:
    *parents, leaf = path.split(".")
    for parent in parents:
        tree = tree[parent]
    tree[leaf] = value


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
    if error["type"] == "value_error" and isinstance(error["input"], Mapping):
        return str(error["ctx"]["error"])  # of parts together: no single value is to blame
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
    """Lay one tree of settings over another; a part of another kind takes the old one's place."""
    out = dict(base)
    for key, value in changes.items():
        old: Any = out.get(key)
        both = isinstance(value, Mapping) and isinstance(old, Mapping)
        alike = both and value.get("kind", old.get("kind")) == old.get("kind")
        out[key] = merge(old, value) if alike else value
    return out


DEFAULT_RECIPE = "corgi-plus"  # what fit uses unless told otherwise
