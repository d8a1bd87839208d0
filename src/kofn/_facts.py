"""Facts about a model as strict JSON: what they may hold, and a way to write the floats that JSON has no word for."""

from __future__ import annotations

import math
from typing import TypeAlias

JSON: TypeAlias = "dict[str, JSON] | list[JSON] | str | int | float | bool | None"

# JSON has no NaN and no infinity, but the history of a fit may (a loss that diverged, a best value not yet set). They
# are written {"$float": "nan"}. So that a dictionary of the user that looks the same comes back as it was, one whose
# only key is one of these two words is written {"$dict": it}.
_FLOAT, _DICT = "$float", "$dict"
_ODD_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}

_DEEPEST = 64  # far below the recursion limits of the parsers, and a cycle ends here
_LONGEST = 4096  # bits of a whole number: Python reads no more than 4300 digits


def encode(value: object, where: str = "facts", depth: int = 0) -> JSON:
    """Strict JSON for plain values, from which `decode` makes equal ones of the same types.

    Types are exact: a tuple would come back as a list, ``numpy.float64(1)`` as a float, so neither is taken.

    Args:
        value: None, bool, int, float, str, or lists and str-keyed dicts of such.
        where: what to call the value in errors.
        depth: how many containers are around it.

    Raises:
        TypeError: a value or a key of another type; the message says where it is.
        ValueError: text with half of a surrogate pair, whole numbers over 4096 bits, more than 64 levels or a cycle.

    Examples:
        >>> encode({"loss": [0.5, float("inf")]})
        {'loss': [0.5, {'$float': 'inf'}]}
    """
    if depth > _DEEPEST:
        raise ValueError(f"`{where[:80]}...` must not be nested deeper than {_DEEPEST} levels, nor hold itself.")
    if value is None or type(value) is bool:
        return value
    if type(value) is int:
        return _short(value, where)
    if type(value) is float:
        return value if math.isfinite(value) else {_FLOAT: str(value)}
    if type(value) is str:
        return _text(value, where)
    if type(value) is list:
        return [encode(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
    if type(value) is dict:
        coded = {_key(key, where): encode(item, f"{where}[{_quoted(key)}]", depth + 1) for key, item in value.items()}
        return {_DICT: coded} if _is_coded(coded) else coded
    raise TypeError(
        f"`{where}` must be plain JSON (None, bool, int, float, str, list, dict); got {type(value).__name__}. "
        f"Convert it: .item() of a numpy scalar, .tolist() of an array, list() of a tuple; tensors go to `tensors`."
    )


def decode(coded: JSON) -> JSON:
    """The values that `encode` was given.

    Raises:
        ValueError: JSON that `encode` does not write.

    Examples:
        >>> decode({"loss": [0.5, {"$float": "inf"}]})
        {'loss': [0.5, inf]}
    """
    if isinstance(coded, list):
        return [decode(item) for item in coded]
    if not isinstance(coded, dict):
        return coded
    inside = coded
    if _is_coded(coded):
        ((word, content),) = coded.items()
        if word == _FLOAT and isinstance(content, str) and content in _ODD_FLOATS:
            return _ODD_FLOATS[content]
        if word == _FLOAT or not isinstance(content, dict):
            raise ValueError(f"`facts` hold {coded!r:.80}, which stands for nothing.")
        inside = content
    return {key: decode(item) for key, item in inside.items()}


def _is_coded(value: dict[str, JSON]) -> bool:
    return len(value) == 1 and (_FLOAT in value or _DICT in value)


def _short(number: int, where: str) -> int:
    if number.bit_length() > _LONGEST:
        raise ValueError(f"`{where}` must be a whole number of at most {_LONGEST} bits; it has {number.bit_length()}.")
    return number


def _text(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"`{where}` must be text that UTF-8 can hold; got {text!r:.80} ({error.reason}). "
            f"Such text comes from file names that are not UTF-8: text.encode(errors='replace').decode()."
        ) from None
    return text


def _key(key: object, where: str) -> str:
    if type(key) is not str:
        raise TypeError(
            f"Keys of `{where}` must be str; got {key!r:.80}, a {type(key).__name__}. Convert it with str()."
        )
    return _text(key, f"{where}[{_quoted(key)}]")


def _quoted(key: object) -> str:
    return f'"{key:.80}"' if isinstance(key, str) else repr(key)[:80]
