"""Encoding of columns: scikit-learn's own answer, chunk by chunk, through JSON and back."""

from __future__ import annotations

import itertools
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from kofn.tables import TableEncoder


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


def by_scikit_learn(train: pd.DataFrame, test: pd.DataFrame) -> Any:
    """The same by a ColumnTransformer; what is missing becomes the mean, with an indicator, or a category."""
    text = {"work": object, "member": object}
    train, test = train.astype(text), test.astype(text)
    for frame in (train, test):
        frame["work"] = frame["work"].where(frame["work"].notna(), np.nan)
        frame["member"] = frame["member"].map(str)
    numbers = make_pipeline(SimpleImputer(strategy="mean", keep_empty_features=True), StandardScaler())
    # The scale is that of the values that are there: an imputed column has a smaller one.
    scaler = StandardScaler().fit(train[["age", "gain"]].astype(float))
    transformer = ColumnTransformer(
        [
            ("numbers", numbers, ["age", "gain"]),
            ("hot", OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["work", "member"]),
        ]
    ).fit(train)
    result = np.asarray(transformer.transform(test))
    scaled = np.nan_to_num(scaler.transform(test[["age", "gain"]].astype(float)), nan=0.0)
    return np.hstack([scaled, test[["gain"]].isna().to_numpy(float), result[:, 2:]])


def test_equals_scikit_learn() -> None:
    train, test = some_frame(80, 0), some_frame(40, 1)
    encoder = TableEncoder().fit(train)
    assert encoder.numeric == ["age", "gain"]
    assert encoder.categorical == ["work", "member"]
    assert encoder.feature_names[:4] == ["age", "gain", "gain is missing", "work=none of it"]
    assert encoder.transform(test).dtype == np.float32
    np.testing.assert_allclose(encoder.transform(test), by_scikit_learn(train, test), rtol=1e-6, atol=1e-7)


def test_mean_is_zero_and_deviation_one() -> None:
    frame = some_frame(500)
    numbers = TableEncoder().fit(frame).transform(frame)[:, :2].astype(float)
    there = frame["gain"].notna().to_numpy()
    np.testing.assert_allclose(numbers[:, 0].mean(), 0, atol=1e-6)
    np.testing.assert_allclose(numbers[there, 1].std(), 1, atol=1e-6)
    assert (numbers[~there, 1] == 0).all()


@settings(max_examples=30)
@given(st.lists(st.integers(1, 59), min_size=1, max_size=5, unique=True))
def test_chunks_make_no_difference(cuts: list[int]) -> None:
    frame = some_frame(60)
    edges = [0, *sorted(cuts), 60]
    chunks = [frame.iloc[a:b] for a, b in itertools.pairwise(edges)]
    whole, pieces = TableEncoder().fit(frame), TableEncoder().fit(iter(chunks))
    assert whole.feature_names == pieces.feature_names
    out = np.full((60, len(whole.feature_names)), np.nan, np.float32)
    for a, b in itertools.pairwise(edges):
        pieces.transform(frame.iloc[a:b], out=out[a:b])
    np.testing.assert_allclose(out, whole.transform(frame), rtol=1e-5, atol=1e-6)


def test_facts_are_json_and_come_back_the_same() -> None:
    encoder = TableEncoder(max_categories=9).fit(some_frame())
    facts = json.loads(json.dumps(encoder.to_facts(), allow_nan=False))
    again = TableEncoder.from_facts(facts)
    assert again.to_facts() == encoder.to_facts()
    assert again.feature_names == encoder.feature_names
    other = some_frame(seed=5)
    np.testing.assert_array_equal(again.transform(other), encoder.transform(other))


@pytest.mark.parametrize("frame", [pd.DataFrame({"x": [1.0, 3.0]}), pd.DataFrame({"c": ["a", "b"]})], ids=["x", "c"])
def test_one_kind_of_column_only(frame: pd.DataFrame) -> None:
    again = TableEncoder.from_facts(TableEncoder().fit(frame).to_facts())
    expected = [[-1.0], [1.0]] if "x" in frame else [[1.0, 0.0], [0.0, 1.0]]
    assert again.transform(frame).tolist() == expected


def test_unknown_and_newly_missing_values() -> None:
    encoder = TableEncoder().fit(pd.DataFrame({"x": [1.0, 3.0], "c": ["a", "b"]}))
    new = pd.DataFrame({"x": [np.nan, 5.0], "c": ["never seen", None]})
    assert encoder.transform(new).tolist() == [[0.0, 0.0, 0.0], [3.0, 0.0, 0.0]]


def test_a_missing_category_is_one_of_its_own() -> None:
    frame = pd.DataFrame({"c": ["a", None, "a"]})
    encoder = TableEncoder().fit(frame)
    assert encoder.feature_names == ["c=a", "c is missing"]
    assert encoder.transform(frame).tolist() == [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]


def test_constant_column_is_zero() -> None:
    frame = pd.DataFrame({"x": [7.0, 7.0, 7.0]})
    assert TableEncoder().fit(frame).transform(frame).tolist() == [[0.0], [0.0], [0.0]]


def test_whole_numbers_with_holes_and_truth_values() -> None:
    frame = pd.DataFrame(
        {"n": pd.array([1, None, 3], dtype="Int64"), "b": pd.array([True, None, False], dtype="boolean")}
    )
    encoder = TableEncoder().fit(frame)
    assert encoder.feature_names == ["n", "n is missing", "b=False", "b=True", "b is missing"]
    assert encoder.transform(frame)[1].tolist() == [0.0, 1.0, 0.0, 0.0, 1.0]


BAD = {
    "identifier": (
        pd.DataFrame({"mail": [f"u{i}" for i in range(20)]}),
        "'mail' is text with more than 5 different values, so likely an identifier. Leave it out with --drop mail",
    ),
    "decimal commas": (
        pd.DataFrame({"kg": [f"{i},5" for i in range(20)] + ["7"]}),
        r"most of them numbers, with a decimal comma as in '0,5'. .*read_csv\(..., decimal=','\), or leave it out with",
    ),
    "numbers and words": (
        pd.DataFrame({"kg": [f"{i}.5" for i in range(20)] + ["unknown"]}),
        r"most of them numbers, but not 'unknown'. .*\(..., na_values=\['unknown'\]\), or leave it out with --drop kg",
    ),
    "commas and words": (
        pd.DataFrame({"kg": [f"{i},5" for i in range(20)] + ["unknown"]}),
        r"as in '0,5', but not 'unknown'. .*\(..., decimal=',', na_values=\['unknown'\]\)",
    ),
    "numbers as text": (
        pd.DataFrame({"kg": [f"{i}" for i in range(20)]}),
        "most of them numbers. Read them as numbers",
    ),
    "dates": (pd.DataFrame({"day": pd.to_datetime(["2020-01-01"])}), "'day' is dates.*--drop day"),
    "empty": (pd.DataFrame({"x": [np.nan, np.nan], "y": [1.0, 2.0]}), "'x' has no value.*--drop x"),
    "infinite": (pd.DataFrame({"x": [1.0, np.inf]}), "'x' has an infinite value"),
    "objects": (
        pd.DataFrame({"x y": [Decimal(1), Decimal(2)]}),
        'must be numbers or text; it has a Decimal.*--drop "x y"',
    ),
    "no columns": (pd.DataFrame(index=[0, 1]), "no column to learn from"),
}


@pytest.mark.parametrize("case", BAD)
def test_columns_that_are_refused(case: str) -> None:
    frame, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        TableEncoder(max_categories=5).fit(frame)


def test_no_rows() -> None:
    with pytest.raises(ValueError, match="no rows"):
        TableEncoder().fit([])


def test_text_where_numbers_were() -> None:
    encoder = TableEncoder().fit(pd.DataFrame({"x": [1.0, 2.0]}))
    with pytest.raises(ValueError, match="column 'x' must be numbers, as it was in training"):
        encoder.transform(pd.DataFrame({"x": ["one", "two"]}))
