"""DataFrames with text, categories and gaps, for every learner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import kofn
from kofn.estimators import load

RNG = np.random.default_rng(0)
BAGS, SIZE = 60, 4
ROWS = BAGS * SIZE
GROUPS = np.repeat(np.arange(BAGS), SIZE)
COLOUR = RNG.choice(["blue", "green", "red"], ROWS)
TRUTH = (COLOUR == "red").astype(np.int64)
Y = TRUTH.reshape(BAGS, SIZE).mean(1).repeat(SIZE)
GAPS = RNG.random(ROWS) < 0.2
FRAME = pd.DataFrame(
    {
        "colour": COLOUR,
        "age": np.where(GAPS, np.nan, RNG.normal(40, 10, ROWS)),
        "grade": pd.Categorical(RNG.choice(["a", "b"], ROWS), categories=["b", "a", "never"]),
        "member": RNG.random(ROWS) < 0.5,
        "visits": pd.Series(RNG.integers(0, 9, ROWS), dtype="Int64").mask(RNG.random(ROWS) < 0.1).array,
    },
    index=np.arange(ROWS)[::-1],
)
FRAME.loc[FRAME.index[:5], "grade"] = None

LEARNERS: dict[str, Any] = {
    "trees": kofn.Trees(rounds=60, learning_rate=0.2, options={"min_data_per_group": 10}),
    "linear": kofn.Linear(l2=1e-3),
    "network": kofn.Network(hidden=(8,), epochs=40, lr=0.03, validation_fraction=0.0, patience=None),
}


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    return {
        name: kofn.LLPClassifier(learner, random_state=0).fit(FRAME, Y, groups=GROUPS)
        for name, learner in LEARNERS.items()
    }


@pytest.fixture(params=LEARNERS)
def model(request: pytest.FixtureRequest, models: dict[str, Any]) -> Any:
    return models[request.param]


def test_a_category_is_learned(model: Any) -> None:
    assert (model.predict(FRAME) == TRUTH).mean() > 0.95
    assert model.feature_names_in_.tolist() == list(FRAME)
    assert model.n_features_in_ == 5
    assert model.columns_.numeric == ["age", "visits"]
    assert model.columns_.categories == {
        "colour": ["blue", "green", "red"],
        "grade": ["a", "b"],
        "member": ["False", "True"],
    }


def test_columns_are_found_by_name(model: Any) -> None:
    expected = model.decision_function(FRAME)
    other = FRAME[list(FRAME)[::-1]].assign(unknown="x")
    assert np.array_equal(model.decision_function(other), expected)
    assert np.array_equal(model.decision_function(FRAME.iloc[[3, 1]]), expected[[3, 1]])
    plain = FRAME.assign(grade=FRAME["grade"].astype(object), visits=FRAME["visits"].astype(float))
    assert np.array_equal(model.decision_function(plain), expected)


def test_an_unseen_category_is_a_missing_one(model: Any) -> None:
    unseen = model.decision_function(FRAME.assign(colour="violet"))
    assert np.isfinite(unseen).all()
    for missing in (None, np.nan, pd.NA):
        assert np.array_equal(model.decision_function(FRAME.assign(colour=missing).astype({"colour": object})), unseen)


def test_missing_numbers_are_scored(model: Any) -> None:
    scores = model.decision_function(FRAME.assign(age=np.nan, visits=pd.NA).astype({"visits": "Int64"}))
    assert np.isfinite(scores).all()
    assert ((scores > 0) == TRUTH).mean() > 0.9


@pytest.mark.parametrize("column", FRAME)
def test_a_missing_column(model: Any, column: str) -> None:
    with pytest.raises(ValueError, match=f"column '{column}' is missing, which the model was trained with"):
        model.predict(FRAME.drop(columns=column))


def test_text_where_numbers_were(model: Any) -> None:
    with pytest.raises(ValueError, match="column 'age' must be numbers, as it was in training; it has text"):
        model.predict(FRAME.assign(age="old"))


def test_what_is_no_frame(model: Any) -> None:
    with pytest.raises(ValueError, match="X must be a data frame with the columns that LLPClassifier was trained with"):
        model.predict(np.zeros((3, 5)))


def test_a_file_keeps_the_columns(model: Any, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    copy = load(tmp_path / "model")
    unseen = FRAME.assign(colour=np.resize(["red", "violet", None], ROWS))
    assert np.array_equal(copy.decision_function(unseen), model.decision_function(unseen))


@pytest.mark.parametrize("name", LEARNERS)
def test_a_refit_on_numbers_forgets_the_columns(name: str) -> None:
    numbers = FRAME[["age"]].assign(red=TRUTH.astype(float))
    model = kofn.LLPClassifier(LEARNERS[name], random_state=0).fit(FRAME, Y, groups=GROUPS)
    model.fit(numbers, Y, groups=GROUPS)
    assert model.columns_ is not None
    assert model.columns_.categories == {}
    assert model.feature_names_in_.tolist() == ["age", "red"]
    assert (model.predict(numbers) == TRUTH).mean() > 0.95
    assert np.isfinite(model.decision_function(numbers.assign(age=np.nan))).all()


@pytest.mark.parametrize("name", ["linear", "network"])
def test_a_gap_that_training_had_none_of_is_the_mean(name: str) -> None:
    numbers = pd.DataFrame({"age": RNG.normal(40, 10, ROWS), "red": TRUTH.astype(float)})
    model = kofn.LLPClassifier(LEARNERS[name], random_state=0).fit(numbers, Y, groups=GROUPS)
    at_mean = model.decision_function(numbers.assign(age=numbers["age"].mean()))
    assert np.allclose(model.decision_function(numbers.assign(age=np.nan)), at_mean, atol=1e-5)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (np.full(ROWS, np.nan), "column 'new' has no value"),
        (np.where(GAPS, np.inf, 0.0), "column 'new' has an infinite value"),
        (pd.date_range("2020-01-01", periods=ROWS), "column 'new' is dates or times"),
        ([(1,)] * ROWS, "column .new. must be numbers or text; it has a tuple"),
    ],
    ids=["empty", "infinite", "dates", "tuples"],
)
def test_columns_that_cannot_be_learned(column: Any, message: str) -> None:
    frame = FRAME.assign(new=pd.Series(column, index=FRAME.index))
    with pytest.raises(ValueError, match=message):
        kofn.LLPClassifier("linear").fit(frame, Y, groups=GROUPS)
