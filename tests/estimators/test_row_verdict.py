"""The verdict on rows: what only knows the bag, or expects far too few positives, is never good."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit, logit

import kofn
from kofn.estimators._judged import Judged
from kofn.estimators._measures import bag_of_rows, measure
from kofn.estimators._row_verdict import row_verdict
from kofn.metrics import auc, auc_within_bags


def estimator(kind: type[Any], **options: Any) -> Any:
    """A fitted one, as far as the verdict asks."""
    made = kind(**options)
    made.classes_, made.bag_effect_ = np.array([0, 1]), 0.0
    return made


LLP = estimator(kofn.LLPClassifier, label="count")


def judged_rows(scores: Any, groups: Any) -> Judged:
    bags = None if groups is None else kofn.Bags.from_ids(groups)
    return Judged("new", 0.0, np.ones(len(scores), bool), torch.from_numpy(scores).unsqueeze(0), bags)


def verdict(scores: Any, truth: Any, groups: Any, *, y: Any = None, of: Any = LLP) -> Any:
    return row_verdict(of, judged_rows(scores, groups), y, truth.astype(int), np.ones(len(truth), bool))


def campaigns(*, within: float) -> tuple[Any, Any, Any, Any]:
    """Rows of 60 campaigns of different rates: scores, truth, campaign, and the counts of campaigns on the rows."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(60), 100)
    scores = rng.normal(0, 0.8, 60)[groups] + within * rng.normal(size=6000)
    truth = rng.random(6000) < expit(scores)
    return scores, truth, groups, np.bincount(groups, truth)[groups].astype(int)


def blind(scores: Any) -> Any:
    """Scores of campaigns alone, in which rows of a campaign have an order by chance."""
    return scores.reshape(60, 100).mean(1).repeat(100) + 1e-9 * np.random.default_rng(1).normal(size=6000)


def test_a_model_that_only_knows_the_campaign_is_not_good() -> None:
    scores, truth, groups, counts = campaigns(within=0.1)
    found = verdict(scores, truth, groups, y=counts)
    assert found.numbers["auc"]["low"] > 0.6  # it used to be good: certainly in order, and better than one probability
    assert found.numbers["gain"]["low"] > 0
    assert found.mark == "doubtful"
    assert found.numbers["bag_key"] == pytest.approx(auc(truth, counts))
    assert found.numbers["auc_within_bags"]["mean"] == pytest.approx(auc_within_bags(truth, scores, groups))
    assert "It is not certain that the model orders rows better than that rate does." in found.sentence
    guessed = verdict(blind(scores), truth, groups, y=counts)
    assert guessed.mark == "doubtful"
    assert "Within bags the order is not certainly better than by chance." in guessed.sentence
    wrong = verdict(blind(scores) - 1e-6 * truth, truth, groups, y=counts)
    assert wrong.numbers["auc"]["low"] > 0.6
    assert wrong.mark == "bad"  # rows of a campaign are certainly in the wrong order


def test_a_model_that_knows_rows_is_good_and_says_by_how_much() -> None:
    scores, truth, groups, counts = campaigns(within=1.5)
    found = verdict(scores, truth, groups, y=counts)
    assert found.mark == "good"
    assert found.numbers["gain_over_bag_key"]["low"] > 0
    assert f"giving each row the known rate of its bag has {auc(truth, counts):.3f}" in found.sentence
    assert "over all rows and" in found.sentence


def test_without_known_rates_the_order_within_bags_must_do() -> None:
    scores, truth, groups, counts = campaigns(within=1.5)
    noisy = estimator(kofn.LLPClassifier, label="count", noise="laplace:1")
    bounds = estimator(kofn.LLPClassifier, label="interval")
    cases = [(noisy, counts), (bounds, np.column_stack([counts, counts])), (LLP, None)]
    for of, y in cases:
        found = verdict(scores, truth, groups, y=y, of=of)
        assert found.mark == "good"
        assert "known rate" not in found.sentence
        assert verdict(blind(scores), truth, groups, y=y, of=of).mark == "doubtful"


def test_the_key_of_multiple_instances_is_the_label_of_the_bag() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(100), 20)
    truth = (rng.random(2000) < 0.3) & (groups % 2 == 0)
    labels = (np.bincount(groups, truth) > 0).astype(int)[groups]
    mil = estimator(kofn.MILClassifier)
    by_label = np.where(labels == 1, -1.0, -4.0) + 1e-9 * rng.normal(size=2000)
    found = verdict(by_label, truth, groups, y=labels, of=mil)
    assert found.numbers["bag_key"] == pytest.approx(auc(truth, labels))
    assert found.numbers["auc"]["low"] > 0.7
    assert found.mark == "doubtful"
    knows_rows = np.where(truth, 1.5, -3.5) + rng.normal(size=2000)
    assert verdict(knows_rows, truth, groups, y=labels, of=mil).mark == "good"


def test_rows_of_their_own_have_no_order_within_bags() -> None:
    scores, truth, _, _ = campaigns(within=1.5)
    for groups in (None, np.arange(6000)):
        found = verdict(scores, truth, groups, y=truth.astype(int))
        assert found.mark == "good"
        assert "within bags" not in found.sentence


def test_in_order_but_far_too_few_expected_is_not_good() -> None:
    """With a fine AUC and an F1 score of .29 a model was called good."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 50)
    truth = rng.random(2000) < 0.3
    scores = np.where(truth, -1.3, -4.0) + rng.normal(size=2000)
    found, measured = verdict(scores, truth, groups), measure(LLP, scores, truth=truth.astype(int), groups=groups)
    assert measured["f1"] < 0.35
    assert measured["expected_ratio"] == pytest.approx(expit(scores).sum() / truth.sum())
    assert found.numbers["expected_ratio"] == pytest.approx(measured["expected_ratio"])
    assert found.numbers["auc_within_bags"]["low"] > 0.9
    assert found.numbers["gain"]["low"] > 0
    assert found.mark == "doubtful"
    assert "more than a quarter off" in found.sentence
    assert verdict(1.7 * scores + 3.5, truth, groups).mark == "good"  # the same order, with honest probabilities


def test_rare_positives_have_average_precision_in_place_of_accuracy() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(4000) < 0.03
    scores = np.where(truth, -2.0, -4.0) + rng.normal(size=4000)
    measured = measure(LLP, scores, truth=truth.astype(int))
    assert "accuracy" not in measured
    assert measured["average_precision"] > 3 * truth.mean()
    sentence = verdict(scores, truth, None).sentence
    assert f"average precision {measured['average_precision']:.3f} where chance has {truth.mean():.3f}" in sentence
    assert "accuracy" not in sentence
    frequent = measure(LLP, scores, truth=(scores > logit(0.02)).astype(int))
    assert "average_precision" not in frequent


def test_too_few_bags_with_both_classes_are_not_enough() -> None:
    scores, truth, _, _ = campaigns(within=1.5)
    known = np.where(np.arange(6000) % 2 == 0, truth, -1)
    found = verdict(scores, known, np.arange(6000) // 2)  # two rows a bag, of which only one is known
    assert found.mark == "doubtful"
    assert found.numbers["auc_within_bags"] is None
    assert "Too few bags have rows of both classes" in found.sentence


def test_what_to_label_where_nothing_is_known() -> None:
    rows = np.ones(40, bool)
    scores, groups = np.zeros(40), np.repeat(np.arange(4), 10)
    of_bags = row_verdict(LLP, judged_rows(scores, groups), None, None, rows)
    assert "about ten rows in each of ten bags or more" in of_bags.sentence
    pu = row_verdict(estimator(kofn.PUClassifier), judged_rows(scores, None), None, None, rows)
    assert "a hundred rows at random" in pu.sentence


def test_rows_without_copies_are_in_no_bag() -> None:
    bags = kofn.Bags([0, 1, 1, 3, 4], [0, 3, 5])  # two bags of two rows, and the rows 2 and 5
    found = bag_of_rows(bags, 6)
    assert found is not None
    assert found[[0, 1, 3, 4]].tolist() == [0, 0, 1, 1]
    assert found[2] != found[5]
    assert (found[[2, 5]] < 0).all()
    assert bag_of_rows(kofn.Bags([0, 0, 1], [0, 2, 3]), 3) is None
