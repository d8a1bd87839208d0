"""Importance and effects of columns, and rows against the truth, in a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import precision_score, recall_score

import kofn
from kofn.report import ColumnEffect, Importance, Report, render, report_of
from kofn.report._column_effects import MOST_GROUPS, column_effects
from kofn.report._column_marks import effect_marks, effect_scale, importance_marks
from kofn.report._row_curves import row_curves
from kofn.report._row_figures import lift_curve, precision_recall_curve, reliability_curve
from kofn.tables import effect_of, fit_table

pytestmark = pytest.mark.filterwarnings("ignore:this fit is no better")


@pytest.fixture(scope="module")
def data() -> tuple[pd.DataFrame, Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(18, 95, 800), "party": rng.choice(["left", "right"], 800)})
    X["noise"] = rng.normal(size=800)
    truth = rng.random(800) < 1 / (1 + np.exp(-(X["age"] - 55) / 8))
    groups = np.repeat(np.arange(80), 10)
    return X, truth.to_numpy(), groups, np.bincount(groups, truth)[groups].astype(int)


def other(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows that no model has seen: of those of training a report has the scores of other models."""
    return frame.assign(noise=-frame["noise"])


def test_llp_report_has_importance_effects_and_curves(data: Any) -> None:
    X, truth, groups, y = data
    model = kofn.LLPClassifier("linear", label="count", random_state=0).fit(X, y, groups=groups)
    of_training = report_of(model, X, y, groups).importance
    assert of_training is not None
    assert of_training.seen  # by the model that was fitted to all bags at last
    X = other(X)
    report = report_of(model, X, y, groups, truth=truth)
    assert report.importance is not None
    assert not report.importance.seen
    assert report.importance.columns[0] == "age"
    assert report.importance.low[0] > 0
    assert report.effects[0].column == "age"
    assert report.details is not None
    assert report.details.table.columns[0] == "age"
    p = model.predict_proba(X)[:, 1]
    old = X["age"].between(70, 79)
    place = list(report.effects[0].groups).index("70 to 79")
    assert report.effects[0].probability[place] == pytest.approx(p[old].mean())
    assert report.effects[0].observed is not None
    assert report.effects[0].observed[place] == pytest.approx(truth[old].mean())
    assert report.effects[0].rows[place] == old.sum()
    assert report.row_curves is not None
    page = render(report)
    for words in ("Which columns matter", "What goes with a column", "Rows against the truth", "70 to 79"):
        assert words in page
    without = report_of(model, X, groups=groups)
    assert (without.importance, without.row_curves) == (None, None)
    assert without.effects  # of the columns that go most with the scores


def test_effects_are_those_of_kofn_effect(data: Any, tmp_path: Path) -> None:
    X, _, groups, y = data
    X.assign(box=groups, votes=y).to_csv(tmp_path / "t.csv", index=False)
    estimator = kofn.LLPClassifier(kofn.Linear(l2=0.1), label="count", bootstrap=5, random_state=0)
    model = fit_table(tmp_path / "t.csv", estimator, bag="box", label="votes")
    told = effect_of(model, tmp_path / "t.csv", by=["age"])
    frame = pd.read_csv(tmp_path / "t.csv")
    (mine,) = column_effects([("age", frame["age"])], model.estimator._member_logits(frame), None)
    assert [(name,) for name in mine.groups] == told.groups
    np.testing.assert_allclose(mine.probability, told.probability[:, 0])
    assert mine.low is not None
    assert told.low is not None
    np.testing.assert_allclose(mine.low, told.low[:, 0])


def test_classes_have_effects_and_curves_in_their_chapters(data: Any) -> None:
    X, truth, groups, _ = data
    codes = np.where(truth, 1 + (X["party"] == "left"), 0)
    Y = np.stack([np.bincount(groups, codes == code)[groups] for code in range(3)], 1)
    model = kofn.LLPClassifier(kofn.Linear(l2=0.1), label="count", random_state=0).fit(X, Y, groups=groups)
    X = other(X)
    report = report_of(model, X, Y, groups, truth=codes)
    assert report.importance is not None
    assert set(report.importance.columns[:2]) == {"age", "party"}
    for code, part in enumerate(report.parts):
        p = model.predict_proba(X)[:, code]
        effect = next(one for one in part.effects if one.column == "party")
        assert effect.probability[0] == pytest.approx(p[X["party"] == "left"].mean())
        assert part.row_curves is not None
        assert part.row_curves.share == pytest.approx((codes == code).mean())
    render(report)


def test_pu_curves_are_of_the_unlabelled(data: Any) -> None:
    X, truth, _, _ = data
    y = (truth & (np.arange(800) % 2 == 0)).astype(int)
    model = kofn.PUClassifier("linear", mixture=0.3, random_state=0).fit(X, y)
    report = report_of(model, X, y, truth=truth)
    assert report.row_curves is not None
    assert report.row_curves.rows == (y == 0).sum()
    assert report.importance is not None
    assert report.importance.measure.startswith("AUC")
    assert "AUC of labelled positives" in render(report)


def test_curves_against_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=1000)
    positive = rng.random(1000) < 1 / (1 + np.exp(-scores))
    curves = row_curves(scores, positive)
    assert curves is not None
    for part, lift, recall, precision in zip(curves.taken, curves.lift, curves.recall, curves.precision, strict=True):
        first = scores >= np.sort(scores)[-round(part * 1000)]
        assert recall == pytest.approx(recall_score(positive, first))
        assert precision == pytest.approx(precision_score(positive, first))
        assert lift == pytest.approx(precision / positive.mean())
    assert curves.members.sum() == 1000
    assert np.average(curves.observed, weights=curves.members) == pytest.approx(positive.mean())
    assert np.abs(curves.observed - curves.expected).max() < 0.15  # they are calibrated
    assert row_curves(scores, np.zeros(1000, dtype=bool)) is None
    for figure in (reliability_curve(curves), lift_curve(curves), precision_recall_curve(curves)):
        assert figure.svg.startswith("<svg")
    few = row_curves(np.array([2.0, -1.0]), np.array([True, False]))
    assert few is not None
    assert few.taken.min() == 0.5


def test_groups_of_columns_that_make_none() -> None:
    logits = torch.zeros(1, 40, dtype=torch.float64)
    words = pd.Series([f"name {i % 20}" for i in range(40)])
    dates = pd.Series(pd.date_range("2020-01-01", periods=40))
    found = column_effects([("same", pd.Series([1.0] * 40)), ("when", dates), ("who", words)], logits, None)
    assert [one.column for one in found] == ["who"]
    assert len(found[0].groups) == MOST_GROUPS
    assert found[0].note == "The 12 most frequent of 20 values."
    missing = pd.Series([None, "a"] * 20)
    assert column_effects([("x", missing)], logits, None)[0].groups == ["a", "missing"]


def test_marks_stay_on_their_scale() -> None:
    importance = Importance(
        ["a", "b"], np.array([0.5, -0.05]), np.array([0.4, -0.1]), np.array([0.6, 0.0]), "score", "Said."
    )
    marks = importance_marks(importance)
    assert marks.summary == "Most important: a, 100\u00a0% of the sum of these. Said."
    assert marks.lines[0].more == "90\u00a0% interval 0.4 to 0.6"
    assert [round(line.place, 6) for line in marks.lines] == [round(100 * 0.6 / 0.7, 6), round(100 * 0.05 / 0.7, 6)]
    assert marks.zero == pytest.approx(100 * 0.1 / 0.7)
    flat = importance_marks(Importance(["a"], np.zeros(1), np.zeros(1), np.zeros(1), "score"))
    assert 0 <= flat.lines[0].place <= 100
    effect = ColumnEffect(
        "x", ["-2 to below -1", "b"], np.array([3, 4]), np.array([0.02, 0.04]), observed=np.array([0.0, 0.08])
    )
    assert effect_scale([effect]) == 0.1
    lines = effect_marks(effect, 0.1).lines
    assert lines[0].name == "\u22122 to below \u22121"
    assert lines[1].observed == pytest.approx(80)
    many = Importance([f"x{i}" for i in range(12)], np.ones(12), np.ones(12), np.ones(12), "score", "Said.")
    page = render(Report("Wide", task="llp", importance=many))
    assert "Show 4 more columns" in page


def test_no_column_is_called_important_whose_interval_includes_zero() -> None:
    one_bag = Importance(["a", "b"], np.array([0.0, -0.1]), np.full(2, -np.inf), np.full(2, np.inf), "score")
    marks = importance_marks(one_bag)
    assert marks.summary == "No column is certain to matter: no interval lies above 0."
    assert (marks.lines[1].low, marks.lines[1].high) == (0, 100)
    assert "not known from one bag" in marks.lines[0].more
    means, low, high = np.array([0.5, 0.3]), np.array([-0.1, 0.2]), np.array([1.1, 0.4])
    marks = importance_marks(Importance(["a", "b"], means, low, high, "score"))
    assert marks.summary.startswith("Most important of those that are certain: b, 37.5")
