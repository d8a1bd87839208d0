"""scikit-learn classifiers of instances, trained on counts."""

from pathlib import Path
from typing import Any

from kofn.estimators import _saving
from kofn.estimators._fit_warning import FitWarning
from kofn.estimators._llp_classifier import LLPClassifier
from kofn.estimators._mil_classifier import MILClassifier
from kofn.estimators._mixture import MixtureEstimate, estimate_mixture
from kofn.estimators._pu_classifier import PUClassifier

__all__ = [
    "FitWarning",
    "LLPClassifier",
    "MILClassifier",
    "MixtureEstimate",
    "PUClassifier",
    "estimate_mixture",
    "load",
]


def load(
    path: str | Path, *, module: Any = None, **code_parameters: Any
) -> LLPClassifier | MILClassifier | PUClassifier:
    """Read any fitted estimator from the file that its `save` wrote.

    Args:
        path: the file.
        module: the network or factory that it was trained with, if that was not a name.
        **code_parameters: other parameters that were not saved because they are code, such as ``noise``.

    Raises:
        FileNotFoundError, ValueError: no such model; one of a newer version; an altered or cut file; a parameter that
            was not saved and is not given.

    Examples:
        >>> import numpy as np, kofn
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
        >>> model = kofn.LLPClassifier("linear", random_state=0).fit(X, y)
        >>> with TemporaryDirectory() as folder:
        ...     model.save(Path(folder) / "model")
        ...     again = kofn.estimators.load(Path(folder) / "model")
        >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
        True
    """
    kinds = [LLPClassifier, MILClassifier, PUClassifier]
    loaded: LLPClassifier | MILClassifier | PUClassifier
    loaded, _ = _saving.load(Path(path), kinds=kinds, code_parameters={"module": module, **code_parameters})
    return loaded
