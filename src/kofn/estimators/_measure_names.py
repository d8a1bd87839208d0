"""The measures of fitted models: what each is called and what it says. `_measures` computes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Form = Literal["number", "percent", "score"]


@dataclass(frozen=True)
class Measure:
    """What a measure is called and what it says.

    Attributes:
        name: as the field calls it.
        meaning: one sentence for a reader who does not know the name.
        form: how it is shown where there is room: a share is "percent", 93 %; a "score" such as an AUC, which is no
            share of anything that is counted, has three digits, 0.930.
    """

    name: str
    meaning: str
    form: Form = "number"


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
        "Expected counts within the bounds",
        "Share of bags whose expected count lies within the bounds.",
        form="percent",
    ),
    "randomised_coverage": Measure(
        "Randomised coverage of 90 % intervals",
        "Share of bags whose count lies in the central 90\u00a0% interval; a count at its end lies in it with the "
        "probability that makes the interval one of 90\u00a0%, so that a calibrated model has 90\u00a0%.",
        form="percent",
    ),
    "calibration_error": Measure(
        "Calibration error",
        "Largest distance of the randomised coverage of 50, 80, 90 and 95\u00a0% intervals from these levels.",
    ),
    "bag_accuracy": Measure("Bag accuracy", "Share of bags whose label is predicted.", form="percent"),
    "bag_accuracy_baseline": Measure(
        "Bag accuracy, majority baseline",
        "The same if all bags are said to have the more frequent label.",
        form="percent",
    ),
    "bag_auc": Measure("Bag AUC", "How often a positive bag scores above a negative one.", form="score"),
    "mixture": Measure("Mixture", "The share of positives among the unlabelled that was trained with.", form="percent"),
    "mixture_low": Measure(
        "Mixture, lower end", "Of the 90\u00a0% interval of the estimated share of positives.", form="percent"
    ),
    "mixture_high": Measure(
        "Mixture, upper end", "Of the 90\u00a0% interval of the estimated share of positives.", form="percent"
    ),
    "mean_probability": Measure(
        "Mean probability",
        "Expected share of positives among the unlabelled; the mixture, if all is well.",
        form="percent",
    ),
    "predicted_positive_share": Measure("Predicted positive", "Share of instances predicted positive.", form="percent"),
    "positive_share": Measure("Truly positive", "Share of instances that are positive.", form="percent"),
    "recall": Measure(
        "Recall of labelled positives", "Share of labelled positives predicted positive.", form="percent"
    ),
    "recall_at_tenth": Measure(
        "Recall in the top tenth",
        "Share of all positives in the tenth of the unlabelled with the highest scores, by the labelled ones.",
        form="percent",
    ),
    "lift_at_tenth": Measure(
        "Lift of the top tenth", "That recall over a tenth: how many times as many positives as by chance."
    ),
    "precision_at_tenth": Measure(
        "Precision in the top tenth", "Mixture times lift: the share of positives in that tenth.", form="percent"
    ),
    "pu_auc": Measure(
        "AUC against the unlabelled", "How often a labelled positive scores above an unlabelled instance.", form="score"
    ),
    "implied_auc": Measure(
        "Implied AUC",
        "The AUC of positives against negatives that this implies, if the mixture is right and the labelled positives "
        "were selected at random.",
        form="score",
    ),
    "implied_auc_low": Measure(
        "Implied AUC, lower bound",
        "Of a 90\u00a0% confidence interval, with the lowest mixture where that was estimated.",
        form="score",
    ),
    "implied_auc_high": Measure(
        "Implied AUC, upper bound",
        "Of a 90\u00a0% confidence interval, with the highest mixture where that was estimated.",
        form="score",
    ),
    "selection_p_value": Measure(
        "P-value of selection at random",
        "Small if more labelled positives have high scores than a random sample of the positives can have.",
    ),
    "accuracy": Measure("Accuracy", "Share of instances whose class is predicted.", form="percent"),
    "average_precision": Measure(
        "Average precision",
        "Mean precision over all recalls, where positives are rare; by chance it is the share of positives.",
        form="score",
    ),
    "balanced_accuracy": Measure("Balanced accuracy", "Mean of the accuracies of the classes.", form="percent"),
    "auc": Measure(
        "AUC",
        "How often a positive instance scores above a negative one; of several classes the mean over them.",
        form="score",
    ),
    "auc_within_bags": Measure(
        "AUC within bags",
        "How often a positive instance scores above a negative one of the same bag; a model that only knows the bag "
        "has 0.5.",
        form="score",
    ),
    "f1": Measure("F1 score", "Harmonic mean of precision and recall.", form="score"),
    "expected_ratio": Measure(
        "Expected over observed positives",
        "Sum of the predicted probabilities over the number of positives; 1 if all is well.",
    ),
    "log_loss": Measure("Log loss", "Mean of -log P(true class) of an instance; lower is better."),
}
