"""Plain values come back from strict JSON as they were; everything else is refused by its place."""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from plain_values import PLAIN, same

from kofn import _facts


@given(PLAIN)
def test_round_trip_through_strict_json(value: Any) -> None:
    text = json.dumps(_facts.encode(value), allow_nan=False)
    assert same(_facts.decode(json.loads(text)), value)


@pytest.mark.parametrize(
    "value",
    [
        {"$float": "nan"},
        {"$dict": {}},
        {"$dict": {"$float": math.nan}},
        {"$dict": {"$dict": {"$dict": 1}}},
        {"$float": 1, "$dict": 2},
        {"$float": {"$float": math.inf}},
    ],
    ids=str,
)
def test_dictionaries_that_look_like_codes(value: Any) -> None:
    assert same(_facts.decode(_facts.encode(value)), value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            {"classes": [0, np.int64(1)]},
            r'`facts\["classes"\]\[1\]` must be plain JSON .*; got int64\. Convert it: \.item',
        ),
        ({"rate": np.float64(0.5)}, r'`facts\["rate"\]` .* got float64'),  # a subclass of float
        ({"name": np.str_("a")}, r'`facts\["name"\]` .* got str_'),
        ({"a": {"b": (1, 2)}}, r'`facts\["a"\]\["b"\]` .* got tuple\. .*list\(\)'),
        ({"a": [[np.zeros(2)]]}, r'`facts\["a"\]\[0\]\[0\]` .* got ndarray\. .*tolist'),
        ({"w": torch.zeros(2)}, r'`facts\["w"\]` .* got Tensor\. .*`tensors`'),
        ({"a": OrderedDict()}, r'`facts\["a"\]` .* got OrderedDict'),
        ({"a": {1, 2}}, r'`facts\["a"\]` .* got set'),
        ({"a": b"x"}, r'`facts\["a"\]` .* got bytes'),
        ({"a": 1j}, r'`facts\["a"\]` .* got complex'),
        ({3: 1}, r"Keys of `facts` must be str; got 3, a int"),
        ({"a": [{None: 1}]}, r'Keys of `facts\["a"\]\[0\]` must be str; got None, a NoneType'),
        ({np.str_("a"): 1}, r"Keys of `facts` must be str; .* a str_"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_types_are_named_by_place(value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        _facts.encode(value)


def test_values_that_json_would_spoil() -> None:
    with pytest.raises(ValueError, match=r'`facts\["a"\]` must be text that UTF-8 can hold; got .*surrogates'):
        _facts.encode({"a": "\ud83d\ude00"})  # two halves that JSON would join
    with pytest.raises(ValueError, match=r"must be text that UTF-8 can hold"):
        _facts.encode({"\ud800": 1})
    with pytest.raises(ValueError, match=r'`facts\["n"\]` must be a whole number of at most 4096 bits; it has 4097'):
        _facts.encode({"n": 1 << 4096})
    assert _facts.encode(-(1 << 4095)) == -(1 << 4095)


def test_depth_and_cycles() -> None:
    deep: list[Any] = []
    for _ in range(64):
        deep = [deep]
    assert _facts.decode(_facts.encode(deep)) == deep
    with pytest.raises(ValueError, match="must not be nested deeper than 64 levels, nor hold itself"):
        _facts.encode([deep])
    deep[0] = deep
    with pytest.raises(ValueError, match="nor hold itself"):
        _facts.encode(deep)


@pytest.mark.parametrize(
    "coded", [{"$float": "1"}, {"$float": 1}, {"$float": []}, {"$dict": 1}, {"$dict": []}], ids=str
)
def test_codes_that_stand_for_nothing(coded: Any) -> None:
    with pytest.raises(ValueError, match="stands for nothing"):
        _facts.decode({"a": [coded]})
