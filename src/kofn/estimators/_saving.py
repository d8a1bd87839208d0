"""Fitted estimators on disk: parameters and facts as JSON, weights as safetensors, no code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch

from kofn._model_file import Model, read_model, write_model

NOT_KEPT = ("checkpoint", "trainer", "progress", "device")  # of the machine, not of the model
_WIDEST = 65536  # bytes of a class's name: so many are taken for each class, however short the names


def save(estimator: Any, path: Path, *, extra: Mapping[str, Any] | None = None) -> None:
    """Write a fitted estimator to the file `path`; `extra` are facts, plain JSON, that travel with it."""
    kept, code_parameters = {}, []
    for name, value in estimator.get_params(deep=False).items():
        if name in NOT_KEPT or isinstance(value, np.random.RandomState):
            continue
        try:
            kept[name] = to_json(value)
        except TypeError:
            code_parameters.append(name)  # a network, a factory, a law of noise: code
    facts: dict[str, Any] = {
        "parameters": kept,
        "not_saved": code_parameters,
        "classes": to_json(estimator.classes_),
        "classes_dtype": estimator.classes_.dtype.str,
        "n_features_in": estimator.n_features_in_,
        "feature_names_in": to_json(getattr(estimator, "feature_names_in_", None)),
        "instance_shape": to_json(estimator.instance_shape_),
        "seed": estimator.seed_,
        "history": estimator.history_,
        "best_epoch": estimator.best_epoch_,
        "mixture": getattr(estimator, "mixture_", None),
        "held_out": to_json(estimator.held_out_),
        "extra": dict(extra or {}),
    }
    write_model(path, kind=type(estimator).__name__, facts=facts, tensors=estimator.network_.state_dict())


def load(path: Path, *, kinds: Sequence[type[Any]], code_parameters: dict[str, Any]) -> Any:
    """Read an estimator of one of these classes from the file `path`; `code_parameters` were not saved."""
    model = read_model(path, kind=[kind.__name__ for kind in kinds])
    return from_model(model, path, kinds=kinds, code_parameters=code_parameters)


def from_model(model: Model, path: Path, *, kinds: Sequence[type[Any]], code_parameters: dict[str, Any]) -> Any:
    """The estimator that a model read from `path` holds, its kind one of these classes.

    Raises:
        ValueError: a parameter that was not saved and is not given; another network; facts that are not of `save`.
    """
    try:
        return _restored(model, path, {kind.__name__: kind for kind in kinds}[model.kind], code_parameters)
    except (LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError) as error:
        raise ValueError(
            f"{path} must hold what kofn saves of a {model.kind}; {error!r:.200}. Written by {model.written_by}. Load "
            f"it with that version, or fit again."
        ) from error


def _restored(model: Model, path: Path, kind: type[Any], code_parameters: dict[str, Any]) -> Any:
    facts = model.facts
    # JSON has no tuples; no parameter needs to be a list.
    saved = {name: tuple(value) if isinstance(value, list) else value for name, value in facts["parameters"].items()}
    given = {name: value for name, value in code_parameters.items() if value is not None}
    missing = [name for name in facts["not_saved"] if name not in given]
    if missing:
        raise ValueError(
            f"`{missing[0]}` must be given to load {path}: the model was trained with one of your own, which is code "
            f"and is not saved. Pass the same again: {model.kind}.load(path, {missing[0]}=...)."
        )
    try:
        estimator = kind(**(saved | given))
    except TypeError as error:
        raise ValueError(
            f"{path} must have parameters of {model.kind}; {error}. Written by {model.written_by}."
        ) from None
    shape = tuple(facts["instance_shape"])
    # Fresh weights are replaced at once. Networks of ours are made without any, so that a file cannot ask for memory
    # that it does not fill; code of the user's may need real ones.
    ours = isinstance(estimator.module, str)
    with torch.random.fork_rng(devices=[]), torch.device("meta") if ours else nullcontext():
        network = estimator._new_network(shape)
    try:
        network.load_state_dict(model.tensors, assign=True)  # in the precision that was saved
    except RuntimeError as error:
        raise ValueError(f"`module` must be the network that {path} was trained with; {error}") from None
    estimator.network_ = network.eval()
    dtype = np.dtype(facts["classes_dtype"])
    if dtype.itemsize > _WIDEST:
        raise ValueError(
            f"{path} must have classes of at most {_WIDEST} bytes each; their dtype is {dtype}. Fit again."
        )
    estimator.classes_ = np.array(facts["classes"], dtype=dtype)
    estimator.instance_shape_, estimator.seed_ = shape, facts["seed"]
    estimator.history_, estimator.best_epoch_ = facts["history"], facts["best_epoch"]
    estimator.n_features_in_ = facts["n_features_in"]
    if facts["feature_names_in"] is not None:
        estimator.feature_names_in_ = np.array(facts["feature_names_in"], dtype=object)
    if facts["mixture"] is not None:
        estimator.mixture_ = facts["mixture"]
    estimator.held_out_ = np.array(facts["held_out"], dtype=np.int64)
    return estimator


def to_json(value: Any) -> Any:
    """A value as JSON has it: numpy's scalars and arrays, tuples and paths as numbers, lists and strings.

    Raises:
        TypeError: an object that JSON has no word for.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.generic):
        return to_json(value.item())
    if isinstance(value, np.ndarray):
        return to_json(value.tolist())
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    raise TypeError(f"a {type(value).__name__} is no plain value")
