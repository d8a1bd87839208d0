"""What several packages require of their arguments, in words that name the argument, the rule, the value, the cure.

A requirement of one place lies beside that place: how bags lie in a tensor in `counts`, what a label may be in
`targets`, names of bags in `bags`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from math import isfinite
from numbers import Integral, Real
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor


def tensor(name: str, value: object) -> Tensor:
    """Require a tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"`{name}` must be a torch.Tensor; got {type(value).__name__}. Convert it with torch.as_tensor({name})."
        )
    return value


def dense_tensor(name: str, value: object) -> Tensor:
    """Require a tensor whose numbers lie in memory as its shape says: no nested one, no subclass that wraps others."""
    given = tensor(name, value)
    if given.is_nested:
        raise TypeError(
            f"`{name}` must be a plain torch.Tensor; got a nested one. Bags of different sizes come one after "
            f"the other: {name}.values() with offsets={name}.offsets()."
        )
    if type(given) is not Tensor and not torch.compiler.is_compiling() and _wraps(given):
        raise TypeError(
            f"`{name}` must be a plain torch.Tensor; got {type(given).__name__}, which stands for others. Take "
            f"the tensor out of it, as DTensor.full_tensor() does."
        )
    return given


def _wraps(value: Tensor) -> bool:
    """Whether a subclass has no memory of its own, unless torch puts it in a tensor's place while it makes a graph."""
    plain = type(value).__torch_dispatch__ is Tensor.__torch_dispatch__
    return not plain and not type(value).__module__.startswith(("torch._subclasses", "torch._functorch"))


def numbers(name: str, value: Any) -> Tensor:
    """Require numbers: a tensor, or an array or a list as a tensor, which shares its memory where that is possible."""
    if isinstance(value, Tensor):
        return value
    try:
        array = np.asarray(value)
        if min(array.strides, default=0) < 0:  # turned around; torch knows no such tensor
            array = array.copy()
        with warnings.catch_warnings():
            # A memory map or a column of pandas. Nothing here writes to its input.
            warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
            return torch.as_tensor(array)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"`{name}` must be numbers, as a tensor, an array or a list; got {type(value).__name__}: {error}"
        ) from None


def whole_numbers(name: str, value: Any, *, low: int | None = None) -> Tensor:
    """Require flat integers, at least `low` each; returned as int64 on the CPU."""
    given = numbers(name, value).detach().cpu()
    if not given.numel():
        given = given.long()  # numpy has no integer for an empty list
    if given.is_floating_point() or given.is_complex() or given.dtype == torch.bool:
        raise TypeError(f"`{name}` must be integers; got {given.dtype}. Convert with .long().")
    if given.dim() != 1:
        raise ValueError(f"`{name}` must have one dimension; got shape {tuple(given.shape)}.")
    whole = given.long()
    if low is not None and bool((whole < low).any()):
        raise ValueError(f"`{name}` must be at least {low}; got {int(whole.min())}.")
    return whole


def fractions(name: str, value: Tensor) -> Tensor:
    """Require a tensor of numbers from 0 to 1."""
    if not holds((value >= 0) & (value <= 1)):
        worst = float(value.min() if bool((value < 0).any()) else value.max())
        raise ValueError(f"`{name}` must lie between 0 and 1; got {worst:g}. Percentages are divided by 100 first.")
    return value


def fraction(name: str, value: object) -> float:
    """Require one number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"`{name}` must be a number; got {value!r}.")
    if not 0 <= float(value) <= 1:
        raise ValueError(f"`{name}` must lie between 0 and 1; got {value}. Percentages are divided by 100 first.")
    return float(value)


def level(name: str, value: float) -> None:
    """Require the probability that an interval is to hold."""
    if not 0 < value < 1:
        raise ValueError(f"`{name}` must be a probability above 0 and below 1; got {value}. 90 % is 0.9.")


LARGEST_INT = 2**31 - 1  # that C++ below LightGBM and torch takes everywhere


#: The largest standard deviation of the shift of bags: beyond, a bag is all or nothing for whatever logits a model has.
LARGEST_BAG_EFFECT = 1e6


def number(name: str, value: object, *, low: float, high: float = float("inf")) -> None:
    """Require one finite number, at least `low` and at most `high`."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"`{name}` must be a number; got {value!r}.")
    if not isfinite(value) or not low <= float(value) <= high:
        rule = f"finite and at least {low:g}" if high == float("inf") else f"from {low:g} to {high:g}"
        raise ValueError(f"`{name}` must be {rule}; got {value}.")


def whole_number(name: str, value: object, *, low: int | None = None, high: int | None = None) -> None:
    """Require one integer, in a range if one is given."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"`{name}` must be an integer; got {value!r}.")
    if (low is not None and int(value) < low) or (high is not None and int(value) > high):
        open_end = high is None or (high == LARGEST_INT and int(value) < high)
        rule = f"at least {low}" if open_end else f"from {low} to {high}"
        raise ValueError(f"`{name}` must be {rule}; got {value}.")


def one_of_two(first: str, a: int | None, second: str, b: int | None) -> None:
    """Require one of two integers, at least 1, and not both."""
    if (a is None) == (b is None):
        raise ValueError(f"either `{first}` or `{second}` must be given, not both; got {a} and {b}.")
    name, value = (first, a) if a is not None else (second, b)
    whole_number(name, value, low=1)


def option(name: str, value: object, allowed: Sequence[str]) -> None:
    """Require one of a few words."""
    if value not in allowed:
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, allowed))}; got {value!r}.")


def package(module: str, *, extra: str) -> ModuleType:
    """Require a module of an optional dependency, which `pip install kofn[extra]` brings."""
    try:
        return import_module(module)
    except ImportError as error:
        missing = module.split(".")[0]
        missing = {"sklearn": "scikit-learn", "PIL": "pillow"}.get(missing, missing)
        raise ImportError(f"This needs {missing}, which is not installed: pip install kofn[{extra}]") from error


def is_finite(scalar: Tensor) -> bool:
    """Whether one number is finite; taken on trust where `holds` would."""
    if torch.compiler.is_compiling() or not scalar.is_cpu:
        return True
    try:
        return isfinite(scalar.item())
    except RuntimeError:
        return True


def holds(condition: Tensor) -> bool:
    """Whether a condition on values holds everywhere.

    Values that cannot be read without waiting for another device, or not at all (inside `torch.func.vmap` or a compiled
    graph), are taken on trust.
    """
    if torch.compiler.is_compiling() or not condition.is_cpu:
        return True
    try:
        return bool(condition.all())
    except RuntimeError:
        return True
