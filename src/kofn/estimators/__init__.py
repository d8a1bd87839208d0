"""scikit-learn classifiers of instances, trained on counts."""

from pathlib import Path
from typing import Any

from kofn.estimators import _needs, _saving  # noqa: F401  # the needs first
from kofn.estimators._llp import LLPClassifier
from kofn.estimators._mil import MILClassifier
from kofn.estimators._pu import PUClassifier
from kofn.estimators._search import search

__all__ = ["LLPClassifier", "MILClassifier", "PUClassifier", "load", "search"]


def load(path: str | Path, *, module: Any = None, **own: Any) -> LLPClassifier | MILClassifier | PUClassifier:
    """Read any fitted estimator from the folder that its `save` wrote.

    Args:
        path: the folder.
        module: the network or factory that it was trained with, if that was not a name.
        **own: other parameters that were not saved because they are code, such as ``noise``.

    Raises:
        FileNotFoundError, ValueError: no such model; one of a newer version; altered or cut files; a parameter that was
            not saved and is not given.
    """
    kinds = [LLPClassifier, MILClassifier, PUClassifier]
    loaded: LLPClassifier | MILClassifier | PUClassifier = _saving.load(
        Path(path), kinds=kinds, own={"module": module, **own}
    )
    return loaded
