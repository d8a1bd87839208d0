"""Choosing settings on whole bags: folds, scorers and a grid search for scikit-learn."""

from kofn.model_selection._bag_folds import BagKFold
from kofn.model_selection._bag_scorers import bag_scorer
from kofn.model_selection._bag_search import search

__all__ = ["BagKFold", "bag_scorer", "search"]
