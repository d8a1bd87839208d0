"""scikit-learn's own checks of an estimator, for each with each learner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from estimator_cases import UNLEARNT
from sklearn.utils.estimator_checks import parametrize_with_checks

import kofn

pytestmark = pytest.mark.slow  # scikit-learn has many checks

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
        kofn.MILClassifier,
        # No positive is unlabelled: ordinary classification, in which the labelled count as much as the others.
        lambda learner: kofn.PUClassifier(learner, mixture=0.0, positive_weight=32.0),
    )
] + [kofn.LLPClassifier(kofn.Linear(l2=1e-3), bootstrap=2)]

FLOAT32 = {
    "check_methods_subset_invariance": "products are float32: rows scored apart differ by 1e-7 from rows scored together",
}


def expected_failures(estimator: Any) -> dict[str, str]:
    return FLOAT32 if isinstance(estimator.learner, kofn.Network) else {}


@UNLEARNT
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)  # type: ignore[untyped-decorator]  # scikit-learn has no types
def test_contract(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
