"""Plain JSON values to save, and when two of them are the same."""

from __future__ import annotations

import math

from hypothesis import strategies as st

WORDS = st.sampled_from(["$float", "$dict", "nan", "inf", "-inf", ""]) | st.text(max_size=4)
LEAVES = st.none() | st.booleans() | st.integers(-(2**200), 2**200) | st.floats() | WORDS
PLAIN = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=3))


def same(left: object, right: object) -> bool:
    """Equal values of equal types; NaN equals NaN, 0.0 does not equal -0.0, keys are in the same order."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or left.hex() == right.hex()
    return left == right
