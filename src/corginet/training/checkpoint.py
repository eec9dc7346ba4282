"""Checkpoints: everything that the next step depends on, without pickle."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from corginet.errors import UserError

if TYPE_CHECKING:
    from corginet.training.averaging import AveragedWeights
    from corginet.training.trainer import Fitted


def write_checkpoint(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    rng: np.random.Generator,
    state: Fitted,
    best: dict[str, Tensor],
    average: AveragedWeights,
) -> None:
    """One file, replaced at once: an interruption leaves the old one or the new one."""
    tensors = {f"model.{k}": v for k, v in model.state_dict().items()}
    tensors |= {f"best.{k}": v for k, v in best.items()}
    tensors |= {f"average.{k}": v for k, v in average.weights.items()}
    tensors |= {f"cache.{n}.{k}": v for n, k, v in _caches(model)}
    for number, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{k}": torch.as_tensor(v) for k, v in moments.items()}
    tensors["torch_rng"] = torch.get_rng_state()
    about = {
        "rng": json.dumps(rng.bit_generator.state),
        "state": json.dumps(vars(state)),
        "averaged": json.dumps(average.epochs),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    save_file({k: v.detach().contiguous() for k, v in tensors.items()}, fresh, about)
    os.replace(fresh, path)


def read_checkpoint(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    rng: np.random.Generator,
    state: Fitted,
    average: AveragedWeights,
) -> dict[str, Tensor]:
    """Put everything back in place; answers the best weights so far."""
    try:
        with safe_open(path, "pt") as file:
            about = file.metadata()
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        model.load_state_dict(_part(tensors, "model."))
    except Exception as error:
        first = str(error).strip().splitlines()[0]
        raise UserError(
            f"{path}: the checkpoint does not fit this data and recipe ({first}); "
            "start anew without --resume"
        ) from None
    groups = optimizer.state_dict()["param_groups"]
    moments: dict[int, dict[str, Tensor]] = {}
    for key, value in _part(tensors, "optimizer.").items():
        number, name = key.split(".", 1)
        moments.setdefault(int(number), {})[name] = value
    optimizer.load_state_dict({"state": moments, "param_groups": groups})
    modules = dict(model.named_modules())
    for key, value in _part(tensors, "cache.").items():
        module, name = key.rsplit(".", 1)
        stored: Any = modules[module].stored
        stored[name] = value
    average.weights, average.epochs = _part(tensors, "average."), json.loads(about["averaged"])
    torch.set_rng_state(tensors["torch_rng"])
    rng.bit_generator.state = json.loads(about["rng"])
    for name, value in json.loads(about["state"]).items():
        setattr(state, name, value)
    return _part(tensors, "best.")


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _caches(model: nn.Module) -> list[tuple[str, str, Tensor]]:
    """Values that layers keep between steps: (module, key, table)."""
    found = []
    for name, module in model.named_modules():
        stored = getattr(module, "stored", None)
        if isinstance(stored, dict):
            found += [(name, key, table) for key, table in stored.items()]
    return found
