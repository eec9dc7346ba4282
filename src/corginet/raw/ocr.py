"""Text of images, by an engine whose weights come in its package; no image is read twice."""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from corginet.errors import UserError
from corginet.raw.prepared import Progress

Box = tuple[float, float, float, str]  # left, top, bottom, text


class ImageReader(Protocol):
    """Anything that turns an image's bytes into text; its name keys the cache."""

    name: str

    def read(self, image: bytes) -> str: ...


class RapidReader:
    """RapidOCR (PP-OCR networks run by onnxruntime), reading upright lines of text."""

    def __init__(self, threads: int | None = None) -> None:
        try:
            import rapidocr
        except ImportError as error:
            raise UserError(
                f"reading images needs the package {error.name or 'rapidocr'}, which is not "
                "installed; pip install 'corginet[ocr]'"
            ) from None
        # with its weights missing the engine would fetch them; all work here is offline
        if len(list((Path(rapidocr.__file__).parent / "models").glob("*.onnx"))) < 3:
            raise UserError(
                f"rapidocr {version('rapidocr')} comes without its weights; "
                "pip install --force-reinstall 'corginet[ocr]'"
            )
        self.name = f"rapidocr-{version('rapidocr')}"
        limits = {"EngineConfig.onnxruntime.intra_op_num_threads": threads or _cores()}
        self._engine: Any = rapidocr.RapidOCR(params={"Global.log_level": "critical"} | limits)

    def read(self, image: bytes) -> str:
        found = self._engine(_pixels(image), use_cls=False)
        if not found.txts:
            return ""
        boxes = [
            (float(box[:, 0].min()), float(box[:, 1].min()), float(box[:, 1].max()), text)
            for box, text in zip(found.boxes, found.txts, strict=True)
        ]
        return in_reading_order(boxes)


def _cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _pixels(image: bytes) -> Any:
    """The decoded image, blue first as the engine wants it, transparency on white."""
    import numpy as np
    from PIL import Image, ImageOps

    opened = ImageOps.exif_transpose(Image.open(io.BytesIO(image))).convert("RGBA")
    page = Image.new("RGBA", opened.size, "white")
    page.alpha_composite(opened)
    return np.ascontiguousarray(np.asarray(page.convert("RGB"))[:, :, ::-1])


def in_reading_order(boxes: Sequence[Box]) -> str:
    """Boxes whose middles lie on one line make a row, left to right; one row per line of text."""
    rows: list[list[Box]] = []
    for box in sorted(boxes, key=lambda b: b[1] + b[2]):
        middle = (box[1] + box[2]) / 2
        if rows and middle < rows[-1][0][2] and box[1] < sum(rows[-1][0][1:3]) / 2:
            rows[-1].append(box)
        else:
            rows.append([box])
    lines = (" ".join(" ".join(b[3] for b in sorted(row)).split()) for row in rows)
    return "\n".join(line for line in lines if line)


class TextCache:
    """Texts by content hash in one append-only file; a torn last line counts for nothing."""

    def __init__(self, file: Path) -> None:
        self.file, self.texts = file, dict[str, str]()
        if file.exists():
            for line in file.read_text("utf-8", errors="replace").splitlines():
                try:
                    row = json.loads(line)
                    self.texts[str(row["image"])] = str(row["text"])
                except (ValueError, KeyError, TypeError):
                    continue
            _end_line(file)

    def add(self, key: str, text: str) -> None:
        self.texts[key] = text
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8") as out:
            out.write(json.dumps({"image": key, "text": text}) + "\n")


def _end_line(file: Path) -> None:
    """What an interruption cut off must not swallow the next line."""
    content = file.read_bytes()
    if content and not content.endswith(b"\n"):
        with file.open("ab") as out:
            out.write(b"\n")


def cache_file(name: str) -> Path:
    """Where texts of images are kept; CORGINET_CACHE moves it."""
    root = os.environ.get("CORGINET_CACHE") or Path.home() / ".cache" / "corginet"
    return Path(root) / "ocr" / f"{name}.jsonl"


def read_images(
    images: Mapping[str, Path], reader: ImageReader, progress: Progress | None = None
) -> tuple[dict[str, str], int]:
    """The text of each image, and how many had to be read; interrupted, the next call goes on."""
    cache = TextCache(cache_file(reader.name))
    keys = {k: hashlib.sha256(path.read_bytes()).hexdigest() for k, path in images.items()}
    wanted = {key: images[k] for k, key in keys.items() if key not in cache.texts}
    started = time.perf_counter()
    for number, (key, path) in enumerate(wanted.items(), 1):
        cache.add(key, _read(reader, path))
        if progress:
            seconds = (time.perf_counter() - started) / number
            progress(number, len(wanted), f"{seconds:.1f} s per image")
    return {k: cache.texts[key] for k, key in keys.items()}, len(wanted)


def _read(reader: ImageReader, path: Path) -> str:
    try:
        return reader.read(path.read_bytes())
    except (OSError, ValueError, SyntaxError) as error:
        raise UserError(
            f"{path}: not readable as an image ({type(error).__name__}: {str(error)[:100]}); "
            "download it again or remove it; the images read before are kept"
        ) from None
