"""Model files that are damaged, forged or none: each with how commands that read it must end."""

from __future__ import annotations

import json
import pickle
import random
import zipfile
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from model_file_cases import crafted, document, forge, parts, sealed
from safetensors.torch import save

from kofn._io.model_file import read_model

HUGE = 1 << 40


def damaged(models: Mapping[str, bytes]) -> dict[str, bytes]:
    """Files that must all be refused, from whole models by the names of their learners."""
    trees = models["trees"]
    header, rest = parts(trees)
    found = {f"cut off after {share} of 16": trees[: len(trees) * share // 16] for share in range(16)}
    found |= {f"cut off before its last {n} bytes": trees[:-n] for n in (1, 2, 8)}
    for learner, data in models.items():
        for seed in range(16):
            at = random.Random(f"{learner}{seed}").randrange(8 * len(data))
            flipped = bytearray(data)
            flipped[at // 8] ^= 1 << at % 8
            found[f"{learner}, bit {at} flipped"] = bytes(flipped)
    found |= {
        "a byte more": trees + b"\0",
        "twice": trees + trees,
        "reversed": trees[::-1],
        "in capitals": trees.upper(),
        "zeros": bytes(len(trees)),
        "ones": b"\xff" * 100,
        "a length alone": (100).to_bytes(8, "little"),
        "a length of all memory": (2**63).to_bytes(8, "little") + trees[8:],
        "a header of braces": sealed(b"{" * 100_000),
        "a header of brackets": sealed(b"[" * 100_000 + b"]" * 100_000),
        "a header without a model": sealed(b"{}"),
        "another's tensors": save({"w": torch.ones(3)}),
        "another's metadata": save({"w": torch.ones(3)}, metadata={"format": "pt"}),
        "metadata of a list": sealed(b'{"__metadata__":[1]}'),
        "a document that is no JSON": sealed(b'{"__metadata__":{"kofn":"{\\"kofn-model\\""}}'),
        "a header twice": sealed(header.replace(b'"__metadata__"', b'"__metadata__":{},"__metadata__"', 1), rest),
        "an unknown kind": crafted('"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}', bytes(4)),
        "tensors beyond the end": crafted('"w":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}', bytes(4)),
        "tensors of a negative size": crafted('"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}', bytes(4)),
        "tensors of no dtype": crafted('"w":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}', bytes(4)),
        "tensors that overlap": crafted(
            '"v":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}',
            bytes(4),
        ),
        "a document of nothing": sealed(json.dumps({"__metadata__": {"kofn": document(facts=...)}}).encode()),
        "a newer version": sealed(json.dumps({"__metadata__": {"kofn": document(version=99)}}).encode()),
        "an older version": sealed(json.dumps({"__metadata__": {"kofn": document(version=1)}}).encode()),
        "a pickle": pickle.dumps({"weights": [1.0]}),
        "a picture": b"\x89PNG\r\n\x1a\n" + bytes(100),
        "text": b"kofn-model, honestly\n" * 20,
        "JSON": json.dumps({"format": "kofn-model"}).encode(),
        "YAML": b"format: kofn-model\nversion: 2\n",
        "of torch": _written(lambda stream: torch.save({"w": torch.ones(2)}, stream)),
        "of numpy": _written(lambda stream: np.save(stream, np.ones(3))),
        "of a zip": _written(lambda stream: zipfile.ZipFile(stream, "w").close()),
        "of LightGBM": b"tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\n",
        "empty": b"",
    }
    return found


def _written(write: Callable[[BytesIO], Any]) -> bytes:
    stream = BytesIO()
    write(stream)
    return stream.getvalue()


# Facts whose digest is right and which no fit writes; dots lead into a dict, ... leaves a fact out.
FORGED: dict[str, tuple[str, dict[str, Any]]] = {
    "no learner": ("trees", {"learner": ...}),
    "a learner that is code": ("trees", {"learner.kind": "os.system"}),
    "options that are unknown": ("trees", {"learner.parameters": {"temperature": 2}}),
    "a list of options": ("trees", {"learner.parameters": [1]}),
    "no state": ("linear", {"learner.state": None}),
    "no members": ("linear", {"members": ...}),
    "members that are a number": ("linear", {"members": 3}),
    "members that are numbers": ("linear", {"members": [3, 4]}),
    "members without a state": ("linear", {"members": [{}, {}]}),
    "members that are not there": ("trees", {"members": [{"start": 0.0}]}),
    "a width of 2^40": ("network", {"learner.parameters.hidden": [HUGE]}),
    "a width below 0": ("network", {"learner.parameters.hidden": [-3]}),
    "a width in words": ("network", {"learner.parameters.hidden": ["wide"]}),
    "a module that is code": ("network", {"learner.parameters.module": "builtins:exec"}),
    "a shape of 2^40": ("network", {"learner.state.shape": [HUGE]}),
    "attention that is not there": ("network", {"learner.state.pooling": "attention"}),
    "classes of 100 MB": ("trees", {"classes_dtype": "<U100000000"}),
    "classes of no dtype": ("trees", {"classes_dtype": "no such"}),
    "a hundred thousand classes": ("trees", {"classes": list(range(100_000))}),
    "classes that are a number": ("trees", {"classes": 7}),
    "held-out bags beyond int64": ("trees", {"held_out": [1 << 80]}),
    "columns that are a number": ("trees", {"columns": 3}),
    "no columns": ("trees", {"columns": {}}),
    "extra facts in a list": ("trees", {"extra": [1]}),
    "a table that is a number": ("trees", {"extra.table": 3}),
    "a table with more": ("trees", {"extra.table.more": 1}),
    "a table without a task": ("trees", {"extra.table.task": ...}),
    "a table without data": ("trees", {"extra.table.data": {}}),
    "data that are a number": ("linear", {"extra.table.data": 3}),
    "rows in words": ("trees", {"extra.table.data.rows": "many"}),
    "sizes in words": ("trees", {"extra.table.data.sizes": ["a"]}),
    "seconds in words": ("trees", {"extra.table.seconds": "many"}),
    "a label that is a number": ("trees", {"extra.table.labels": 3}),
    "labels that are numbers": ("trees", {"extra.table.labels": [1, 2]}),
    "a bag that is a number": ("linear", {"extra.table.bag": 3}),
    "copies that are a number": ("trees", {"extra.table.copies": 3}),
    "another task": ("trees", {"extra.table.task": "x"}),
    "no validation": ("trees", {"extra.table.validation": {}}),
    "a validation that is a number": ("network", {"extra.table.validation": 3}),
    "a history that is a number": ("trees", {"history": 3}),
    "a history of numbers": ("trees", {"history": [3]}),
    "a history in words": ("trees", {"history": [{"round": 1, "train_loss": "small"}]}),
    "a step that is not there": ("trees", {"best_step": 99}),
    "a step below 1": ("linear", {"best_step": -5}),
    "a step in words": ("trees", {"best_step": "the last"}),
    "a loss in words": ("trees", {"validation_loss": "small"}),
    "baselines in a list": ("trees", {"baselines": [1]}),
    "baselines in words": ("trees", {"baselines": {"no features": "large"}}),
    "a rate in words": ("trees", {"rate": "high"}),
    "parameters in a list": ("trees", {"parameters": []}),
    "parameters of another": ("trees", {"parameters": {"temperature": 2}}),
}


def forged(path: Path, data: bytes, changes: Mapping[str, Any]) -> None:
    """Write a model with other facts and a digest that is right."""
    path.write_bytes(data)
    forge(path, facts=_changed(read_model(path).facts, changes))


def _changed(facts: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(facts)
    for name, value in changes.items():
        head, _, inner = name.partition(".")
        if inner:
            found[head] = _changed(found[head], {inner: value})
        elif value is ...:
            del found[head]
        else:
            found[head] = value
    return found
