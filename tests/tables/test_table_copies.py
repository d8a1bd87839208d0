"""Rows that stand for several instances."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import table_data
from cli_calls import kofn

from kofn.estimators import LLPClassifier, MILClassifier
from kofn.learners import Linear
from kofn.report import render
from kofn.tables import (
    TableModel,
    cross_validate_table,
    evaluate_bags,
    fit_table,
    predict_bags,
    predict_rows,
    report_table,
)

pytestmark = pytest.mark.filterwarnings("ignore:this fit is no better")
LINEAR = Linear(l2=0.1)


def people_table() -> tuple[pd.DataFrame, pd.DataFrame]:
    """A row for each kind of person with how many there are, and the same with a row for each person."""
    frame = table_data.make_table(120)
    frame["people"] = np.random.default_rng(1).integers(1, 4, 120)
    truth = (frame["truth"] == "pos").astype(int)
    frame["count"] = (truth * frame["people"]).groupby(frame["bag"]).transform("sum")
    one_each = frame.loc[frame.index.repeat(frame["people"])].reset_index(drop=True)
    return frame, one_each.assign(one=1)


def test_copies_are_rows_that_are_there_several_times(tmp_path: Path) -> None:
    """A table with copies and the one with its rows repeated are the same in every command."""
    few, many = people_table()
    few_path, many_path = table_data.write(few, tmp_path / "few.csv"), table_data.write(many, tmp_path / "many.csv")
    one, other = table_data.fit_counts(few_path, copies="people"), table_data.fit_counts(many_path)
    assert one.data["sizes"] == other.data["sizes"]
    x = few[["x", "colour"]]
    np.testing.assert_allclose(
        one.estimator.decision_function(x), other.estimator.decision_function(x), rtol=1e-3, atol=1e-3
    )
    for model, path, name in ((one, few_path, "a"), (one, many_path, "b")):
        predict_bags(model, path, tmp_path / f"{name}.csv", bag="bag", copies="people" if name == "a" else "one")
    a, b = (pd.read_csv(tmp_path / f"{name}.csv") for name in "ab")
    pd.testing.assert_frame_equal(a, b)


def test_copies_in_measures_reports_posteriors_and_folds(tmp_path: Path) -> None:
    few, many = people_table()
    few_path, many_path = table_data.write(few, tmp_path / "few.csv"), table_data.write(many, tmp_path / "many.csv")
    model = table_data.fit_counts(few_path, copies="people")
    model.save(tmp_path / "m")
    model = TableModel.load(tmp_path / "m")
    assert model.copies == "people"
    found, expected = evaluate_bags(model, few_path), evaluate_bags(model, many_path, copies="one")
    assert (found.pop("rows"), expected.pop("rows")) == (len(few), len(many))
    told, as_told = found.pop("verdicts"), expected.pop("verdicts")  # lists of dicts, which approx does not take
    assert [one["mark"] for one in told] == [one["mark"] for one in as_told]
    assert found == pytest.approx(expected)
    report = report_table(model, few_path)
    assert report.bags is not None
    assert report.bags.sizes.tolist() == few.groupby("bag", sort=False)["people"].sum().tolist()
    render(report)
    predict_rows(model, few_path, tmp_path / "rows.csv", keep="bag,people", posterior=True)
    rows = pd.read_csv(tmp_path / "rows.csv")
    sums = (rows["posterior"] * rows["people"]).groupby(rows["bag"]).sum()
    np.testing.assert_allclose(sums, few.groupby("bag")["count"].first(), atol=1e-6)
    options: dict[str, Any] = {"bag": "bag", "label": "count", "features": "x", "n_folds": 2}
    folds = cross_validate_table(
        few_path, {"linear": LLPClassifier(LINEAR, random_state=0)}, copies="people", **options
    )
    repeated = cross_validate_table(many_path, {"linear": LLPClassifier(LINEAR, random_state=0)}, **options)
    for name in ("no features", "linear"):
        mean = folds["summary"][name]["loss"]["mean"]
        assert mean == pytest.approx(repeated["summary"][name]["loss"]["mean"], rel=1e-2)


@pytest.mark.parametrize(
    ("people", "words"),
    [
        ("-1", "column 'people': row 1 has '-1', which must be the number of instances"),
        ("1.5", "row 1 has '1.5'"),
        ("many", "row 1 has 'many'"),
        ("", "row 1 has nan"),
        ("1e300", "row 1 has '1e300'"),
    ],
)
def test_copies_that_are_refused(tmp_path: Path, people: str, words: str) -> None:
    frame = table_data.make_table(40).assign(people="1")
    frame.loc[0, "people"] = people
    path = table_data.write(frame, tmp_path / "t.csv")
    with pytest.raises(ValueError, match=words):
        table_data.fit_counts(path, copies="people")
    frame["people"] = np.where(frame["bag"] == "b003", 0, 1)
    with pytest.raises(ValueError, match="column 'people': bag 'b003' has 0 copies of every row"):
        table_data.fit_counts(table_data.write(frame, path), copies="people")
    with pytest.raises(ValueError, match="`copies` goes with proportions and counts"):
        fit_table(path, MILClassifier(LINEAR), bag="bag", label="some", copies="people")


def test_a_count_above_the_rows_of_its_bag_asks_for_copies(tmp_path: Path) -> None:
    path = table_data.write(people_table()[0], tmp_path / "t.csv")
    result = kofn("fit", "llp", path, "--bag", "bag", "--label", "count", "--features", "x", "-o", tmp_path / "m")
    assert result.exit_code == 2
    assert "If a row stands for several instances, say how many: --copies." in result.stderr
