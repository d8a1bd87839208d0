"""Tables of which only some rows have a true class, and tables that a model was trained on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import table_data
from cli_calls import fine
from scipy.special import expit

from kofn.estimators import LLPClassifier, MILClassifier, PUClassifier
from kofn.learners import Linear
from kofn.metrics import auc_within_bags
from kofn.report import render
from kofn.tables import TableFile, TableModel, evaluate_bags, evaluate_rows, fit_table, report_table

TASKS: dict[str, tuple[Any, dict[str, Any]]] = {
    "llp": (LLPClassifier(Linear(l2=0.01), random_state=0), {"bag": "bag", "label": "count"}),
    "mil": (MILClassifier(Linear(l2=0.01), random_state=0), {"bag": "bag", "label": "some"}),
    "pu": (PUClassifier(Linear(l2=0.01), mixture=0.3, random_state=0), {"label": "labelled"}),
}


def fitted(tmp_path: Path, task: str) -> TableModel:
    data = table_data.write(table_data.make_table(), tmp_path / "train.csv")
    estimator, columns = TASKS[task]
    return fit_table(data, estimator, features="x,colour", **columns)


@pytest.mark.parametrize("task", TASKS)
def test_rows_with_a_class_are_judged_and_bags_are_not_changed(tmp_path: Path, task: str) -> None:
    model = fitted(tmp_path, task)
    frame = table_data.make_table(rows=400, seed=1)
    whole = table_data.write(frame, tmp_path / "whole.csv")
    frame.loc[frame.index >= 100, "truth"] = None
    part = table_data.write(frame, tmp_path / "part.csv")
    found = evaluate_rows(model, part, truth="truth", positive="pos")
    first = table_data.write(frame[:100], tmp_path / "first.csv")
    assert (found["rows"], found["known_rows"]) == (400, 100)
    alone = evaluate_rows(model, first, truth="truth", positive="pos")
    assert {**found, "rows": 100} == pytest.approx(alone)

    without, partly, wholly = (
        report_table(model, data, truth=truth, positive=None if truth is None else "pos")
        for data, truth in ((whole, None), (part, "truth"), (whole, "truth"))
    )
    assert partly.verdicts[0] == without.verdicts[0] == wholly.verdicts[0]
    if task != "pu":  # of which the truth tells the share among the unlabelled
        assert partly.verdicts[1] == without.verdicts[1]
    assert without.verdicts[2].mark == "unknown"
    of_rows = partly.verdicts[2]
    unlabelled = int(frame["labelled"][:100].isna().sum())
    assert of_rows.numbers["number"] == (unlabelled if task == "pu" else 100)
    assert "rows whose true class is known" in of_rows.sentence
    assert "is known" not in wholly.verdicts[2].sentence
    render(partly)


def test_a_truth_without_any_value(tmp_path: Path) -> None:
    frame = table_data.make_table()
    frame["truth"] = None
    data = table_data.write(frame, tmp_path / "none.csv")
    with pytest.raises(ValueError, match="column 'truth' has no value in any row"):
        evaluate_rows(fitted(tmp_path, "llp"), data, truth="truth")


@pytest.mark.parametrize("task", TASKS)
def test_what_was_trained_on_is_told(tmp_path: Path, task: str) -> None:
    model = fitted(tmp_path, task)
    model.save(tmp_path / "model")
    new = table_data.write(table_data.make_table(seed=1), tmp_path / "new.csv")
    for data, seen in ((tmp_path / "train.csv", True), (new, False)):
        assert evaluate_bags(model, data)["trained_on"] is seen
        assert evaluate_rows(model, data, truth="truth", positive="pos")["trained_on"] is seen
        said = fine("evaluate", tmp_path / "model", data)
        assert ("was trained on these data" in said) is seen
        assert json.loads(fine("evaluate", tmp_path / "model", data, "--json"))["trained_on"] is seen


@pytest.mark.parametrize("task", ["llp", "mil"])
def test_rows_are_also_measured_within_the_bags_of_training_where_the_data_have_them(tmp_path: Path, task: str) -> None:
    model = fitted(tmp_path, task)
    frame = table_data.make_table(rows=400, seed=1)
    frame.loc[frame.index >= 300, "truth"] = None
    data = table_data.write(frame, tmp_path / "whole.csv")
    found = evaluate_rows(model, data, truth="truth", positive="pos")
    scores = np.concatenate([part for part, _ in model.scores(TableFile(data))])[:300]
    truth = (frame["truth"][:300] == "pos").to_numpy().astype(int)
    assert found["auc_within_bags"] == pytest.approx(auc_within_bags(truth, scores, frame[model.bag][:300].to_numpy()))
    assert found["expected_ratio"] == pytest.approx(expit(scores).sum() / truth.sum())
    without = table_data.write(frame.drop(columns=model.bag), tmp_path / "without.csv")
    assert "auc_within_bags" not in evaluate_rows(model, without, truth="truth", positive="pos")
