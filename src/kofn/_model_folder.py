"""Fitted models on disk: a folder with `weights.safetensors` and `model.json`.

    weights.safetensors  the tensors
    model.json           {"format": "kofn-model", "version": 1, "kind": ..., "kofn": ..., "torch": ..., "facts": {...},
                          "weights": {"sha256": ..., "bytes": ...}, "digest": ...}

The digest is the SHA-256 of the document without it, as JSON in UTF-8 with sorted keys and no spaces. It finds damage;
it is no signature. Facts are plain JSON as in `kofn._facts`. Nothing in either file is ever executed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kofn import _atomic_folder, _facts, _require
from kofn._facts import JSON

MODEL = "model.json"
WEIGHTS = "weights.safetensors"
FORMAT = "kofn-model"
VERSION = 1

_CURE = "Copy the folder again from where it was whole, or save the model again."


@dataclass(frozen=True, eq=False)
class Model:
    """What a model folder holds.

    Attributes:
        kind: what the model is; the name of its estimator.
        facts: plain JSON: parameters, classes, history.
        tensors: by name, on the CPU, none sharing memory with another.
        written_by: versions of kofn and torch that wrote it.
    """

    kind: str
    facts: dict[str, JSON]
    tensors: dict[str, Tensor]
    written_by: str


def write_model(
    path: str | os.PathLike[str], *, kind: str, facts: Mapping[str, object], tensors: Mapping[str, Tensor]
) -> None:
    """Write a model folder, in place of the model that may be there.

    All is written and synced in a hidden folder beside `path`, then renamed: an error leaves what was at `path` as it
    was. Folders above `path` are made. A symbolic link is followed.

    Args:
        path: the folder.
        kind: what the model is; `read_model` can insist on it.
        facts: plain JSON: None, bool, int, float (NaN and infinities too), str, lists and str-keyed dicts of these.
        tensors: by name, of any device, shape and strides; tied ones are written once for each name.

    Raises:
        TypeError: facts that are not plain JSON, tensors that are none.
        ValueError: facts or tensors that the files cannot hold; something else than a kofn model at `path`.
        ImportError: safetensors is not installed.

    Examples:
        >>> import tempfile, torch
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_model(folder + "/m", kind="linear", facts={"classes": [0, 1]}, tensors={"bias": torch.ones(2)})
        ...     model = read_model(folder + "/m", kind="linear")
        >>> model.facts, model.tensors
        ({'classes': [0, 1]}, {'bias': tensor([1., 1.])})
    """
    weights = _pack(tensors)
    document = _document(kind, facts, weights)
    target = Path(os.path.realpath(path))
    require_replaceable(target)
    _atomic_folder.write(target, {WEIGHTS: weights, MODEL: document})


def read_model(path: str | os.PathLike[str], *, kind: str | Sequence[str] | None = None) -> Model:
    """Read a model folder after checking every byte of it.

    Beside a writer that replaces the model it returns the old one or the new one.

    Args:
        path: the folder.
        kind: the kind, or kinds, that will do; any if None.

    Raises:
        FileNotFoundError: no folder at `path`, or one of its two files is missing.
        ValueError: no kofn model, one of a newer format, of another kind, or damaged.
        ImportError: safetensors is not installed.

    Examples:
        >>> read_model("/no/such/model")
        Traceback (most recent call last):
        FileNotFoundError: `path` must be the folder of a kofn model; there is no /no/such/model. Check the path.
    """
    folder = Path(path)
    kinds = (kind,) if isinstance(kind, str) else kind
    return _atomic_folder.read(folder, lambda: _read(folder, kinds))


# The two files


def _pack(tensors: Mapping[str, Tensor]) -> bytes:
    safetensors = _require.package("safetensors.torch", extra="train")
    plain = {}
    for name, value in tensors.items():
        if not isinstance(name, str):
            raise TypeError(f"Names in `tensors` must be str; got {name!r:.80}, a {type(name).__name__}.")
        tensor = _require.tensor(f'tensors["{name}"]', value).detach()
        if tensor.layout != torch.strided or tensor.is_meta:
            raise ValueError(
                f'`tensors["{name}"]` must be dense and have values; its layout is {tensor.layout}, its device '
                f"{tensor.device}. Sparse ones convert with .to_dense()."
            )
        try:  # some dtypes can be saved and not loaded, as can the name "__metadata__": one element goes both ways
            safetensors.load(safetensors.save({name: torch.empty(1, dtype=tensor.dtype)}))
        except Exception as error:
            raise ValueError(
                f'`tensors["{name}"]` must have a name and a dtype that safetensors can hold; it is {tensor.dtype} '
                f"({error}). Convert it, or give it another name."
            ) from error
        # The clone is contiguous, shares nothing, and has done what a lazy conjugate or negative would leave undone.
        plain[name] = tensor.cpu().clone(memory_format=torch.contiguous_format)
    data: bytes = safetensors.save(plain)
    return data


def _unpack(file: Path, data: bytes) -> dict[str, Tensor]:
    safetensors = _require.package("safetensors.torch", extra="train")
    try:
        tensors: dict[str, Tensor] = safetensors.load(data)
    except Exception as error:  # safetensors has its own exceptions, and its Python side adds KeyErrors and others
        raise ValueError(
            f"{file} must be a safetensors file; this one cannot be read ({error}). kofn did not write it. {_CURE}"
        ) from error
    return tensors


def _document(kind: str, facts: Mapping[str, object], weights: bytes) -> bytes:
    if not isinstance(kind, str):
        raise TypeError(f"`kind` must be a str; got {type(kind).__name__}.")
    if not isinstance(facts, Mapping):
        raise TypeError(f"`facts` must be a mapping from names to plain JSON; got {type(facts).__name__}.")
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "kind": _facts.encode(kind, "kind"),
        "kofn": _version(),
        "torch": str(torch.__version__),  # a subclass of str
        "facts": _facts.encode(dict(facts)),
        "weights": {"sha256": hashlib.sha256(weights).hexdigest(), "bytes": len(weights)},
    }
    return _layout({**document, "digest": _digest(document)})


def _digest(document: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in document.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _layout(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _version() -> str:
    try:
        return metadata.version("kofn")
    except metadata.PackageNotFoundError:  # run from its sources
        return "unknown"


# Reading


def _read(folder: Path, kinds: Sequence[str] | None) -> Model:
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"`path` must be the folder of a kofn model; {folder} is a file.")
    file = folder / MODEL
    document = _parse(file, _bytes(folder, MODEL))
    match document:
        case {
            "kind": str(kind),
            "kofn": str(kofn),
            "torch": str(torch_version),
            "facts": dict(coded),
            "weights": {"sha256": str(sha256), "bytes": int(size)},
        }:
            facts = _decode(file, coded)
        case _:
            raise ValueError(f"{file} must have a kind, versions, facts and weights; some are missing. {_CURE}")
    written_by = f"kofn {kofn}, torch {torch_version}"
    if kinds is not None and kind not in kinds:
        wanted = " or ".join(map(repr, kinds))
        raise ValueError(
            f"`path` must hold a model of kind {wanted}; {folder} holds one of kind {kind!r} (written by "
            f"{written_by}). Load it with what saved it, or check the path."
        )
    data = _bytes(folder, WEIGHTS)
    if len(data) != size:
        raise ValueError(
            f"{folder / WEIGHTS} must have {size} bytes; it has {len(data)}: truncated or altered. {_CURE}"
        )
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ValueError(f"{folder / WEIGHTS} must have the SHA-256 that {MODEL} names; it was altered. {_CURE}")
    return Model(kind, facts, _unpack(folder / WEIGHTS, data), written_by)


def _decode(file: Path, coded: dict[str, JSON]) -> dict[str, JSON]:
    try:
        facts = _facts.decode(coded)
    except ValueError as error:
        raise ValueError(f"{file} must hold facts as kofn writes them. {error} {_CURE}") from None
    if not isinstance(facts, dict):
        raise ValueError(f"{file} must hold facts by name; got {facts!r}. {_CURE}")
    return facts


def _bytes(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except FileNotFoundError:
        if folder.exists():
            cure = f"A kofn model is a folder with {MODEL} and {WEIGHTS}. {_CURE}"
            raise FileNotFoundError(f"{folder / name} is missing. {cure}") from None
        old = _atomic_folder.old_versions(folder)
        cure = f"A writer was interrupted; rename {old[0]} to {folder.name}." if old else "Check the path."
        raise FileNotFoundError(f"`path` must be the folder of a kofn model; there is no {folder}. {cure}") from None


def _parse(file: Path, data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} must be JSON; it is truncated or altered ({error}). {_CURE}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f'{file} must say "format": "{FORMAT}"; it is not a kofn model. Check the path.')
    version = document.get("version")
    if type(version) is int and version > VERSION:
        raise ValueError(
            f"{file} was written by kofn {document.get('kofn')}, format version {version}; this kofn reads up to "
            f"{VERSION}: upgrade kofn."
        )
    # The digest cannot see spaces, 1e5 for 1E5 or a key given twice; writing the document again can.
    try:
        whole = version == VERSION and document.get("digest") == _digest(document) and data == _layout(document)
    except (ValueError, RecursionError):  # what JSON for Python may hold and ours does not, such as NaN
        whole = False
    if not whole:
        raise ValueError(f"{file} must be as kofn wrote it, to the byte; its digest or layout says no. {_CURE}")
    return document


# Writing


def require_replaceable(target: Path) -> None:
    """Require that there is nothing at `target`, or a model of ours and nothing beside it."""
    if not target.exists():
        return
    cure = "Nothing was touched. Choose another path, or move it away."
    if not target.is_dir():
        raise ValueError(f"`path` must be free or a kofn model; {target} is a file. {cure}")
    odd = sorted(file.name for file in target.iterdir() if file.name not in (MODEL, WEIGHTS) or not file.is_file())
    if odd:
        raise ValueError(f"`path` must be free or a kofn model; {target} also holds {odd[0]!r}. {cure}")
    model = target / MODEL  # damaged ones of ours may be replaced, so it is not parsed
    if not model.exists() or f'"{FORMAT}"'.encode() not in model.read_bytes():
        raise ValueError(f"`path` must be free or a kofn model; {target} has no {MODEL} of kofn. {cure}")
