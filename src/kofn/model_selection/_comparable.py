"""Which settings a search may compare: those whose scores are of the same statement about the same data."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid

from kofn.estimators import LLPClassifier, PUClassifier
from kofn.model_selection._final_step import final_step

MEANING = ("label", "noise", "rounding")  # what `y` of label proportions means


def require_comparable(estimator: Any, param_grid: Any, y: Any) -> None:
    """Require settings that a score can choose between.

    Raises:
        ValueError: different mixtures or priors of positive and unlabelled data; different meanings of labels of
            label proportions; of several classes, losses whose likelihoods are of different things.
    """
    settings = [final_step(estimator, setting)[1:] for setting in ParameterGrid(param_grid)]

    def differ(kind: type, name: str) -> bool:
        values = [parameters[name] for final, parameters in settings if isinstance(final, kind)]
        return any(not (value is values[0] or value == values[0]) for value in values[1:])

    for name in ("mixture", "prior"):
        if differ(PUClassifier, name):
            raise ValueError(
                f"`param_grid` must not have several values of `{name}`: no score of labelled and unlabelled rows can "
                f"choose between them. The AUC does not depend on the mixture, and risks with different mixtures are "
                f"not comparable. Leave `{name}` out to have the mixture estimated, or estimate it with "
                f"kofn.estimate_mixture."
            )
    for name in MEANING:
        if differ(LLPClassifier, name):
            raise ValueError(
                f"`param_grid` must not have several values of `{name}`: it says what `y` means, and likelihoods of "
                f"different statements are not comparable. Set the one that is true of your labels."
            )
    if np.ndim(y) == 2 and np.shape(y)[1] > 2 and differ(LLPClassifier, "loss"):
        raise ValueError(
            "`param_grid` must not have several values of `loss` for several classes: one "
            "scores the joint probability of all counts and another the probability of each class by itself, which are "
            "not comparable. Set loss='joint' or loss='marginal'."
        )
