"""`search` chooses what is true, by scores of bags, and refuses what would choose wrongly without a word."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from estimator_cases import UNLEARNT, bags_task, pu_task
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kofn
from kofn.model_selection import BagKFold, bag_scorer, search

TASK = bags_task(bags=40, threshold=0.6)
X, GROUPS = TASK.X, TASK.groups
PU_X, _, PU_Y = pu_task()
PENALTIES = {"learner__l2": [1e3, 1e-2]}
pytestmark = UNLEARNT


def llp(**options: Any) -> kofn.LLPClassifier:
    return kofn.LLPClassifier(kofn.Linear(l2=0.01), random_state=0, **options)


def mil(**options: Any) -> kofn.MILClassifier:
    return kofn.MILClassifier(kofn.Linear(l2=0.01), random_state=0, **options)


def pu(**options: Any) -> kofn.PUClassifier:
    return kofn.PUClassifier(kofn.Linear(l2=0.01), random_state=0, **options)


def test_the_default_score_is_that_of_the_task() -> None:
    for model, y, rows, groups, name in (
        (llp(), TASK.y, X, GROUPS, "log_likelihood"),
        (mil(), TASK.any, X, GROUPS, "log_likelihood"),
        (pu(mixture=0.3), PU_Y, PU_X, None, "pu_auc"),
    ):
        found = search(model, PENALTIES, rows, y, groups, cv=3)
        assert found.scorer_ == bag_scorer(name)  # type: ignore[arg-type]
        train, test = next(BagKFold(3).split(rows, y, groups))
        of_train, of_test = ({} if groups is None else {"groups": groups[part]} for part in (train, test))
        fitted = clone(model).set_params(learner__l2=1e-2).fit(rows[train], y[train], **of_train)
        assert found.cv_results_["split0_test_score"][1] == found.scorer_(fitted, rows[test], y[test], **of_test)


def test_a_score_of_bags_chooses_where_one_of_rows_would_not() -> None:
    found = search(mil(), PENALTIES, X, TASK.any, GROUPS, cv=3, scoring="bag_auc")
    assert found.best_score_ > 0.9
    assert roc_auc_score(TASK.any, found.decision_function(X)) < 0.8  # rows against labels of their bags


@pytest.mark.parametrize(
    ("model", "scoring", "message"),
    [
        (mil(), "roc_auc", r"must be 'log_likelihood', 'bag_auc' or 'bag_accuracy' for MILClassifier.*got 'roc_auc'.*rows with labels of bags"),
        (llp(), "accuracy", r"must be 'log_likelihood' for LLPClassifier.*got 'accuracy'"),
        (pu(), "f1", r"must be 'pu_auc' or 'pu_risk' for PUClassifier.*got 'f1'.*for negatives"),
        (mil(), ["bag_auc", "recall"], r"got 'recall'"),
        (mil(), {"mine": "neg_log_loss"}, r"got 'neg_log_loss'"),
        (mil(), "pu_auc", r"the scorer 'pu_auc' is for PUClassifier.*For MILClassifier use"),
        (llp(), bag_scorer("bag_auc"), r"the scorer 'bag_auc' is for MILClassifier"),
        (make_pipeline(StandardScaler(), mil()), "roc_auc", r"for MILClassifier"),
    ],
)  # fmt: skip
def test_scorers_that_would_be_wrong_are_refused(model: Any, scoring: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        search(model, {}, X, TASK.any, None if isinstance(model, kofn.PUClassifier) else GROUPS, scoring=scoring)


def test_several_scores_and_which_chooses() -> None:
    scoring = ["log_likelihood", "bag_auc"]
    found = search(mil(), PENALTIES, X, TASK.any, GROUPS, cv=3, scoring=scoring, refit="bag_auc")
    assert found.best_score_ == found.cv_results_["mean_test_bag_auc"].max()
    assert found.best_params_ == {"learner__l2": 1e-2}
    assert search(mil(), PENALTIES, X, TASK.any, GROUPS, cv=3, scoring=scoring, refit=lambda _: 0).best_index_ == 0
    with pytest.raises(
        ValueError, match="`refit` must be one of 'log_likelihood', 'bag_auc', which chooses, or False; got True"
    ):
        search(mil(), PENALTIES, X, TASK.any, GROUPS, scoring=scoring)


def test_a_callable_is_taken_as_it_is() -> None:
    found = search(
        mil(), {"learner__l2": [1.0, 3.0]}, X, TASK.any, GROUPS, cv=2, scoring=lambda model, *_: model.learner.l2
    )
    assert found.best_params_ == {"learner__l2": 3.0}


@pytest.mark.parametrize("name", ["mixture", "prior"])
@pytest.mark.parametrize("nested", [False, True])
def test_no_score_can_choose_a_mixture(name: str, nested: bool) -> None:
    """`GridSearchCV` of an earlier version chose .05 where .41 was true."""
    model: Any = make_pipeline(StandardScaler(), pu()) if nested else pu()
    grid = {f"puclassifier__{name}" if nested else name: [0.05, 0.2, 0.41, 0.6]}
    with pytest.raises(ValueError, match=rf"several values of `{name}`: no score .*can choose.*kofn\.estimate_mixture"):
        search(model, grid, PU_X, PU_Y, scoring="pu_risk")


def test_mixtures_of_whole_steps_are_refused_and_one_mixture_is_not() -> None:
    pipe = make_pipeline(StandardScaler(), pu())
    with pytest.raises(ValueError, match="several values of `mixture`"):
        search(pipe, {"puclassifier": [pu(mixture=0.1), pu(mixture=0.5)]}, PU_X, PU_Y)
    with pytest.raises(ValueError, match="several values of `mixture`"):
        search(pu(mixture=0.1), [PENALTIES, {"mixture": [0.2]}], PU_X, PU_Y)
    assert search(pu(), PENALTIES | {"mixture": [0.4]}, PU_X, PU_Y, cv=3).best_estimator_.mixture_ == 0.4


@pytest.mark.parametrize(
    "grid", [{"label": ["count", "proportion"]}, {"noise": [None, "laplace:1"]}, {"rounding": ["nearest", "spread"]}]
)
def test_what_labels_mean_is_not_chosen(grid: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"several values of `{next(iter(grid))}`: it says what `y` means"):
        search(llp(), grid, X, TASK.y, GROUPS)


def test_losses_of_several_classes_are_different_statements_and_those_of_two_are_not() -> None:
    counts = np.stack([TASK.counts, 4 - TASK.counts, np.zeros(40)], 1)[GROUPS]
    with pytest.raises(ValueError, match="for several classes: one scores the joint probability"):
        search(llp(label="count"), {"loss": ["joint", "marginal"]}, X, counts, GROUPS)
    found = search(llp(), {"loss": ["count", "proportion"], "bag_effect": [None]}, X, TASK.y, GROUPS, cv=2)
    assert len(found.cv_results_["params"]) == 2


def test_a_failed_fit_is_an_error() -> None:
    with pytest.raises(ValueError, match="`loss` must be one of 'count'"):
        search(mil(), {"loss": ["count", "cuont"]}, X, TASK.any, GROUPS, cv=2)


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite", "ignore:invalid value encountered")
def test_scores_that_are_not_numbers_are_an_error() -> None:
    def some(model: Any, *_: Any) -> float:
        return np.nan if model.learner.l2 > 1 else 0.5

    with pytest.raises(ValueError, match=r"`scoring` must give finite numbers; it gave nan for \{'learner__l2': 1000"):
        search(mil(), PENALTIES, X, TASK.any, GROUPS, cv=2, scoring=some)
    with pytest.raises(ValueError, match="it gave -inf for"):
        search(mil(), PENALTIES, X, TASK.any, GROUPS, cv=2, scoring=lambda *_: -np.inf)


def test_a_callable_with_several_scores_must_say_which_chooses() -> None:
    both: Any = lambda model, *_: {"a": model.learner.l2, "b": -model.learner.l2}  # noqa: E731
    assert search(mil(), PENALTIES, X, TASK.any, GROUPS, cv=2, scoring=both, refit="b").best_params_ == {
        "learner__l2": 1e-2
    }
    with pytest.raises(ValueError, match="`refit` must be one of 'a', 'b'"):
        search(mil(), PENALTIES, X, TASK.any, GROUPS, cv=2, scoring=both)


def test_groups_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="`groups` must name the bag of each row for MILClassifier; got None"):
        search(mil(), PENALTIES, X, TASK.any)
    with pytest.raises(ValueError, match=r"`groups` must be None for PUClassifier.*cv=list\(GroupKFold"):
        search(pu(mixture=0.3), PENALTIES, PU_X, PU_Y, np.arange(len(PU_X)))
    with pytest.raises(ValueError, match="`copies` goes with LLPClassifier; MILClassifier has none"):
        search(mil(), PENALTIES, X, TASK.any, GROUPS, copies=np.ones(len(X)))
    with pytest.raises(
        ValueError, match=r"`estimator` must be a kofn\.LLPClassifier.*got LogisticRegression.*GridSearchCV"
    ):
        search(LogisticRegression(), {"C": [1.0]}, X, TASK.truth, GROUPS)


def test_rows_may_be_bags_and_have_copies() -> None:
    found = search(llp(), PENALTIES, X, TASK.truth, cv=3)
    assert found.best_params_ == {"learner__l2": 1e-2}
    copies = np.full(len(X), 3)
    twice = search(llp(label="count"), PENALTIES, X, 3 * TASK.truth, copies=copies, cv=3)
    assert twice.best_params_ == {"learner__l2": 1e-2}


def test_folds_are_whole_bags_with_both_labels() -> None:
    found = search(mil(), PENALTIES, X, TASK.any, GROUPS, cv=GroupKFold(4), scoring="bag_accuracy", refit=False)
    assert found.n_splits_ == 4
    assert not hasattr(found, "best_estimator_")
    rare = np.arange(40) < 5  # of 40 bags five are positive, one for each fold
    y = rare[GROUPS].astype(int)
    assert np.isfinite(search(mil(), PENALTIES, X, y, GROUPS, scoring="bag_auc").best_score_)


class WithDiagnostics(kofn.MILClassifier):
    """Records with what its fits were asked to do; scikit-learn reads parameters from the signature."""

    asked: list[bool] = []  # noqa: RUF012

    def __init__(self, learner: Any = "auto", *, diagnostics: bool = True, random_state: Any = None) -> None:
        super().__init__(learner, random_state=random_state)
        self.diagnostics = diagnostics

    def fit(self, *args: Any, **options: Any) -> Any:
        self.asked.append(self.diagnostics)
        return super().fit(*args, **options)


@pytest.mark.parametrize("nested", [False, True])
def test_fits_to_folds_have_no_diagnostics(nested: bool) -> None:
    model: Any = WithDiagnostics(kofn.Linear(l2=0.01), random_state=0)
    grid = {"withdiagnostics__learner__l2" if nested else "learner__l2": [1e3, 1e-2]}
    WithDiagnostics.asked.clear()
    found = search(make_pipeline(StandardScaler(), model) if nested else model, grid, X, TASK.any, GROUPS, cv=2)
    assert WithDiagnostics.asked == [False] * 4 + [True]
    assert (found.best_estimator_[-1] if nested else found.best_estimator_).diagnostics
    assert found.estimator.get_params()["withdiagnostics__diagnostics" if nested else "diagnostics"]
    assert "diagnostics" not in found.best_params_
