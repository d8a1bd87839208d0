"""Data frames of pandas, polars and pyarrow: one set of rules, columns found by name, labels of any precision."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import kofn
from kofn.tables import Columns

RNG = np.random.default_rng(0)
BAGS, SIZE = 40, 3
ROWS = BAGS * SIZE
GROUPS = np.repeat(np.arange(BAGS), SIZE)
COLOUR = RNG.choice(["blue", "red"], ROWS).tolist()
TRUTH = np.array([colour == "red" for colour in COLOUR])
Y = TRUTH.reshape(BAGS, SIZE).mean(1).repeat(SIZE)
GAPS = RNG.random(ROWS) < 0.2
AGE = [None if gap else float(age) for gap, age in zip(GAPS, RNG.normal(40, 10, ROWS), strict=True)]
VISITS = [None if gap else int(number) for gap, number in zip(GAPS[::-1], RNG.integers(0, 9, ROWS), strict=True)]
DATA = {"colour": COLOUR, "age": AGE, "visits": VISITS, "member": (RNG.random(ROWS) < 0.5).tolist()}

LIBRARIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pandas": pd.DataFrame,
    "pandas, objects": lambda data: pd.DataFrame(data, dtype=object),
    "pandas, nullable": lambda data: pd.DataFrame(data).convert_dtypes(),
    "pandas of arrow": lambda data: pd.DataFrame(data).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame,
    "polars, categories": lambda data: pl.DataFrame(data, schema_overrides={"colour": pl.Categorical()}),
    "pyarrow": pa.table,
}


def model(**options: Any) -> kofn.LLPClassifier:
    return kofn.LLPClassifier(kofn.Linear(l2=0.01), random_state=0, **options)


EXPECTED = model().fit(pd.DataFrame(DATA), Y, groups=GROUPS).decision_function(pd.DataFrame(DATA))


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_library_gives_the_same(library: str) -> None:
    frame = LIBRARIES[library](DATA)
    fitted = model().fit(frame, Y, groups=GROUPS)
    assert fitted.columns_ is not None
    assert fitted.columns_.categories == {"colour": ["blue", "red"], "member": ["False", "True"]}
    assert fitted.feature_names_in_.tolist() == list(DATA)
    for other in LIBRARIES.values():
        assert np.array_equal(fitted.decision_function(other(DATA)), EXPECTED)


@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_are_found_by_name_with_and_without_categories(library: str) -> None:
    for names in (["colour", "age", "visits"], ["age", "visits"]):
        make = LIBRARIES[library]
        frame, other = (make({name: DATA[name] for name in order}) for order in (names, names[::-1]))
        fitted = model().fit(frame, Y, groups=GROUPS)
        assert np.array_equal(fitted.predict_proba(other), fitted.predict_proba(frame))
        with pytest.raises(ValueError, match="column 'age' is missing"):
            fitted.predict(make({"visits": VISITS, "colour": COLOUR}))


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_unseen_category_and_a_missing_one(library: str) -> None:
    columns = Columns().learn(LIBRARIES[library]({"a": ["x", "y", None], "n": [1, 2, None]}))
    new = LIBRARIES[library]({"a": ["z", None, "y"], "n": [None, 1, 2]})
    found = columns(new)
    np.testing.assert_array_equal(found, [[np.nan, np.nan], [np.nan, 1], [1, 2]])
    assert columns.unseen(new, found) == {"a": (1, "z")}


@pytest.mark.parametrize(
    "names", [[0, 1, 2, 3], [("a", 1), ("a", 2), ("b", 1), ("b", 2)], [0, "b", 2.5, None]], ids=str
)
def test_names_of_columns_that_are_no_text(names: list[Any]) -> None:
    frame = pd.DataFrame(DATA)
    frame.columns = pd.MultiIndex.from_tuples(names) if isinstance(names[0], tuple) else pd.Index(names, dtype=object)
    fitted = model().fit(frame, Y, groups=GROUPS)
    assert np.array_equal(fitted.decision_function(frame), EXPECTED)
    assert fitted.columns_ is not None
    assert fitted.columns_.names == [str(name) for name in names]
    assert not hasattr(fitted, "feature_names_in_")


def test_an_array_in_place_of_a_frame_without_names() -> None:
    x = RNG.normal(size=(ROWS, 2))
    fitted = model().fit(pd.DataFrame(x), Y, groups=GROUPS)
    assert np.array_equal(fitted.decision_function(x), fitted.decision_function(pd.DataFrame(x)))


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table], ids=["pandas", "pyarrow"])
def test_two_columns_of_one_name(make: Any) -> None:
    if make is pd.DataFrame:
        frame = pd.DataFrame(np.ones((ROWS, 2)), columns=["a", "a"]).assign(c=COLOUR)
    else:
        frame = pa.Table.from_arrays([pa.array(AGE), pa.array(AGE)], names=["a", "a"])
    with pytest.raises(ValueError, match="`X` must have columns of different names; two are named 'a'"):
        model().fit(frame, Y, groups=GROUPS)


def test_objects_that_are_numbers_are_numbers() -> None:
    age = [None if age is None else Decimal(age) for age in AGE]
    for values in (pd.Series(AGE, dtype=object), pd.Series(age, dtype=object), pl.Series(AGE).cast(pl.Decimal(38, 15))):
        frame = (pl.DataFrame if isinstance(values, pl.Series) else pd.DataFrame)(DATA | {"age": values})
        np.testing.assert_allclose(model().fit(frame, Y, groups=GROUPS).decision_function(frame), EXPECTED, rtol=1e-5)


@pytest.mark.parametrize("values", [[1.5, "old"], [1.5, [1]], [{}, {}], [1.5, True]], ids=str)
def test_objects_that_are_neither_numbers_nor_text(values: list[Any]) -> None:
    frame = pd.DataFrame({"age": pd.Series(values * (ROWS // 2), dtype=object)})
    with pytest.raises(ValueError, match="column 'age' must be numbers or text; it has a"):
        model().fit(frame, Y, groups=GROUPS)


def test_a_frame_that_is_lazy_or_has_dates() -> None:
    with pytest.raises(ValueError, match=r"must be in memory; this one is lazy. Pass X.collect\(\)"):
        model().fit(pl.DataFrame(DATA).lazy(), Y, groups=GROUPS)
    dates = pd.date_range("2020-01-01", periods=ROWS)
    for make in (pd.DataFrame, pl.DataFrame):
        with pytest.raises(ValueError, match="column 'day' is dates or times"):
            model().fit(make({"day": dates}), Y, groups=GROUPS)


# Labels


THIRDS: dict[str, Any] = {
    "float32": Y.astype(np.float32),
    "pandas float32": pd.Series(Y, dtype="float32"),
    "pandas Float32": pd.Series(Y, dtype="Float32"),
    "pandas of arrow": pd.Series(Y, dtype="float[pyarrow]"),
    "torch": torch.tensor(Y, dtype=torch.float32),
    "polars": pl.Series(Y, dtype=pl.Float32),
    "pyarrow": pa.chunked_array([pa.array(Y, pa.float32())]),
}
X = np.column_stack([TRUTH + RNG.normal(size=ROWS), RNG.normal(size=ROWS)])


@pytest.mark.parametrize("kind", THIRDS)
def test_thirds_of_any_precision_are_counts_of_three(kind: str) -> None:
    expected = model().fit(X, Y, groups=GROUPS)
    found = model().fit(X, THIRDS[kind], groups=GROUPS)
    assert np.array_equal(found.decision_function(X), expected.decision_function(X))
    assert found.score(X, THIRDS[kind], GROUPS) == expected.score(X, Y, GROUPS)
    given = found.posterior_proba(X, THIRDS[kind], GROUPS)
    assert np.allclose(given[:, 1].reshape(BAGS, SIZE).sum(1), TRUTH.reshape(BAGS, SIZE).sum(1))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_shares_of_classes_of_any_library(make: Any) -> None:
    kind = RNG.integers(0, 3, ROWS)
    shares = np.eye(3)[kind].reshape(BAGS, SIZE, 3).mean(1).repeat(SIZE, axis=0)
    expected = model().fit(X, shares, groups=GROUPS)
    columns = {name: shares[:, place].astype(np.float32) for place, name in enumerate(["ant", "bee", "cat"])}
    found = model().fit(X, make(columns), groups=GROUPS)
    assert found.classes_.tolist() == ["ant", "bee", "cat"]
    assert np.array_equal(found.decision_function(X), expected.decision_function(X))


@pytest.mark.parametrize(
    "make", [pd.Series, pl.Series, lambda values: pa.chunked_array([values])], ids=["pandas", "polars", "pyarrow"]
)
def test_groups_and_weights_of_any_library(make: Any) -> None:
    weight = GROUPS % 2 + 1.0
    expected = model().fit(X, Y, groups=GROUPS, bag_weight=weight)
    names = [f"b{group}" for group in GROUPS]
    found = model().fit(X, Y, groups=make(names), bag_weight=make(weight))
    assert np.array_equal(found.decision_function(X), expected.decision_function(X))
