"""Fitted estimators in one file: parameters and facts as JSON, weights and trees as tensors, no code."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kofn import _require
from kofn._io.model_file import Model, read_model, write_model
from kofn.estimators._bag_means import BagMeans
from kofn.estimators._columns import Columns
from kofn.estimators._fact_shapes import NUMBER, NUMBER_OR_NONE, require_shape
from kofn.estimators._fingerprint import Fingerprint
from kofn.estimators._rates import LabelShares
from kofn.learners import Learner, Linear, Network, Trees

# Of the machine, not of the model.
NOT_KEPT = ("learner", "checkpoint", "callback", "progress", "device", "threads", "cluster", "n_jobs")
HELD_OUT = ("held_out_logits_", "held_out_bag_means_")  # in float32: they are looked at, not computed with
BAG_MEANS = "bag_means."  # what the names of its tensors begin with
WIDEST = 2**24  # bytes of all classes, so that a file cannot ask for memory that it does not fill


FINGERPRINT = {"rows": int, "whole": str, "lowest": {"bags": [int], "rows": [int]}}
SHAPES: dict[str, Any] = {  # of facts that nothing below would check
    "learner": {"parameters": dict, "state": dict},
    "members": [dict],
    "history": [{...: NUMBER}],
    "best_step": (int, NoneType),
    "validation_loss": NUMBER_OR_NONE,
    "baselines": {...: NUMBER},
    "label_shares": (list, NoneType),
    "parameters": dict,
    "columns": (dict, NoneType),
    "n_features_in": int,
    "instance_shape": [int],
    "classes": list,
    "classes_dtype": str,
    "seed": int,
    "loss": (str, NoneType),
    "held_out": [int],
    "fingerprint": (dict, NoneType),
    "held_out_parts": int,
    "held_out_scores": [str],
    "bag_means": (dict, NoneType),
    "mixture": NUMBER_OR_NONE,
    "mixture_interval": (list, NoneType),
    "bag_effect": [NUMBER_OR_NONE],
    "extra": dict,
}


def save(estimator: Any, path: Path, *, extra: Mapping[str, Any] | None = None) -> None:
    """Write a fitted estimator to the file `path`; `extra` are facts, plain JSON, that travel with it."""
    kept, code = _parameters(estimator)
    options, learner_code = _parameters(estimator.fitted_learner_)
    state, tensors = estimator.fitted_.to_model()
    members = [member.to_model() for member in estimator.members_]
    for number, (_, of_member) in enumerate(members):
        tensors |= {f"{_member(number)}{name}": value for name, value in of_member.items()}
    bag_means, of_means = (None, {}) if estimator.bag_means_ is None else estimator.bag_means_.to_model()
    tensors |= {f"{BAG_MEANS}{name}": value for name, value in of_means.items()}
    held_out = {name: getattr(estimator, name) for name in HELD_OUT if getattr(estimator, name) is not None}
    tensors |= {name: torch.from_numpy(value.astype(np.float32)) for name, value in held_out.items()}
    facts: dict[str, Any] = {
        "parameters": kept,
        "not_saved": [*code, *learner_code],
        "learner": {"kind": type(estimator.fitted_learner_).__name__, "parameters": options, "state": state},
        "members": [member_state for member_state, _ in members],
        "classes": to_json(estimator.classes_),
        "classes_dtype": estimator.classes_.dtype.str,
        "columns": None if estimator.columns_ is None else estimator.columns_.to_facts(),
        "n_features_in": estimator.n_features_in_,
        "feature_names_in": to_json(getattr(estimator, "feature_names_in_", None)),
        "instance_shape": to_json(estimator.instance_shape_),
        "seed": estimator.seed_,
        "rate": to_json(estimator.rate_),
        "label_shares": None if estimator.label_shares_ is None else estimator.label_shares_.to_facts(),
        "loss": getattr(estimator, "loss_", None),
        "history": estimator.history_,
        "best_step": estimator.best_step_,
        "validation_loss": estimator.validation_loss_,
        "baselines": estimator.baselines_,
        "held_out": to_json(estimator.held_out_),
        "held_out_parts": estimator.held_out_parts_,
        "held_out_scores": list(held_out),
        "bag_means": bag_means,
        "fingerprint": None if estimator.fingerprint_ is None else estimator.fingerprint_.to_facts(),
        "mixture": getattr(estimator, "mixture_", None),
        "mixture_interval": to_json(getattr(estimator, "mixture_interval_", None)),
        "bag_effect": [estimator.bag_effect_, getattr(estimator, "bag_effect_error_", None)],
        "extra": dict(extra or {}),
    }
    write_model(path, kind=type(estimator).__name__, facts=facts, tensors=tensors)


def load(path: Path, *, kinds: Sequence[type[Any]], code_parameters: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Read an estimator of one of these classes, and what travelled with it; `code_parameters` were not saved."""
    by_name = {kind.__name__: kind for kind in kinds}
    model = read_model(path, kind=list(by_name))
    given = {name: value for name, value in code_parameters.items() if value is not None}
    try:
        return _restored(model, by_name[model.kind], given, path), dict(model.facts["extra"])
    except (LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError) as error:
        raise ValueError(
            f"{path} must hold a {model.kind} as this kofn writes it; {error!r:.200}. Written by "
            f"{model.written_by}: save it again with this version."
        ) from None


def _restored(model: Model, kind: type[Any], given: dict[str, Any], path: Path) -> Any:
    facts: dict[str, Any] = dict(model.facts)
    missing = [name for name in facts["not_saved"] if name not in given]
    if missing:
        raise ValueError(
            f"`{missing[0]}` must be given to load {path}: the model was trained with one of your own, which is code "
            f"and is not saved. Pass the same again: {model.kind}.load(path, {missing[0]}=...)."
        )
    for name, shape in SHAPES.items():
        require_shape(name, facts[name], shape)
    if facts["best_step"] is not None and not 1 <= facts["best_step"] <= len(facts["history"]):
        raise ValueError(
            f"{path} must have kept one of its {len(facts['history'])} steps; it says {facts['best_step']}."
        )
    described: dict[str, Any] = facts["learner"]
    options = set(Network().get_params())
    unknown = sorted(set(given) - options - set(kind().get_params(deep=False)))
    if unknown:
        raise ValueError(f"`{unknown[0]}` must be a parameter of {model.kind} or of Network to load {path}; it is not.")
    kinds: dict[str, type[Learner]] = {"Trees": Trees, "Linear": Linear, "Network": Network}
    if described["kind"] not in kinds:
        raise ValueError(f"{path} must hold trees, a linear model or a network; it says {described['kind']!r}.")
    code = {name: value for name, value in given.items() if name in options}
    learner = kinds[described["kind"]](**_tuples(described["parameters"]), **code)
    rest = {name: value for name, value in given.items() if name not in options}
    estimator = kind(learner, **(_tuples(facts["parameters"]) | rest))
    learner.require_options()
    estimator._check_options()
    estimator.fitted_learner_ = copy(learner)
    estimator.fitted_ = learner.from_model(described["state"], model.tensors)
    estimator.members_ = [
        learner.from_model(state, _beginning(model.tensors, _member(number)))
        for number, state in enumerate(facts["members"])
    ]
    if not re.fullmatch(r"[<>|=][biufUO][0-9]{0,9}", facts["classes_dtype"]):
        raise ValueError(f"{path} must have classes that are numbers or text; they are {facts['classes_dtype']!r:.80}.")
    dtype = np.dtype(facts["classes_dtype"])
    if dtype.itemsize * len(facts["classes"]) > WIDEST:
        raise ValueError(f"{path} must have classes of at most {WIDEST} bytes; their dtype is {dtype}. Fit again.")
    rate = np.array(facts["rate"], dtype=np.float64)
    outputs = {each.outputs for each in (estimator.fitted_, *estimator.members_)}
    if len(facts["classes"]) != (len(rate) if rate.ndim else 2) or outputs != {rate.shape}:
        raise ValueError(
            f"{path} must have a rate and a score for each of its {len(facts['classes'])} classes. Fit again."
        )
    if not ((rate >= 0) & (rate <= 1)).all():
        raise ValueError(f"{path} must have rates from 0 to 1; it has {rate}. Fit again.")
    if not all(type(each) in (bool, int, float, str) for each in facts["classes"]):
        raise ValueError(f"{path} must have classes that are numbers or text. Fit again.")
    estimator.classes_ = np.array(facts["classes"], dtype=dtype)
    if len(np.unique(estimator.classes_)) < len(facts["classes"]):
        raise ValueError(f"{path} must have classes that differ; it has {facts['classes']!r:.200}. Fit again.")
    estimator.columns_ = None if facts["columns"] is None else Columns.from_facts(facts["columns"])
    estimator.instance_shape_, estimator.seed_ = tuple(facts["instance_shape"]), facts["seed"]
    _require_columns(estimator, facts, path)
    estimator.rate_ = rate if rate.ndim else float(rate)
    require_shape("label_shares", facts["label_shares"] or [], [[NUMBER]])
    require_shape("feature_names_in", facts["feature_names_in"] or [], [str])
    estimator.label_shares_ = None if facts["label_shares"] is None else LabelShares.from_facts(facts["label_shares"])
    estimator.history_, estimator.best_step_ = facts["history"], facts["best_step"]
    estimator.validation_loss_, estimator.baselines_ = facts["validation_loss"], facts["baselines"]
    estimator.n_features_in_ = facts["n_features_in"]
    if facts["feature_names_in"] is not None:
        estimator.feature_names_in_ = np.array(facts["feature_names_in"], dtype=object)
    if facts["mixture"] is not None:
        estimator.mixture_, interval = facts["mixture"], facts["mixture_interval"]
        require_shape("mixture_interval", interval or [], [NUMBER])
        estimator.mixture_interval_ = None if interval is None else (interval[0], interval[1])
    effect, error = facts["bag_effect"]
    if hasattr(kind, "bag_effect_error_"):  # label proportions may have one, and know what they minimised
        _require.option("loss", facts["loss"], kind.LOSSES)
        estimator.loss_ = facts["loss"]
        _require.number("bag_effect", effect, low=0, high=_require.LARGEST_BAG_EFFECT)
        estimator.bag_effect_, estimator.bag_effect_error_ = float(effect), error
    estimator.held_out_ = np.array(facts["held_out"], dtype=np.int64)
    estimator.held_out_parts_ = facts["held_out_parts"]
    means = facts["bag_means"]
    estimator.bag_means_ = None
    if means is not None:
        estimator.bag_means_ = BagMeans.from_model(means, _beginning(model.tensors, BAG_MEANS), rate.shape)
        if not estimator.bag_means_.design.takes(estimator.instance_shape_, _categories(estimator)):
            raise ValueError(f"{path} must have a model of bag means of its own columns; they are others. Fit again.")
    fingerprint = facts["fingerprint"]
    if fingerprint is not None:
        require_shape("fingerprint", fingerprint, FINGERPRINT)
    estimator.fingerprint_ = None if fingerprint is None else Fingerprint.from_facts(fingerprint)
    lengths = None if fingerprint is None else estimator.fingerprint_.rows, len(estimator.held_out_)
    for name, length in zip(HELD_OUT, lengths, strict=True):
        scores = model.tensors[name] if name in facts["held_out_scores"] else None
        if scores is not None and scores.shape != (len(scores) if length is None else length, *rate.shape):
            raise ValueError(f"the model must have {length} of its {name}; it has {tuple(scores.shape)}.")
        setattr(estimator, name, None if scores is None else scores.double().numpy())
    return estimator


def _categories(estimator: Any) -> dict[int, int]:
    return {} if estimator.columns_ is None else estimator.columns_.category_counts


def _require_columns(estimator: Any, facts: Mapping[str, Any], path: Path) -> None:
    """Require that all parts of a model are of the same columns, or of instances of the same shape."""
    shape, names = estimator.instance_shape_, facts["feature_names_in"]
    named = [each for each in (names, estimator.columns_ and estimator.columns_.names) if each is not None]
    sound = facts["n_features_in"] == shape[0] and all(len(each) == shape[0] for each in named)
    if not sound or not all(
        each.takes(shape, _categories(estimator)) for each in (estimator.fitted_, *estimator.members_)
    ):
        raise ValueError(f"{path} must be of {facts['n_features_in']} columns in all its parts; it is not. Fit again.")


def _member(number: int) -> str:
    """What the names of the tensors of a member of the bootstrap begin with."""
    return f"member.{number}."


def _beginning(tensors: Mapping[str, Tensor], beginning: str) -> dict[str, Tensor]:
    """The tensors whose names begin so, by the rest of their names, which is what their owner calls them."""
    return {name.removeprefix(beginning): value for name, value in tensors.items() if name.startswith(beginning)}


def _parameters(owner: Any) -> tuple[dict[str, Any], list[str]]:
    """The parameters that JSON can hold, and the names of those that are code: a network, a factory, noise."""
    kept, code = {}, []
    for name, value in owner.get_params(deep=False).items():
        if name in NOT_KEPT or isinstance(value, np.random.RandomState):
            continue
        try:
            kept[name] = to_json(value)
        except TypeError:
            code.append(name)
    return kept, code


def _tuples(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as they were: JSON has no tuples, and no parameter needs to be a list."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in parameters.items()}


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
    if isinstance(value, Mapping):
        return {str(name): to_json(item) for name, item in value.items()}
    raise TypeError(f"a {type(value).__name__} is no plain value")
