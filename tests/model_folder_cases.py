"""A model folder to read, damage and replace."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import torch

from kofn import _model_folder
from kofn._model_folder import write_model

FACTS = {"classes": ["näin", "no"], "history": [0.1, math.nan, math.inf], "params": {"seed": None, "rate": 1e-05}}
TENSORS = {"0.weight": torch.arange(6.0).reshape(2, 3), "steps": torch.tensor(7)}


def saved(folder: Path) -> Path:
    write_model(folder, kind="LLPClassifier", facts=FACTS, tensors=TENSORS)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def forge(folder: Path, **changes: object) -> None:
    """Change the document and make its digest right again."""
    document = {**json.loads((folder / "model.json").read_bytes()), **changes}
    document = {key: value for key, value in document.items() if value is not ...}
    document["digest"] = _model_folder._digest(document)
    (folder / "model.json").write_bytes(_model_folder._layout(document))


def forge_weights(folder: Path, data: bytes) -> None:
    (folder / "weights.safetensors").write_bytes(data)
    forge(folder, weights={"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)})
