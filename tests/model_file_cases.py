"""Model files to read, damage and forge."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import torch

from kofn._io.model_file import write_model

BLANK = "0" * 64
FACTS = {"classes": ["näin", "no"], "history": [0.1, math.nan, -math.inf], "params": {"seed": None, "rate": 1e-05}}
TENSORS = {"0.weight": torch.arange(6.0).reshape(2, 3), "steps": torch.tensor(7)}


def saved(file: Path) -> Path:
    write_model(file, kind="LLPClassifier", facts=FACTS, tensors=TENSORS)
    return file


def parts(data: bytes) -> tuple[bytes, bytes]:
    """The header and the tensors."""
    end = 8 + int.from_bytes(data[:8], "little")
    return data[8:end], data[end:]


def sealed(header: bytes, rest: bytes = b"") -> bytes:
    """A file whose digest is right, in place of the zeros that its header has for it."""
    data = len(header).to_bytes(8, "little") + header + rest
    return data.replace(BLANK.encode(), hashlib.sha256(data).hexdigest().encode(), 1)


def document(**changes: object) -> str:
    """A document with zeros for its digest; changes to ... leave a key out."""
    whole = {"format": "kofn-model", "sha256": BLANK, "version": 2, "kind": "k", "kofn": "1", "torch": "2", "facts": {}}
    return json.dumps({key: value for key, value in (whole | changes).items() if value is not ...})


def forge(file: Path, **changes: object) -> None:
    """Change the document of a file and make its digest right again."""
    header, rest = parts(file.read_bytes())
    fields = json.loads(header)
    fields["__metadata__"]["kofn"] = document(
        **{**json.loads(fields["__metadata__"]["kofn"]), "sha256": BLANK, **changes}
    )
    file.write_bytes(sealed(json.dumps(fields, separators=(",", ":")).encode(), rest))


def crafted(tensors: str, rest: bytes = b"") -> bytes:
    """A file with a valid digest whose header says this, fields of JSON, about its tensors."""
    return sealed(f'{{"__metadata__":{{"kofn":{json.dumps(document())}}},{tensors}}}'.encode(), rest)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}
