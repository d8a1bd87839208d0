"""A column of labels for each class, from the command line: fit, predict, evaluate, cv, report."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from class_cases import class_task
from typer.testing import CliRunner

import kofn
from kofn.cli import app
from kofn.estimators._class_table import ClassTable
from kofn.estimators._measures import measure
from kofn.tables import TableModel, fit_table
from kofn.tables._label_columns import Column, count_labels, true_classes
from kofn.tables._reading import RowMetadata
from kofn.tables._table_warning import TableWarning

TASK = class_task(60)
VOTES = ["votes_a", "votes_b", "votes_c"]
FIT = ["--bag", "ward", "--label", ",".join(VOTES), "--drop", "vote", "--learner", "linear", "--set", "l2=0.001"]


def run(*args: object, status: int = 0) -> str:
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    assert result.exit_code == status, result.output
    return result.output


def frame(**columns: Any) -> pd.DataFrame:
    votes = {name: TASK.counts[:, i].astype(int) for i, name in enumerate(VOTES)}
    features = {name: TASK.X[:, i] for i, name in enumerate("wxyz")}
    vote = np.array(["a", "b", "c"])[TASK.truth]
    return pd.DataFrame(features | votes | {"ward": TASK.groups, "vote": vote} | columns)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("votes")
    frame().to_csv(where / "votes.csv", index=False)
    run("fit", "llp", where / "votes.csv", *FIT, "--label-kind", "classes", "-o", where / "model")
    return where


def test_fit_says_what_it_learned(folder: Path) -> None:
    model = TableModel.load(folder / "model")
    assert model.labels == VOTES
    assert model.estimator.label == "count"
    assert model.estimator.classes_.tolist() == VOTES
    shown = run("info", folder / "model")
    assert "loss joint" in shown
    assert "votes_a, votes_b, votes_c (counts of each class of the bag)" in shown
    assert set(model.validation) >= {"expected_count_error", "log_likelihood", "randomised_coverage"}


def test_predict_writes_a_probability_for_each_class(folder: Path) -> None:
    args = ("predict", folder / "model", folder / "votes.csv", "--keep", "vote", "--posterior", "-o")
    run(*args, folder / "rows.csv")
    rows = pd.read_csv(folder / "rows.csv")
    assert list(rows) == ["vote", *(f"{what}_{name}" for what in ("probability", "posterior") for name in VOTES)]
    for what in ("probability", "posterior"):
        each = rows[[f"{what}_{name}" for name in VOTES]].to_numpy()
        np.testing.assert_allclose(each.sum(1), 1)
        assert (each.argmax(1) == TASK.truth).mean() > 0.9
    sums = rows[[f"posterior_{name}" for name in VOTES]].groupby(TASK.groups).sum()
    np.testing.assert_allclose(sums, TASK.counts[::6], atol=1e-9)


def test_predict_writes_a_distribution_for_each_class(folder: Path) -> None:
    run("predict", folder / "model", folder / "votes.csv", "--bag", "ward", "-o", folder / "wards.csv")
    wards = pd.read_csv(folder / "wards.csv")
    each = [f"{what}_{name}" for name in VOTES for what in ("mean", "low", "high", "at_least_one")]
    assert list(wards) == ["ward", "size", *each]
    np.testing.assert_allclose(wards[[f"mean_{name}" for name in VOTES]].to_numpy().sum(1), 6)
    for name in VOTES:
        assert (wards[f"low_{name}"] <= wards[f"high_{name}"]).all()


def test_evaluate(folder: Path) -> None:
    found = json.loads(run("evaluate", folder / "model", folder / "votes.csv", "--truth", "vote", "--json"))
    assert found["accuracy"] > 0.9
    matrix = np.array([[found["confusion"][true][other] for other in VOTES] for true in VOTES])
    assert matrix.sum() == 360
    assert np.trace(matrix) == round(found["accuracy"] * 360)
    np.testing.assert_array_equal(matrix.sum(1), np.bincount(TASK.truth))
    shown = run("evaluate", folder / "model", folder / "votes.csv", "--truth", "vote")
    assert "True class, by predicted class" in shown
    bags = json.loads(run("evaluate", folder / "model", folder / "votes.csv", "--json"))
    assert bags["bags"] == 60
    assert bags["log_likelihood"] > bags["log_likelihood_baseline"]
    assert bags["expected_count_error"] < bags["expected_count_error_baseline"]
    other = run("evaluate", folder / "model", folder / "votes.csv", "--truth", "vote", "--positive", "a", status=2)
    assert "goes with two classes" in other


def test_cross_validation_of_classes(folder: Path) -> None:
    found = json.loads(run("cv", "llp", folder / "votes.csv", *FIT, "--folds", "2", "--json"))
    means = {name: values["loss"]["mean"] for name, values in found["summary"].items()}
    assert means["linear"] < means["bag means"] < means["no features"]


def test_proportions_percentages_and_unknown_counts(tmp_path: Path) -> None:
    counts = frame()
    shares = frame(**{name: counts[name] / 6 for name in VOTES})
    unknown = frame(
        votes_b=counts["votes_b"].where(TASK.groups > 20), votes_c=counts["votes_c"].where(TASK.groups > 20)
    )
    fitted = []
    for name, data in {"counts": counts, "shares": shares, "unknown": unknown}.items():
        data.to_csv(tmp_path / f"{name}.csv", index=False)
        estimator = kofn.LLPClassifier(kofn.Linear(l2=1e-3), random_state=0)
        fitted.append(
            fit_table(tmp_path / f"{name}.csv", estimator, bag="ward", label=",".join(VOTES), drop=["vote"]).estimator
        )
    assert [each.label for each in fitted] == ["count", "proportion", "count"]
    assert [each.loss_ for each in fitted] == ["joint", "joint", "marginal"]
    np.testing.assert_array_equal(fitted[0].fitted_.weights, fitted[1].fitted_.weights)


def test_a_column_that_is_the_truth_is_warned_of(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "votes.csv", index=False)
    estimator = kofn.LLPClassifier(kofn.Linear(l2=1.0), random_state=0)
    with pytest.warns(
        TableWarning, match=r"column 'vote' has values whose counts in the bags are the labels, in all 60"
    ):
        fit_table(tmp_path / "votes.csv", estimator, bag="ward", label=",".join(VOTES))
    frame(vote=np.array(["a", "b", "c"])[np.arange(360) % 3]).to_csv(tmp_path / "other.csv", index=False)
    fit_table(tmp_path / "other.csv", estimator, bag="ward", label=",".join(VOTES))  # warnings are errors


def test_two_columns_are_classes_if_so_said(tmp_path: Path) -> None:
    frame(no=TASK.counts[:, 0] + TASK.counts[:, 1], yes=TASK.counts[:, 2]).to_csv(tmp_path / "two.csv", index=False)
    common = ["--bag", "ward", "--label", "no,yes", "--features", "w,x,y", "--learner", "linear", "--set", "l2=0.01"]
    run("fit", "llp", tmp_path / "two.csv", *common, "--label-kind", "classes", "-o", tmp_path / "model")
    model = TableModel.load(tmp_path / "model").estimator
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.label == "count"
    run("evaluate", tmp_path / "model", tmp_path / "two.csv")
    assert "bounds must be integers" in run("fit", "llp", tmp_path / "two.csv", *common, "-o", "x", status=2)


def metadata(values: list[list[float]], bags: list[int]) -> RowMetadata:
    columns = {name: pd.Series(column) for name, column in zip("abc", zip(*values, strict=True), strict=True)}
    return RowMetadata(len(values), np.array(bags), [f"bag{i}" for i in range(max(bags) + 1)], columns)


@pytest.mark.parametrize(
    ("label", "kind", "found"),
    [
        ([1, 1, 0], None, "count"),  # of two rows
        ([0.5, 0.5, 0.0], None, "proportion"),
        ([1, 0, 0], None, "proportion"),
        ([2, 0, 0], "classes", "count"),
        ([1, 1, 0], "count", "count"),
        ([1.0, 0.0, 0.0], "proportion", "proportion"),
    ],
)
def test_kinds_of_class_labels(label: list[float], kind: str | None, found: str) -> None:
    y, of_kind = count_labels(
        metadata([label] * 2, [0, 0]), list("abc"), "t.csv", kind=kind, noise=None, rounding="error"
    )
    assert isinstance(y, ClassTable)
    assert of_kind == found


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([[2, 1, 0]] * 2, "t.csv, column 'a,b,c': counts of classes must sum to the size of their bag: bag 'bag0'"),
        ([[2, 0, 0], [1, 1, 0]], "t.csv, column 'a,b,c': bag 'bag0' has two labels, 2 to 0 to 0 and 1 to 1 to 0"),
        ([[0.5, 0.1, 0.1]] * 2, "t.csv, column 'a,b,c': proportions of classes must sum to 1: bag 'bag0'"),
    ],
)
def test_class_labels_that_no_bag_has(labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        count_labels(metadata(labels, [0, 0]), list("abc"), "t.csv", kind=None, noise=None, rounding="error")


def test_names_of_true_classes() -> None:
    where = Column("t.csv", "vote")
    assert true_classes(pd.Series(["a", "votes_c", " b "]), where, VOTES).tolist() == [0, 2, 1]
    assert true_classes(pd.Series(["ant", "art"]), where, ["ant", "art", "cat"]).tolist() == [0, 1]
    for wrong in ("d", None):
        with pytest.raises(ValueError, match=r"t\.csv, column 'vote': row 2 has .* must be one of the classes a, b, c"):
            true_classes(pd.Series(["a", wrong]), where, VOTES)


def test_measures_of_classes_against_simple_ones() -> None:
    model = kofn.LLPClassifier(kofn.Linear(l2=1e-3), label="count", random_state=0)
    model.fit(TASK.X, TASK.counts, groups=TASK.groups)
    bags = kofn.Bags.from_ids(TASK.groups)
    logits, p = model.decision_function(TASK.X), model.predict_proba(TASK.X)
    table = ClassTable.of(TASK.counts)
    found = measure(model, logits, y=table, bags=bags, truth=TASK.truth)
    assert found["accuracy"] == model.score(TASK.X, TASK.truth)
    assert found["log_loss"] == pytest.approx(-np.log(p[np.arange(360), TASK.truth]).mean())
    expected = p.reshape(60, 6, 3).sum(1)
    assert found["expected_count_error"] == pytest.approx(abs(expected - TASK.counts[::6]).mean())
    assert found["log_likelihood"] == pytest.approx(model.score(TASK.X, TASK.counts, TASK.groups))
    recalls = [(model.predict(TASK.X) == TASK.truth)[TASK.truth == c].mean() for c in range(3)]
    assert found["balanced_accuracy"] == pytest.approx(np.mean(recalls))
    from sklearn.metrics import roc_auc_score

    assert found["auc"] == pytest.approx(roc_auc_score(TASK.truth, p, multi_class="ovr"), abs=1e-6)
