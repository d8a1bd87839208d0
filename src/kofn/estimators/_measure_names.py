"""The measures of fitted models: what each is called and what it says. `_measures` computes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """What a measure is called and what it says.

    Attributes:
        name: as the field calls it.
        meaning: one sentence for a reader who does not know the name.
        percent: whether it is a share, shown as 93 % where there is room.
    """

    name: str
    meaning: str
    percent: bool = False


# In the order in which they are shown. The keys are those of `measure`, and of JSON.
MEASURES: Mapping[str, Measure] = {
    "log_likelihood": Measure(
        "Log-likelihood of a bag's label", "Mean log-probability of the labels; higher is better."
    ),
    "log_likelihood_baseline": Measure(
        "Log-likelihood, baseline without features", "The same by the best constant of the training bags."
    ),
    "log_likelihood_gain": Measure(
        "Gain over no features", "Log-likelihood of a bag's label above that baseline; better than nothing above 0."
    ),
    "expected_count_error": Measure(
        "Mean absolute count error", "Mean distance of the expected from the known count of a bag."
    ),
    "expected_count_error_baseline": Measure(
        "Mean absolute count error, baseline", "The same if every instance had the overall share."
    ),
    "distance_to_observed": Measure(
        "Mean distance to the noisy counts", "Mean distance of the expected count of a bag from its noisy label."
    ),
    "expected_count_in_interval": Measure(
        "Expected counts within the bounds", "Share of bags whose expected count lies within the bounds.", percent=True
    ),
    "interval_coverage": Measure(
        "Coverage of 90 % intervals",
        "Share of bags whose count lies in the central 90\u00a0% interval; above 90\u00a0%, as counts are integers.",
        percent=True,
    ),
    "calibration_error": Measure(
        "Calibration error", "Largest distance between the level of an interval of the count and its coverage."
    ),
    "bag_accuracy": Measure("Bag accuracy", "Share of bags whose label is predicted.", percent=True),
    "bag_accuracy_baseline": Measure(
        "Bag accuracy, majority baseline",
        "The same if all bags are said to have the more frequent label.",
        percent=True,
    ),
    "bag_auc": Measure("Bag AUC", "How often a positive bag scores above a negative one.", percent=True),
    "mixture": Measure("Mixture", "The share of positives among the unlabelled that was trained with.", percent=True),
    "mixture_low": Measure(
        "Mixture, lower end", "Of the 90\u00a0% interval of the estimated share of positives.", percent=True
    ),
    "mixture_high": Measure(
        "Mixture, upper end", "Of the 90\u00a0% interval of the estimated share of positives.", percent=True
    ),
    "mean_probability": Measure(
        "Mean probability",
        "Expected share of positives among the unlabelled; the mixture, if all is well.",
        percent=True,
    ),
    "predicted_positive_share": Measure("Predicted positive", "Share of instances predicted positive.", percent=True),
    "positive_share": Measure("Truly positive", "Share of instances that are positive.", percent=True),
    "recall": Measure("Recall of labelled positives", "Share of labelled positives predicted positive.", percent=True),
    "recall_at_tenth": Measure(
        "Recall in the top tenth",
        "Share of all positives in the tenth of the unlabelled with the highest scores, by the labelled ones.",
        percent=True,
    ),
    "lift_at_tenth": Measure(
        "Lift of the top tenth", "That recall over a tenth: how many times as many positives as by chance."
    ),
    "precision_at_tenth": Measure(
        "Precision in the top tenth", "Mixture times lift: the share of positives in that tenth.", percent=True
    ),
    "pu_auc": Measure(
        "AUC against the unlabelled", "How often a labelled positive scores above an unlabelled instance.", percent=True
    ),
    "implied_auc": Measure(
        "Implied AUC",
        "The AUC of positives against negatives that this implies, if the mixture is right and the labelled positives "
        "were selected at random.",
        percent=True,
    ),
    "implied_auc_low": Measure(
        "Implied AUC, lower bound",
        "Of a 90\u00a0% confidence interval, with the lowest mixture where that was estimated.",
        percent=True,
    ),
    "implied_auc_high": Measure(
        "Implied AUC, upper bound",
        "Of a 90\u00a0% confidence interval, with the highest mixture where that was estimated.",
        percent=True,
    ),
    "selection_p_value": Measure(
        "P-value of selection at random",
        "Small if more labelled positives have high scores than a random sample of the positives can have.",
    ),
    "accuracy": Measure("Accuracy", "Share of instances whose class is predicted.", percent=True),
    "average_precision": Measure(
        "Average precision",
        "Mean precision over all recalls, where positives are rare; by chance it is the share of positives.",
        percent=True,
    ),
    "balanced_accuracy": Measure("Balanced accuracy", "Mean of the accuracies of the classes.", percent=True),
    "auc": Measure(
        "AUC",
        "How often a positive instance scores above a negative one; of several classes the mean over them.",
        percent=True,
    ),
    "auc_within_bags": Measure(
        "AUC within bags",
        "How often a positive instance scores above a negative one of the same bag; a model that only knows the bag "
        "has 50\u00a0%.",
        percent=True,
    ),
    "f1": Measure("F1 score", "Harmonic mean of precision and recall."),
    "expected_ratio": Measure(
        "Expected over observed positives",
        "Sum of the predicted probabilities over the number of positives; 1 if all is well.",
    ),
    "log_loss": Measure("Log loss", "Mean of -log P(true class) of an instance; lower is better."),
}
