"""scikit-learn classifiers of instances, trained on counts."""

from pathlib import Path
from typing import Any

from kofn.estimators import _saving
from kofn.estimators._llp import LLPClassifier
from kofn.estimators._mil import MILClassifier
from kofn.estimators._pu import PUClassifier
from kofn.estimators._search import search

__all__ = ["LLPClassifier", "MILClassifier", "PUClassifier", "load", "search"]


def load(path: str | Path, *, module: Any = None) -> LLPClassifier | MILClassifier | PUClassifier:
    """Read any fitted estimator from the folder that its `save` wrote.

    Args:
        path: the folder.
        module: the network or factory that it was trained with, if that was not a name.

    Raises:
        FileNotFoundError, ValueError: no such model; one of a newer version; altered or cut files.
    """
    kinds = [LLPClassifier, MILClassifier, PUClassifier]
    loaded: LLPClassifier | MILClassifier | PUClassifier = _saving.load(Path(path), kinds=kinds, module=module)
    return loaded
