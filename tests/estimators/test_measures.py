"""Measures of fitted models, each against its own definition; screens, JSON and reports only format them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats
from sklearn.metrics import balanced_accuracy_score, f1_score, log_loss, roc_auc_score

import kofn
from kofn.estimators._measure_names import MEASURES
from kofn.estimators._measures import measure, scores_of
from kofn.estimators._pu_measures import selection_sentence
from kofn.estimators._row_labels import bags_of

pytestmark = pytest.mark.filterwarnings("ignore:this fit is no better")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2))
TRUTH = (X[:, 0] > 0).astype(int)
GROUPS = np.repeat(np.arange(30), 4)
COPIES = RNG.integers(1, 4, 120)


def counts_of(copies: Any) -> Any:
    """The count of each row's bag."""
    return np.bincount(GROUPS, TRUTH * copies).astype(int)[GROUPS]


def fitted(kind: str, copies: Any = None, **options: Any) -> tuple[Any, Any, dict[str, float]]:
    """An estimator, its logits, and its measures on the data."""
    times = np.ones(120, int) if copies is None else copies
    made: Any
    if kind == "llp":
        y, made = counts_of(times), kofn.LLPClassifier(kofn.Linear(l2=0.1), label="count", random_state=0, **options)
        made.fit(X, y, groups=GROUPS, copies=copies)
    elif kind == "mil":
        y, made = (counts_of(times) > 0).astype(int), kofn.MILClassifier(kofn.Linear(l2=0.1), random_state=0)
        made.fit(X, y, groups=GROUPS)
    else:
        y = TRUTH * (np.arange(120) % 2)
        made = kofn.PUClassifier(kofn.Linear(l2=0.1), mixture=0.3, random_state=0).fit(X, y)
    bags = None if kind == "pu" else bags_of(GROUPS, 120, copies)
    scores = scores_of(made, X, bags)
    return made, scores["logits"], measure(made, **scores, y=y, bags=bags, truth=TRUTH)


def enumerated(probabilities: Any) -> Any:
    """P(S = 0..n), by convolution."""
    law = np.ones(1)
    for p in probabilities:
        law = np.convolve(law, [1 - p, p])
    return law


def randomised_coverage(laws: Any, counts: Any) -> float:
    """The mean share of a uniform V with which P(S < k) + V P(S = k) is from 0.05 to 0.95."""
    start = np.array([law[:count].sum() for law, count in zip(laws, counts, strict=True)])
    here = np.array([law[count] for law, count in zip(laws, counts, strict=True)])
    inside = np.minimum(start + here, 0.95) - np.maximum(start, 0.05)
    return float((inside.clip(min=0) / here).mean())


@pytest.mark.parametrize("copies", [None, COPIES], ids=["once", "copies"])
def test_measures_of_counts(copies: Any) -> None:
    _, logits, found = fitted("llp", copies)
    times = np.ones(120, int) if copies is None else copies
    p = np.repeat(1 / (1 + np.exp(-logits)), times)
    groups, counts = np.repeat(GROUPS, times), counts_of(times)[::4]
    laws = [enumerated(p[groups == bag]) for bag in range(30)]
    sizes = np.bincount(groups)
    share = counts.sum() / sizes.sum()
    log_p = [np.log(law[count]) for law, count in zip(laws, counts, strict=True)]
    assert found["log_likelihood"] == pytest.approx(np.mean(log_p))
    assert found["log_likelihood_baseline"] == pytest.approx(scipy.stats.binom.logpmf(counts, sizes, share).mean())
    assert found["expected_count_error"] == pytest.approx(np.abs(np.bincount(groups, p) - counts).mean())
    assert found["expected_count_error_baseline"] == pytest.approx(np.abs(sizes * share - counts).mean())
    assert found["randomised_coverage"] == pytest.approx(randomised_coverage(laws, counts))
    assert 0 <= found["calibration_error"] <= 1


@pytest.mark.parametrize("kind", ["llp", "mil", "pu"])
def test_measures_of_instances(kind: str) -> None:
    _, logits, found = fitted(kind)
    judged = slice(None) if kind != "pu" else (TRUTH * (np.arange(120) % 2)) == 0  # of PU the unlabelled
    truth, scores = TRUTH[judged], logits[judged]
    assert found["accuracy"] == pytest.approx(((scores > 0) == truth).mean())
    assert found["auc"] == pytest.approx(roc_auc_score(truth, scores))
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(truth, scores > 0))
    assert found["f1"] == pytest.approx(f1_score(truth, scores > 0))
    assert found["log_loss"] == pytest.approx(log_loss(truth, 1 / (1 + np.exp(-scores))))
    assert found["positive_share"] == pytest.approx(truth.mean())
    assert found["predicted_positive_share"] == pytest.approx((scores > 0).mean())


def test_measures_of_bag_labels_and_of_a_mixture() -> None:
    model, logits, found = fitted("mil")
    labels = np.bincount(GROUPS, TRUTH) > 0
    probabilities = model.predict_bag_proba(X, GROUPS)[:, 1]
    assert found["bag_accuracy"] == pytest.approx(((probabilities > 0.5) == labels).mean())
    assert found["bag_auc"] == pytest.approx(roc_auc_score(labels, probabilities))
    _, logits, found = fitted("pu")
    labelled = (TRUTH * (np.arange(120) % 2)) == 1
    assert found["mixture"] == 0.3
    assert found["recall"] == pytest.approx((logits[labelled] > 0).mean())
    assert found["mean_probability"] == pytest.approx((1 / (1 + np.exp(-logits[~labelled]))).mean())


def test_an_attention_model_is_measured_by_its_own_scores_of_bags() -> None:
    y = (np.bincount(GROUPS, TRUTH) > 2).astype(int)[GROUPS]
    model = kofn.MILClassifier(kofn.Network(epochs=2), loss="attention", random_state=0).fit(X, y, groups=GROUPS)
    bags = bags_of(GROUPS, 120)
    scores = scores_of(model, X, bags)
    assert scores["logits"] is None
    found = measure(model, **scores, y=y, bags=bags)
    assert found["bag_accuracy"] == pytest.approx(model.score(X, y, GROUPS))
    assert "expected_count_error" not in found


def test_every_measure_has_a_name_and_a_meaning_and_their_order() -> None:
    names = [about.name for about in MEASURES.values()]
    assert len(set(names)) == len(names)
    assert all(about.meaning.endswith(".") for about in MEASURES.values())
    for kind in ("llp", "mil", "pu"):
        found = fitted(kind)[2]
        assert list(found) == [name for name in MEASURES if name in found]


def test_posteriors_with_copies_sum_to_the_count() -> None:
    """Each copy is an instance of its own: a row's posterior times its copies adds up to the bag's count."""
    copies = COPIES.copy()
    copies[0] = 0  # in no bag: it keeps its probability
    counts = counts_of(copies)
    model = kofn.LLPClassifier(kofn.Linear(l2=0.1), label="count", random_state=0)
    model.fit(X, counts, groups=GROUPS, copies=copies)
    given = model.posterior_proba(X, counts, GROUPS, copies)[:, 1]
    np.testing.assert_allclose(np.bincount(GROUPS, given * copies), counts[::4], atol=1e-9)
    assert given[0] == pytest.approx(model.predict_proba(X)[0, 1])
    repeated = np.repeat(np.arange(120), copies)
    alone = model.posterior_proba(X[repeated], counts[repeated], GROUPS[repeated])[:, 1]
    np.testing.assert_allclose(given[repeated], alone, atol=1e-9)
    y = (counts > 0).astype(int)
    mil = kofn.MILClassifier(kofn.Linear(l2=0.1), random_state=0).fit(X, y, groups=GROUPS)
    alone = mil.posterior_proba(X[repeated], y[repeated], GROUPS[repeated])[:, 1]
    np.testing.assert_allclose(mil.posterior_proba(X, y, GROUPS, copies)[repeated, 1], alone, atol=1e-9)


def test_measures_without_negatives() -> None:
    _, logits, found = fitted("pu")
    y = TRUTH * (np.arange(120) % 2)
    labelled, unlabelled = logits[y == 1], logits[y == 0]
    assert found["lift_at_tenth"] == kofn.metrics.lift(labelled, unlabelled, 0.1)
    assert found["precision_at_tenth"] == pytest.approx(0.3 * found["lift_at_tenth"])
    assert found["implied_auc"] == pytest.approx((found["pu_auc"] - 0.15) / 0.7)
    assert found["implied_auc_low"] < found["implied_auc"]
    assert "selection_p_value" not in found  # of fewer than 40 labelled


def test_what_is_said_of_the_selection() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(3000) < 0.5
    x = rng.normal(size=(3000, 1)) + 2.5 * truth[:, None]
    chances = {"random": np.full(3000, 0.4), "easy": 0.8 * (x[:, 0] > 2.5)}
    said = {}
    for name, chance in chances.items():
        y = (truth & (rng.random(3000) < chance)).astype(int)
        model = kofn.PUClassifier(kofn.Linear(l2=0.1), prior=0.5, random_state=0).fit(x, y)
        found = measure(model, model.decision_function(x), y=y)
        said[name] = selection_sentence(model, found)
        assert (found["selection_p_value"] < 0.05) == (name == "easy")
    assert said["random"].startswith("Nothing speaks against labelled positives that were selected at random (p = ")
    assert said["easy"].startswith("The labelled positives do not look selected at random (p = ")
    assert "fewer than 40 labelled" in selection_sentence(model, {"mixture": 0.3})
    model.mixture_interval_ = (0.2, 0.4)  # as if it had been estimated
    found = measure(model, model.decision_function(x), y=y)
    assert "selection_p_value" not in found
    assert "estimated as if they were" in selection_sentence(model, found)


def test_a_bootstrap_is_measured_by_its_mixture() -> None:
    y = counts_of(np.ones(120, int))
    model = kofn.LLPClassifier(kofn.Linear(l2=0.1), label="count", bootstrap=4, random_state=0).fit(X, y, groups=GROUPS)
    bags = bags_of(GROUPS, 120)
    found = measure(model, **scores_of(model, X, bags), y=y, bags=bags)
    assert found["log_likelihood"] == pytest.approx(model.score(X, y, GROUPS))
    table = model.predict_bag_proba(X, GROUPS)
    known = bags.common(y).numpy()
    assert found["randomised_coverage"] == pytest.approx(randomised_coverage(table, known))
    assert found["expected_count_error"] == pytest.approx(
        np.abs((table * np.arange(table.shape[1])).sum(1) - known).mean()
    )
