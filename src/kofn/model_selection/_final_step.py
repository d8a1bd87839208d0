"""The estimator of kofn inside a pipeline or a search, of which scores and refusals speak."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.pipeline import Pipeline

from kofn.estimators import LLPClassifier, MILClassifier, PUClassifier

Kind = type[LLPClassifier] | type[MILClassifier] | type[PUClassifier]
KINDS: tuple[Kind, ...] = (LLPClassifier, MILClassifier, PUClassifier)


def kind_of(estimator: type) -> Kind | None:
    """Which of the three estimators a class is, perhaps by inheritance; None if it is another."""
    return next((kind for kind in KINDS if issubclass(estimator, kind)), None)


def fitted_final_step(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The last step of a fitted pipeline or the best estimator of a search, and the instances as it gets them."""
    while True:
        if isinstance(estimator, Pipeline):
            if len(estimator) > 1:
                X = estimator[:-1].transform(X)
            estimator = estimator[-1]
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            return estimator, X


def final_step(estimator: Any, setting: Mapping[str, Any] | None = None) -> tuple[str, Any, dict[str, Any]]:
    """The last step of a pipeline, by its prefix in names of parameters, and its own parameters with a setting.

    Args:
        estimator: a pipeline, which may end in a pipeline; or an estimator, whose prefix is "".
        setting: values of parameters by their full names, as in a grid. A whole step may be among them.

    Examples:
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.preprocessing import StandardScaler
        >>> pipe = make_pipeline(StandardScaler(), PUClassifier("linear", mixture=0.3))
        >>> prefix, _, parameters = final_step(pipe, {"puclassifier__mixture": 0.4})
        >>> prefix, parameters["learner"], parameters["mixture"]
        ('puclassifier__', 'linear', 0.4)
    """
    setting, prefix = setting or {}, ""
    while isinstance(estimator, Pipeline):
        name, step = estimator.steps[-1]
        estimator = setting.get(prefix + name, step)
        prefix += f"{name}__"
    own = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    return prefix, estimator, {name: setting.get(prefix + name, value) for name, value in own.items()}
