"""A run folder: self-contained, without pickle, complete or not there at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from corginet.data.ratings import Ratings
from corginet.data.splits import PARTS, Split
from corginet.data.task import Task
from corginet.data.vocabulary import Vocabulary
from corginet.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from torch import Tensor

FILES = ("config.toml", "weights.safetensors", "ids.parquet", "graph.parquet", "metrics.json")


@dataclass(frozen=True, eq=False)
class Saved:
    """What a run folder holds, beside weights and content."""

    config: dict[str, Any]
    ratings: Ratings
    texts: list[str]
    split: Split
    metrics: dict[str, Any]
    history: list[dict[str, float]]
    versions: dict[str, Any]


@contextmanager
def complete_or_absent(out: Path, overwrite: bool = False) -> Iterator[Path]:
    """A folder to write into that gets its final name only when all of it is written."""
    check_free(out, overwrite)
    building = out.with_name(out.name + ".building")
    shutil.rmtree(building, ignore_errors=True)
    try:
        building.mkdir(parents=True)
        yield building
        if out.exists():
            shutil.rmtree(out)
        os.replace(building, out)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise


def check_free(out: Path, overwrite: bool) -> None:
    """Refuse to write over something that is in the way."""
    if out.exists() and not overwrite:
        raise UserError(f"{out} exists; choose another --out or pass --overwrite")
    if out.exists() and not (out.is_dir() and ((out / "config.toml").exists() or _empty(out))):
        raise UserError(f"{out} is not a run folder; it is not overwritten, choose another --out")
    parent = out.absolute().parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise UserError(f"{out}: cannot write into {parent}; choose another --out")


def _empty(folder: Path) -> bool:
    return not any(folder.iterdir())


def write_run(folder: Path, saved: Saved, weights: dict[str, Tensor]) -> None:
    """Everything but the content store, which the caller puts into folder/content."""
    import polars as pl
    import tomli_w
    from safetensors.torch import save_file

    task = {"task": saved.ratings.task.model_dump()}
    (folder / "config.toml").write_text(tomli_w.dumps(_no_nulls(saved.config | task)), "utf-8")
    save_file(
        {k: v.detach().contiguous() for k, v in weights.items()}, folder / "weights.safetensors"
    )
    ratings = saved.ratings
    users = pl.DataFrame({"side": "user", "id": ratings.user_ids.ids, "text": ""})
    items = pl.DataFrame({"side": "item", "id": ratings.item_ids.ids, "text": saved.texts})
    pl.concat([users, items]).write_parquet(folder / "ids.parquet")
    edges = {
        "user": ratings.users,
        "item": ratings.items,
        "value": ratings.values,
        "part": saved.split.part,
    }
    if ratings.times is not None:
        edges["time"] = ratings.times
    pl.DataFrame(edges).write_parquet(folder / "graph.parquet")
    with (folder / "history.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in saved.history)
    _write_json(folder / "metrics.json", saved.metrics)
    _write_json(folder / "versions.json", saved.versions)


def read_run(folder: Path) -> Saved:
    """Read a run folder; say in one sentence what is wrong with it."""
    import polars as pl

    from corginet.config import read_toml

    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        near = did_you_mean(folder.name, _siblings(folder))
        raise UserError(f"{folder} is not a run folder: no {missing[0]} in it{near}")
    config = read_toml(folder / "config.toml")
    try:
        task = Task.model_validate(config.pop("task"))
        ids = pl.read_parquet(folder / "ids.parquet")
        edges = pl.read_parquet(folder / "graph.parquet")
        metrics = json.loads((folder / "metrics.json").read_text("utf-8"))
        versions = json.loads((folder / "versions.json").read_text("utf-8"))
        lines = (folder / "history.jsonl").read_text("utf-8").splitlines()
    except Exception as error:
        first = str(error).strip().splitlines()[0]
        raise UserError(f"{folder}: a damaged run folder ({first}); fit it again") from None
    items = ids.filter(pl.col("side") == "item")
    ratings = Ratings(
        edges["user"].to_numpy(writable=True),
        edges["item"].to_numpy(writable=True),
        edges["value"].to_numpy(writable=True),
        Vocabulary(ids.filter(pl.col("side") == "user")["id"]),
        Vocabulary(items["id"]),
        task,
        edges["time"].to_numpy() if "time" in edges.columns else None,
    )
    split = Split(edges["part"].to_numpy(writable=True).astype(np.int8))
    texts = items["text"].to_list()
    return Saved(config, ratings, texts, split, metrics, [json.loads(x) for x in lines], versions)


def _siblings(folder: Path) -> list[str]:
    parent = folder.parent
    return [p.name for p in parent.iterdir() if p.is_dir()] if parent.is_dir() else []


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _no_nulls(tree: dict[str, Any]) -> dict[str, Any]:
    """TOML has no null: a field that is None is left out."""
    return {k: _no_nulls(v) if isinstance(v, dict) else v for k, v in tree.items() if v is not None}


def part_counts(split: Split) -> dict[str, int]:
    return {name: int((split.part == number).sum()) for number, name in enumerate(PARTS)}
