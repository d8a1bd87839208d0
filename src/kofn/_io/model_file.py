r"""Fitted models on disk: one safetensors file, with what is no tensor as JSON in its header.

    8 bytes    length of the header
    header     {"__metadata__": {"kofn": document}, and of each tensor its dtype, shape and place}
    the rest   the tensors

    document   {"format": "kofn-model", "sha256": ..., "version": 2, "kind": ..., "kofn": ..., "torch": ...,
                "facts": {...}}, as text, with Python's words for the floats that JSON lacks: NaN, Infinity

The SHA-256 is that of the whole file with 64 zeros in its place. It finds damage; it is no signature. Nothing in the
file is ever executed, and no number in it is an amount of memory: what a file takes is bounded by its length.
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

from kofn import _require
from kofn._io.atomic_write import atomic_write

FORMAT = "kofn-model"
VERSION = 2

_BLANK = b"0" * 64  # where the digest goes
_LONGEST = 100_000_000  # bytes of a header that safetensors reads
_DEEPEST = 64  # levels of facts: far below the recursion limits of the parsers, and a cycle ends here
_CURE = "Copy the file again from where it was whole, or save the model again."


@dataclass(frozen=True, eq=False)
class Model:
    """What a model file holds.

    Attributes:
        kind: what the model is; the name of its estimator.
        facts: plain JSON: parameters, classes, history.
        tensors: by name, on the CPU, none sharing memory with another.
        written_by: versions of kofn and torch that wrote it.
    """

    kind: str
    facts: dict[str, Any]
    tensors: dict[str, Tensor]
    written_by: str


def write_model(
    path: str | os.PathLike[str], *, kind: str, facts: Mapping[str, object], tensors: Mapping[str, Tensor]
) -> None:
    """Write a model file, in place of the model that may be there, whole or not at all.

    Folders above `path` are made. A symbolic link is followed. Text of any length, such as the trees of LightGBM, goes
    to `tensors` as its bytes.

    Args:
        path: the file.
        kind: what the model is; `read_model` can insist on it.
        facts: plain JSON: None, bool, int, float (NaN and infinities too), str, lists and str-keyed dicts of these.
            Types are exact: a tuple would come back as a list, ``numpy.float64(1)`` as a float, so neither is taken.
        tensors: by name, of any device, shape and strides; tied ones are written once for each name.

    Raises:
        TypeError: facts that are not plain JSON, tensors that are none.
        ValueError: facts or tensors that the file cannot hold; something else than a kofn model at `path`.
        ImportError: safetensors is not installed.

    Examples:
        >>> import tempfile, torch
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_model(folder + "/m", kind="linear", facts={"classes": [0, 1]}, tensors={"bias": torch.ones(2)})
        ...     model = read_model(folder + "/m", kind="linear")
        >>> model.facts, model.tensors
        ({'classes': [0, 1]}, {'bias': tensor([1., 1.])})
    """
    if not isinstance(facts, Mapping):
        raise TypeError(f"`facts` must be a mapping from names to plain JSON; got {type(facts).__name__}.")
    _require_text("kind", kind)
    _require_plain("facts", dict(facts))
    document = {
        "format": FORMAT,  # first, so that `_is_ours` finds it
        "sha256": _BLANK.decode(),  # before anything of the user's that may look like it
        "version": VERSION,
        "kind": kind,
        "kofn": _version(),
        "torch": str(torch.__version__),  # a subclass of str
        "facts": dict(facts),
    }
    data = _pack(tensors, json.dumps(document, ensure_ascii=False))
    before, after = data[: data.index(_BLANK)], memoryview(data)[data.index(_BLANK) + len(_BLANK) :]
    require_replaceable(path)
    with atomic_write(path) as part, part.open("wb") as stream:
        stream.writelines((before, hashlib.sha256(data).hexdigest().encode(), after))


def read_model(path: str | os.PathLike[str], *, kind: str | Sequence[str] | None = None) -> Model:
    """Read a model file, once, and check every byte of it.

    Beside a writer that replaces the model it returns the old one or the new one.

    Args:
        path: the file.
        kind: the kind, or kinds, that will do; any if None.

    Raises:
        FileNotFoundError: no file at `path`.
        ValueError: no kofn model, one of another format, of another kind, or damaged.
        ImportError: safetensors is not installed.

    Examples:
        >>> read_model("/no/such/model")
        Traceback (most recent call last):
        FileNotFoundError: /no/such/model must be a file that kofn wrote a model to; there is none. Check the name.
    """
    safetensors = _require.package("safetensors.torch", extra="train")
    file = Path(path)
    data = _read_once(file)
    match _document(file, data):
        case {"kind": str(found), "kofn": str(kofn), "torch": str(torch_version), "facts": dict(facts)}:
            written_by = f"kofn {kofn}, torch {torch_version}"
        case _:
            raise ValueError(f"{file} must have a kind, versions and facts; some are missing. {_CURE}")
    kinds = (kind,) if isinstance(kind, str) else kind
    if kinds is not None and found not in kinds:
        raise ValueError(
            f"{file} must hold a model of kind {' or '.join(map(repr, kinds))}; it holds one of kind {found!r} "
            f"(written by {written_by}). Load it with what saved it, or check the name."
        )
    try:  # compares dtypes, shapes and places with the bytes there are before it makes a tensor
        tensors = safetensors.load(data)
    except MemoryError:
        raise
    except Exception as error:  # safetensors has its own exceptions, and its Python side adds KeyErrors and others
        reason = str(error).partition("\n")[0]  # torch adds frames of C++
        raise ValueError(f"{file} must be a safetensors file; this one is not ({reason}). {_CURE}") from None
    return Model(found, facts, tensors, written_by)


def require_replaceable(path: str | os.PathLike[str]) -> None:
    """Require that there is nothing at `path`, or a model of ours, which may be damaged."""
    target = Path(path)
    if target.is_file():
        with target.open("rb") as stream:
            if _is_ours(stream.read(200)):
                return
    elif not target.exists():
        return
    problem = "another file" if target.is_file() else "a folder or a device, and a model is one file"
    raise ValueError(
        f"{target} must be free or a kofn model; it is {problem}. Nothing was touched. Name another file, or move it "
        f"away."
    )


# Writing


def _pack(tensors: Mapping[str, Tensor], document: str) -> bytes:
    safetensors = _require.package("safetensors.torch", extra="train")
    plain = {}
    for name, value in tensors.items():
        _require_text("a name in tensors", name)
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
    data: bytes = safetensors.save(plain, metadata={"kofn": document})
    if _header_length(data) > _LONGEST:
        raise ValueError(
            f"`facts` and the names of `tensors` must fit into {_LONGEST:,} bytes; they take {_header_length(data):,}. "
            f"Long lists of numbers go to `tensors`."
        )
    return data


def _require_plain(where: str, value: object, depth: int = 0) -> None:
    """Require plain JSON of the exact types that come back; errors say where something else is."""
    kind = type(value)
    if depth > _DEEPEST:
        raise ValueError(f"`{where[:80]}...` must not be nested deeper than {_DEEPEST} levels, nor hold itself.")
    if kind is str:
        _require_text(where, value)
    elif isinstance(value, list) and kind is list:
        for i, item in enumerate(value):
            _require_plain(f"{where}[{i}]", item, depth + 1)
    elif isinstance(value, dict) and kind is dict:
        for key, item in value.items():
            _require_text(f"a key of {where}", key)
            _require_plain(f'{where}["{key:.80}"]', item, depth + 1)
    elif value is not None and kind not in (bool, int, float):
        raise TypeError(
            f"`{where}` must be plain JSON (None, bool, int, float, str, list, dict); got {kind.__name__}. Convert it: "
            f".item() of a numpy scalar, .tolist() of an array, list() of a tuple; tensors go to `tensors`."
        )


def _require_text(where: str, value: object) -> None:
    """Require text that comes back as it was, which halves of surrogate pairs would not."""
    if not isinstance(value, str) or type(value) is not str:
        raise TypeError(f"`{where}` must be a str; got {value!r:.80}, a {type(value).__name__}. Convert it with str().")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"`{where}` must be text that UTF-8 can hold; got {value!r:.80} ({error.reason}). Convert it: "
            f"text.encode(errors='replace').decode()."
        ) from None


def _version() -> str:
    try:
        return metadata.version("kofn")
    except metadata.PackageNotFoundError:  # run from its sources
        return "unknown"


# Reading


def _read_once(file: Path) -> bytes:
    """All bytes of one open file, which stays the same file when another takes its name."""
    rule = f"{file} must be a file that kofn wrote a model to"
    if not file.exists():
        raise FileNotFoundError(f"{rule}; there is none. Check the name.")
    if not file.is_file():
        cure = "An older kofn wrote models as folders: fit such a model again."
        raise ValueError(f"{rule}; it is a folder or a device. {cure}")
    with file.open("rb") as stream:
        if not _is_ours(stream.read(200)):  # known before all of a large table is read
            raise ValueError(f"{rule}; it is none, or its first bytes are altered. Check the name. {_CURE}")
        stream.seek(0)
        return stream.read()


def _is_ours(beginning: bytes) -> bool:
    return beginning[8:9] == b"{" and f'\\"{FORMAT}\\"'.encode() in beginning


def _header_length(data: bytes) -> int:
    return int.from_bytes(data[:8], "little")


def _document(file: Path, data: bytes) -> dict[str, Any]:
    """What a file says about itself, if its digest says that it is whole."""
    length = _header_length(data)
    if length > min(len(data) - 8, _LONGEST):
        raise ValueError(
            f"{file} must have a header of {length:,} bytes, at most {_LONGEST:,}; it has {len(data):,} bytes in all: "
            f"cut off or altered. {_CURE}"
        )
    try:
        header = json.loads(data[8 : 8 + length], object_pairs_hook=_unique)
        document: dict[str, Any] = json.loads(header["__metadata__"]["kofn"], object_pairs_hook=_unique)
        version, digest = document["version"], document["sha256"]
        at = data.index(digest.encode())
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{file} must have a header as kofn writes it; it is altered ({error!r:.80}). {_CURE}"
        ) from None
    if document.get("format") == FORMAT and type(version) is int and version > VERSION:
        raise ValueError(
            f"{file} was written by kofn {document.get('kofn')}, format version {version}; this kofn reads up to "
            f"{VERSION}: upgrade kofn."
        )
    computed = hashlib.sha256(data[:at] + _BLANK)
    computed.update(memoryview(data)[at + len(_BLANK) :])
    if (document.get("format"), version, digest) != (FORMAT, VERSION, computed.hexdigest()):
        raise ValueError(f"{file} must be as kofn wrote it, to the byte; its digest says no: altered. {_CURE}")
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object in which no name is given twice, which two readers may understand in two ways."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is given twice")
    return found
