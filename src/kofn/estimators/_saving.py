"""Fitted estimators on disk: parameters and facts as JSON, weights as safetensors, no code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from kofn._model_folder import read_model, write_model

NOT_KEPT = ("checkpoint", "trainer", "progress", "device")  # of the machine, not of the model


def save(estimator: Any, path: Path, *, extra: Mapping[str, Any] | None = None) -> None:
    """Write a fitted estimator to the folder `path`; `extra` are facts, plain JSON, that travel with it."""
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
    """Read an estimator of one of these classes from the folder `path`; `code_parameters` were not saved."""
    by_name = {kind.__name__: kind for kind in kinds}
    model = read_model(path, kind=list(by_name))
    facts: dict[str, Any] = dict(model.facts)
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
        estimator = by_name[model.kind](**(saved | given))
    except TypeError as error:
        raise ValueError(
            f"{path} must have parameters of {model.kind}; {error}. Written by {model.written_by}."
        ) from None
    shape = tuple(facts["instance_shape"])
    with torch.random.fork_rng(devices=[]):  # the fresh weights are replaced at once
        network = estimator._new_network(shape)
    try:
        network.load_state_dict(model.tensors, assign=True)  # in the precision that was saved
    except RuntimeError as error:
        raise ValueError(f"`module` must be the network that {path} was trained with; {error}") from None
    estimator.network_ = network.eval()
    estimator.classes_ = np.array(facts["classes"], dtype=np.dtype(facts["classes_dtype"]))
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
