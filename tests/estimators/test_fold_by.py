"""`fold_by`: the bags of a patient, or the rows of a user, are held out together by every learner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from estimator_cases import LEARNERS, UNLEARNT, bags_task
from sklearn.metrics import roc_auc_score

import kofn
from kofn.estimators._label_scores import label_scores

TASK = bags_task()  # 48 bags of 4
BAGS = np.arange(48)
PATIENTS = np.array([f"p{bag % 16:02d}" for bag in BAGS])  # of three bags each, which do not lie side by side
OF_ROWS = PATIENTS[TASK.groups]
each_learner = pytest.mark.parametrize("learner", LEARNERS)


def held_out_bags(model: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
    held = np.zeros(48, dtype=bool)
    held[model.held_out_] = True
    return held


@UNLEARNT
@each_learner
@pytest.mark.parametrize("kind", [kofn.LLPClassifier, kofn.MILClassifier])
def test_patients_are_held_out_whole(kind: Any, learner: str) -> None:
    y = TASK.y if kind is kofn.LLPClassifier else TASK.any
    with_patients, without = (
        kind(LEARNERS[learner](), random_state=0, diagnostics=False).fit(TASK.X, y, TASK.groups, fold_by=fold_by)
        for fold_by in (OF_ROWS, None)
    )
    for train, held in with_patients.fitted_.splits:
        assert not set(PATIENTS[train]) & set(PATIENTS[held])
    held = held_out_bags(with_patients)
    assert set(PATIENTS[held]).isdisjoint(PATIENTS[~held])
    splits = without.fitted_.splits
    assert any(set(PATIENTS[train]) & set(PATIENTS[held]) for train, held in splits)  # else nothing is tested


@UNLEARNT
@each_learner
def test_users_of_positive_and_unlabelled_rows(learner: str) -> None:
    users = np.arange(len(TASK.X)) % 30
    labelled = (TASK.truth == 1) & (np.random.default_rng(0).random(len(TASK.X)) < 0.5)
    model = kofn.PUClassifier(LEARNERS[learner](), mixture=0.35, random_state=0, diagnostics=False)
    model.fit(TASK.X, labelled.astype(int), fold_by=users)
    assert model.fitted_.splits
    for train, held in model.fitted_.splits:
        assert not set(users[train]) & set(users[held])


def test_a_patient_in_both_parts_makes_the_loss_too_good() -> None:
    """Patients differ in their rate and have a signature among the columns: their bags tell of one another."""
    rng = np.random.default_rng(0)
    patient = np.arange(80) % 20
    X = np.repeat(rng.normal(size=(20, 5))[patient], 5, axis=0) + 0.1 * rng.normal(size=(400, 5))
    counts = rng.binomial(5, rng.permutation(np.linspace(0.02, 0.98, 20))[patient]).repeat(5)
    groups = np.repeat(np.arange(80), 5)
    model = kofn.LLPClassifier(kofn.Trees(leaves=4), label="count", random_state=0, diagnostics=False)
    apart = model.fit(X, counts, groups).validation_loss_
    with pytest.warns(kofn.estimators.FitWarning, match="no better than a model without features"):
        together = model.fit(X, counts, groups, fold_by=patient[groups]).validation_loss_
    assert apart is not None
    assert together is not None
    assert apart < together - 0.2


@pytest.mark.parametrize("kind", [kofn.LLPClassifier, kofn.MILClassifier])
def test_a_bag_of_two_patients(kind: Any) -> None:
    mixed = OF_ROWS.copy()
    mixed[6] = "p07"  # a row of bag 1
    y = TASK.y if kind is kofn.LLPClassifier else TASK.any
    message = "`fold_by` must be the same on all rows of a bag; bag 1 has p01 and p07"
    with pytest.raises(ValueError, match=message):
        kind("linear").fit(TASK.X, y, TASK.groups, fold_by=mixed)


@pytest.mark.parametrize(
    ("fold_by", "message"),
    [
        (OF_ROWS[:-1], "`fold_by` must have an entry for each of the 192 rows"),
        (np.where(TASK.groups == 1, np.nan, TASK.groups), "`fold_by` must not be NaN or None"),
    ],
)
def test_what_is_no_fold_by(fold_by: Any, message: str) -> None:
    labelled = TASK.truth * (np.arange(192) % 2)
    with pytest.raises(ValueError, match=message):
        kofn.LLPClassifier("linear").fit(TASK.X, TASK.y, TASK.groups, fold_by=fold_by)
    with pytest.raises(ValueError, match=message):
        kofn.PUClassifier("linear", mixture=0.3).fit(TASK.X, labelled, fold_by=fold_by)


def test_copies_of_a_row_belong_to_its_patient() -> None:
    copies = 1 + np.arange(192) % 2
    counts = np.bincount(TASK.groups, copies * TASK.truth).astype(int)[TASK.groups]
    model = kofn.LLPClassifier(LEARNERS["linear"](), label="count", random_state=0, diagnostics=False)
    model.fit(TASK.X, counts, TASK.groups, copies, fold_by=OF_ROWS)
    for train, held in model.fitted_.splits:
        assert not set(PATIENTS[train]) & set(PATIENTS[held])


def test_the_mixture_is_estimated_on_other_users() -> None:
    """Users have a signature among the columns, and all of a user's rows are labelled or none: there is no signal."""
    rng = np.random.default_rng(0)
    users = np.arange(600) % 60
    X = rng.normal(size=(60, 4))[users].astype(np.float32)
    labeled = torch.from_numpy(rng.permutation(60) < 20)[users]
    given: dict[str, Any] = {"categories": {}, "seed": 0}
    for together, low, high in ((None, 0.95, 1.0), (torch.from_numpy(users), 0.0, 0.6)):
        scores, rows = label_scores(X, labeled, together=together, **given)
        assert low <= roc_auc_score(labeled[rows], scores) <= high


def test_users_where_the_mixture_is_estimated() -> None:
    rng = np.random.default_rng(0)
    X, users = rng.normal(size=(600, 2)), np.arange(600) % 40
    y = ((X[:, 0] > 0) & (rng.random(600) < 0.5)).astype(int)
    model = kofn.PUClassifier(kofn.Linear(l2=0.01), random_state=0, diagnostics=False).fit(X, y, fold_by=users)
    assert 0.1 < model.mixture_ < 0.6
    (row,) = model.sensitivity(X, y, mixtures=[model.mixture_], fold_by=users)
    assert row["top_overlap"] == 1.0
    with pytest.raises(ValueError, match="`prior` or `mixture` must be given where `fold_by` has fewer than 5 values"):
        model.fit(X, y, fold_by=users % 4)
