"""Metrics of instances, of bags and of counts.

Scores are log-odds, of instances (the logits of a network) or of bags (`bag_scores`, or an attention model's logits);
a prediction is positive when its score exceeds `threshold`, 0 for logits, 0.5 for probabilities. Masked instances are
left out before: ``auc(labels[mask], logits[mask])``.
"""

from kofn.metrics._calibration import CountCalibration, bag_scores, count_calibration, expected_count_error
from kofn.metrics._classification import accuracy, auc, average_precision, balanced_accuracy, f1, precision, recall
from kofn.metrics._positive_unlabeled import auc_bounds, auc_of_mixture, lift, precision_at, pu_auc, recall_at
from kofn.metrics._selection import selection_p_value
from kofn.metrics._within_bags import auc_within_bags

__all__ = [
    "CountCalibration",
    "accuracy",
    "auc",
    "auc_bounds",
    "auc_of_mixture",
    "auc_within_bags",
    "average_precision",
    "bag_scores",
    "balanced_accuracy",
    "count_calibration",
    "expected_count_error",
    "f1",
    "lift",
    "precision",
    "precision_at",
    "pu_auc",
    "recall",
    "recall_at",
    "selection_p_value",
]
