"""A column of what bags belong to: they are held out together, in a fit and in cross-validation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import table_data
from cli_calls import fine, kofn

from kofn.estimators import LLPClassifier, MILClassifier, PUClassifier
from kofn.learners import Linear
from kofn.tables import cross_validate_table, fit_table

TASKS: dict[str, tuple[Any, dict[str, Any]]] = {
    "llp": (LLPClassifier, {"bag": "bag", "label": "count"}),
    "mil": (MILClassifier, {"bag": "bag", "label": "some"}),
    "pu": (PUClassifier, {"label": "labelled"}),
}
COLUMNS = ["x", "colour"]


class Seen(Linear):
    """Remembers the problems that it is fitted to."""

    problems: list[Any] = []  # noqa: RUF012

    def fit(self, problem: Any, **options: Any) -> Any:
        Seen.problems.append(problem)
        return super().fit(problem, **options)


@pytest.fixture
def frame() -> pd.DataFrame:
    """Sixty bags of twenty patients."""
    made = table_data.make_table()
    return made.assign(patient="p" + (made["bag"].str[1:].astype(int) % 20).astype(str))[
        ["patient", "bag", *COLUMNS, "count", "some", "labelled"]
    ]


def estimator_of(task: str, learner: Any = None) -> Any:
    kind, _ = TASKS[task]
    options: dict[str, Any] = {"mixture": 0.3} if task == "pu" else {}
    return kind(learner or Linear(penalties=(0.1, 0.01)), random_state=0, **options)


def drop_of(task: str) -> str:
    """Labels of the other tasks."""
    labels = {"count", "some", "labelled"} - {TASKS[task][1]["label"]}
    return ",".join(labels | ({"bag"} if task == "pu" else set()))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("task", TASKS)
def test_patients_are_held_out_whole(tmp_path: Path, frame: pd.DataFrame, task: str, suffix: str) -> None:
    data = table_data.write(frame, tmp_path / f"t{suffix}")
    columns: dict[str, Any] = TASKS[task][1] | {"drop": [drop_of(task)], "fold_by": "patient"}
    model = fit_table(data, estimator_of(task), **columns)
    assert model.data["columns"] == COLUMNS  # it is no feature
    units = (
        frame["patient"].to_numpy() if task == "pu" else frame.groupby("bag", sort=False)["patient"].first().to_numpy()
    )
    assert model.estimator.fitted_.splits
    for train, held in model.estimator.fitted_.splits:
        assert not set(units[train]) & set(units[held])
    asked = fit_table(data, estimator_of(task), features="x,patient", **TASKS[task][1], fold_by="patient")
    assert asked.data["columns"] == ["x", "patient"]


@pytest.mark.parametrize("task", TASKS)
def test_folds_of_cross_validation(tmp_path: Path, frame: pd.DataFrame, task: str) -> None:
    data = table_data.write(frame, tmp_path / "t.csv")
    owner = dict(zip(frame["x"].to_numpy(np.float32), frame["patient"], strict=True))  # a number is in one row
    Seen.problems.clear()
    columns: dict[str, Any] = TASKS[task][1] | {"features": "x,colour", "fold_by": "patient"}
    cross_validate_table(data, {"linear": estimator_of(task, Seen(l2=0.01))}, n_folds=4, **columns)
    assert len(Seen.problems) == 4
    learned = [{owner[x] for x in problem.instances[:, 0] if x == x} for problem in Seen.problems]
    assert [len(patients) for patients in learned] == [15] * 4  # the whole of five others is held out
    assert all(len(problem.together.unique()) == 15 for problem in Seen.problems)  # and so in the folds of each fit
    assert set.union(*learned) == set(frame["patient"])


def test_two_patients_in_a_bag(tmp_path: Path, frame: pd.DataFrame) -> None:
    row = int(np.flatnonzero(frame["bag"].duplicated())[0])
    bag, before = frame.loc[row, "bag"], frame.loc[row, "patient"]
    data = table_data.write(
        frame.assign(patient=frame["patient"].mask(frame.index == row, "other")), tmp_path / "t.csv"
    )
    message = rf"t\.csv, column 'patient': bag '{bag}' has two values, {before} and other \(row {row + 1}\)"
    with pytest.raises(ValueError, match=message):
        fit_table(data, estimator_of("llp"), bag="bag", label="count", features="x", fold_by="patient")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fold_by": "region"}, "'region'"),
        ({"fold_by": "count"}, "column 'count' is named both `label` and `fold_by`"),
        ({"fold_by": "some", "copies": "some"}, "column 'some' is named both `copies` and `fold_by`"),
        ({"fold_by": "patient,patient"}, "column 'patient' is named twice in `fold_by`"),
        ({"fold_by": "labelled"}, "column 'labelled': row .* has no value, which `fold_by` needs of each row"),
    ],
)
def test_columns_that_cannot_be_it(tmp_path: Path, frame: pd.DataFrame, options: dict[str, Any], message: str) -> None:
    data = table_data.write(frame, tmp_path / "t.csv")
    with pytest.raises(ValueError, match=message):
        fit_table(data, estimator_of("llp"), bag="bag", label="count", features="x", **options)


def test_a_column_of_the_bag_may_say_what_belongs_together(tmp_path: Path, frame: pd.DataFrame) -> None:
    data = table_data.write(frame, tmp_path / "t.csv")
    model = fit_table(data, estimator_of("llp"), bag="patient,bag", label="count", features="x", fold_by="patient")
    assert model.estimator.fitted_.splits


def test_lists_are_refused(tmp_path: Path, frame: pd.DataFrame) -> None:
    data = table_data.write(frame.assign(patient=[[1]] * len(frame)), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"t\.parquet, column 'patient' must be text or numbers"):
        fit_table(data, estimator_of("llp"), bag="bag", label="count", features="x", fold_by="patient")


@pytest.mark.parametrize(
    ("task", "patients", "message"),
    [
        ("llp", 3, "`n_folds` must be at most the number of different values of `fold_by`; got 5, and there are 3"),
        ("pu", None, "each label must be that of rows with enough different values of `fold_by`"),
        ("mil", None, "each label must be that of bags with enough different values of `fold_by`"),
    ],
)
def test_too_few_patients(tmp_path: Path, frame: pd.DataFrame, task: str, patients: int | None, message: str) -> None:
    if patients is not None:
        frame["patient"] = frame["bag"].str[1:].astype(int) % patients
    elif task == "pu":  # all labelled rows are of two patients
        frame["patient"] = np.where(frame["labelled"].notna(), np.arange(240) % 2, 2 + np.arange(240) % 6)
    else:  # all negative bags are of one
        frame["patient"] = frame["bag"].where(frame["some"] == 1, "one")
    data = table_data.write(frame, tmp_path / "t.csv")
    estimator = estimator_of(task)
    if task == "mil":
        estimator.set_params(loss="max")
    with pytest.raises(ValueError, match=message):
        cross_validate_table(data, {"linear": estimator}, features="x", **TASKS[task][1], fold_by="patient")


@pytest.mark.parametrize("task", TASKS)
def test_on_the_command_line(tmp_path: Path, frame: pd.DataFrame, task: str) -> None:
    data = table_data.write(frame, tmp_path / "t.csv")
    options: list[Any] = [task, data, "--drop", drop_of(task), "--learner", "linear", "--fold-by", "patient"]
    for name, column in TASKS[task][1].items():
        options += [f"--{name}", column]
    if task == "pu":
        options += ["--mixture", 0.3]
    told = json.loads(fine("fit", *options, "-o", tmp_path / "m", "--json"))
    assert told["numeric"] + told["categorical"] == COLUMNS
    assert json.loads(fine("cv", *options, "--folds", 2, "--json"))["rows"] == 240
    label = TASKS[task][1]["label"]
    failed = kofn("fit", *options, "--fold-by", label, "-o", tmp_path / "other")
    assert failed.exit_code != 0
    assert f"column '{label}' is named both --label and --fold-by" in failed.stderr.replace("\n", " ")
