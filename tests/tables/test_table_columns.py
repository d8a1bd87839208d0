"""Columns as numbers and codes: scikit-learn's own answer, chunk by chunk, through JSON and back."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import OrdinalEncoder

from kofn.tables import Columns


def some_frame(rows: int = 60, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "work": rng.choice(["private", "state", "none of it"], rows),
            "gain": rng.normal(1e4, 3e3, rows),
            "member": rng.random(rows) < 0.5,
        }
    )
    frame.loc[rng.random(rows) < 0.2, "gain"] = np.nan
    frame.loc[rng.random(rows) < 0.2, "work"] = None
    return frame


def test_numbers_stay_and_categories_are_codes() -> None:
    """Codes are those of scikit-learn's OrdinalEncoder; what is missing or unknown is NaN."""
    train, test = some_frame(80, 0), some_frame(40, 1)
    columns = Columns().learn(train)
    assert (columns.names, columns.numeric) == (["age", "work", "gain", "member"], ["age", "gain"])
    assert columns.categories == {"work": ["none of it", "private", "state"], "member": ["False", "True"]}
    assert columns.category_counts == {1: 3, 3: 2}
    found = columns(test)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found[:, [0, 2]], test[["age", "gain"]].to_numpy(np.float32))
    text = {name: frame[["work", "member"]].astype(object) for name, frame in (("train", train), ("test", test))}
    for frame in text.values():
        frame["work"] = frame["work"].where(frame["work"].notna(), np.nan)
        frame["member"] = frame["member"].map(str)
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan, dtype=np.float32)
    np.testing.assert_array_equal(found[:, [1, 3]], encoder.fit(text["train"]).transform(text["test"]))


@settings(max_examples=30)
@given(st.lists(st.integers(1, 59), min_size=1, max_size=5, unique=True))
def test_chunks_make_no_difference(cuts: list[int]) -> None:
    frame = some_frame(60)
    edges = [0, *sorted(cuts), 60]
    chunks = [frame.iloc[a:b] for a, b in itertools.pairwise(edges)]
    whole, pieces = Columns().learn(frame), Columns().learn(iter(chunks))
    assert whole.to_facts() == pieces.to_facts()
    np.testing.assert_array_equal(np.concatenate([pieces(chunk) for chunk in chunks]), whole(frame))


def test_facts_are_json_and_come_back_the_same() -> None:
    columns = Columns(max_categories=9).learn(some_frame())
    again = Columns.from_facts(json.loads(json.dumps(columns.to_facts(), allow_nan=False)))
    assert again.to_facts() == columns.to_facts()
    other = some_frame(seed=5)
    np.testing.assert_array_equal(again(other), columns(other))


def test_unknown_and_newly_missing_values() -> None:
    columns = Columns().learn(pd.DataFrame({"x": [1.0, 3.0], "c": ["a", "b"]}))
    new = pd.DataFrame({"more": [1, 2], "c": ["never seen", None], "x": [np.nan, 5.0]})
    np.testing.assert_array_equal(columns(new), [[np.nan, np.nan], [5.0, np.nan]])
    with pytest.raises(ValueError, match="column 'c' is missing"):
        columns(new.drop(columns="c"))


def test_whole_numbers_with_holes_and_truth_values() -> None:
    frame = pd.DataFrame(
        {"n": pd.array([1, None, 3], dtype="Int64"), "b": pd.array([True, None, False], dtype="boolean")}
    )
    columns = Columns().learn(frame)
    assert columns.categories == {"b": ["False", "True"]}
    np.testing.assert_array_equal(columns(frame), [[1, 1], [np.nan, np.nan], [3, 0]])


BAD = {
    "identifier": (
        pd.DataFrame({"mail": [f"u{i}" for i in range(20)]}),
        "'mail' is text with more than 5 different values, so likely an identifier. Leave it out",
    ),
    "decimal commas": (
        pd.DataFrame({"kg": [f"{i},5" for i in range(20)] + ["7"]}),
        r"most of them numbers, with a decimal comma as in '0,5'. .*read_csv\(..., decimal=','\), or leave it out, or",
    ),
    "numbers and words": (
        pd.DataFrame({"kg": [f"{i}.5" for i in range(20)] + ["unknown"]}),
        r"most of them numbers, but not 'unknown'. .*\(..., na_values=\['unknown'\]\), or leave it out",
    ),
    "commas and words": (
        pd.DataFrame({"kg": [f"{i},5" for i in range(20)] + ["unknown"]}),
        r"as in '0,5', but not 'unknown'. .*\(..., decimal=',', na_values=\['unknown'\]\)",
    ),
    "numbers as text": (
        pd.DataFrame({"kg": [f"{i}" for i in range(20)]}),
        "most of them numbers. Read them as numbers",
    ),
    "dates": (pd.DataFrame({"day": pd.to_datetime(["2020-01-01"])}), "'day' is dates"),
    "empty": (pd.DataFrame({"x": [np.nan, np.nan], "y": [1.0, 2.0]}), "'x' has no value. Leave it out"),
    "infinite": (pd.DataFrame({"x": [1.0, np.inf]}), "'x' has an infinite value"),
    "objects": (
        pd.DataFrame({"x y": [[1], [2]]}),
        "must be numbers or text; it has a list. Leave it out",
    ),
    "no columns": (pd.DataFrame(index=[0, 1]), "no rows to learn from"),
}


@pytest.mark.parametrize("case", BAD)
def test_columns_that_are_refused(case: str) -> None:
    frame, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        Columns(max_categories=5).learn(frame)


def test_no_rows() -> None:
    with pytest.raises(ValueError, match="no rows"):
        Columns().learn([])


def test_text_where_numbers_were() -> None:
    columns = Columns().learn(pd.DataFrame({"x": [1.0, 2.0]}))
    with pytest.raises(ValueError, match="column 'x' must be numbers, as it was in training"):
        columns(pd.DataFrame({"x": ["one", "two"]}))
