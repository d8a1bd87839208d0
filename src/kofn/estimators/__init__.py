"""scikit-learn classifiers of instances, trained on counts."""

from kofn.estimators._llp import LLPClassifier
from kofn.estimators._mil import MILClassifier
from kofn.estimators._pu import PUClassifier

__all__ = ["LLPClassifier", "MILClassifier", "PUClassifier"]
