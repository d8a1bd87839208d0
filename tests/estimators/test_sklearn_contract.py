"""scikit-learn's own checks of an estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import kofn

QUICK: dict[str, Any] = {"hidden": (16,), "epochs": 20, "lr": 0.03, "validation_fraction": 0.0}

ESTIMATORS = [
    kofn.LLPClassifier(**QUICK),
    kofn.MILClassifier(**QUICK),
    kofn.PUClassifier(mixture=0.0, **QUICK),  # no positive is unlabelled: ordinary classification
]

EXCEPTIONS = {
    "check_methods_subset_invariance": "networks are float32: rows scored apart differ by 1e-7 from rows scored together",
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda estimator: EXCEPTIONS)  # type: ignore[untyped-decorator]  # scikit-learn has no types
def test_contract(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
