"""scikit-learn's own checks of an estimator, for each with each learner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from estimator_cases import UNLEARNT
from sklearn.utils.estimator_checks import parametrize_with_checks

import kofn

pytestmark = pytest.mark.slow  # scikit-learn has many checks


class RowsAsBags(kofn.MILClassifier):
    """Each row is a bag of its own, since scikit-learn's checks call `fit(X, y)` and `score(X, y)`.

    `MILClassifier` itself refuses that: labels of bags would pass for labels of rows without a word.
    """

    def fit(self, X: Any, y: Any, groups: Any = None, **options: Any) -> kofn.MILClassifier:  # noqa: N803
        return super().fit(X, y, own_bags(X), **options)

    def score(self, X: Any, y: Any, groups: Any = None, *, sample_weight: Any = None) -> float:  # noqa: N803
        return super().score(X, y, own_bags(X), sample_weight=sample_weight)


def own_bags(X: Any) -> range:  # noqa: N803
    return range(X.shape[0] if hasattr(X, "shape") else len(np.asarray(X)))


LEARNERS: list[Any] = [
    kofn.Trees(rounds=20, learning_rate=0.3, leaves=4),
    kofn.Linear(l2=1e-3),
    kofn.Network(hidden=(16,), epochs=20, lr=0.03, validation_fraction=0.0),
]

ESTIMATORS = [
    make(learner)
    for learner in LEARNERS
    for make in (
        kofn.LLPClassifier,
        RowsAsBags,
        # No positive is unlabelled: ordinary classification, in which the labelled count as much as the others.
        lambda learner: kofn.PUClassifier(learner, mixture=0.0, positive_weight=32.0),
    )
] + [kofn.LLPClassifier(kofn.Linear(l2=1e-3), bootstrap=2)]

FLOAT32 = {
    "check_methods_subset_invariance": "products are float32: rows scored apart differ by 1e-7 from rows scored together",
}


BY_NAME = {
    "check_dataframe_column_names_consistency": "columns are found by name: another order of them is no error, and one "
    "that is missing is named in kofn's own words (tests/estimators/test_frames_of_any_library.py)",
}
POSITIVE = {
    "check_classifiers_classes": "of the words 'one' and 'two' none says that it is the positive one, and `pos_label` is "
    "required (tests/estimators/test_pos_label.py)",
}


def expected_failures(estimator: Any) -> dict[str, str]:
    of_network = FLOAT32 if isinstance(estimator.learner, kofn.Network) else {}
    return BY_NAME | of_network | ({} if isinstance(estimator, kofn.LLPClassifier) else POSITIVE)


@UNLEARNT
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)  # type: ignore[untyped-decorator]  # scikit-learn has no types
def test_contract(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
