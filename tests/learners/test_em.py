"""Expectation-maximisation with any classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from learner_cases import mil_bags, some_bags
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import kofn
from kofn.learners import CountObjective, between

EXACT: Any = LogisticRegression(C=np.inf, max_iter=5000, tol=1e-8)  # no penalty


def noisy(bags: int = 60, **changes: Any) -> Any:
    """Labels that features tell only in part, so that a likelihood has a maximum."""
    problem = some_bags(bags, seed=1)
    rng = np.random.default_rng(0)
    truth = rng.random(len(problem.instances)) < 1 / (1 + np.exp(-2 * problem.instances[:, 0]))
    counts = problem.bags.sum(torch.from_numpy(truth).long())
    given = {"labels": counts, "proportions": counts / problem.bags.sizes.double()}
    return some_bags(bags, seed=1, **(given | changes))


@pytest.mark.parametrize("task", ["count", "interval", "mil", "weighted"])
def test_the_training_loss_never_grows(task: str) -> None:
    problem = noisy()
    if task == "interval":
        low = (problem.labels - 1).clamp(min=0)
        bounds = torch.stack([low, problem.labels], 1)
        problem = noisy(labels=bounds, objective=CountObjective(between))
    elif task == "mil":
        problem = noisy(labels=(problem.labels > 0).long(), objective=mil_bags().objective)
    elif task == "weighted":
        problem = noisy(weight=torch.arange(60).double() % 3)
    fitted = kofn.EM(EXACT, rounds=15, validation_fraction=0.0).fit(problem, seed=0)
    losses = np.array([entry["train_loss"] for entry in fitted.history])
    assert len(losses) == 15
    # Half a row of doubt moves probabilities by 1 / (2 n + 2).
    assert (np.diff(losses) < 1e-4).all()
    assert losses[-1] < losses[0] - 0.01


def test_it_finds_what_the_linear_learner_finds() -> None:
    problem = noisy(200)
    models = kofn.EM(EXACT, rounds=60, validation_fraction=0.0), kofn.Linear(l2=0.0)
    em, linear = (torch.from_numpy(model.fit(problem, seed=0).logits(problem.instances)) for model in models)
    assert float(problem.mean_loss(em)) == pytest.approx(float(problem.mean_loss(linear)), abs=1e-3)


def test_it_stops_on_held_out_bags_and_keeps_the_best() -> None:
    class Seen(GaussianNB):  # type: ignore[misc]  # scikit-learn has no types
        sizes: list[int] = []  # noqa: RUF012

        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:  # noqa: N803
            self.sizes.append(len(X))
            return super().fit(X, y, sample_weight)

    problem = noisy()
    fitted = kofn.EM(Seen(), rounds=40, patience=2).fit(problem, seed=0)
    val = [entry["val_loss"] for entry in fitted.history]
    assert fitted.best == int(np.argmin(val))
    assert len(val) == min(fitted.best + 3, 40)
    ((_, held),) = fitted.splits
    assert fitted.held_out_logits is not None
    held_rows = np.unique(problem.bags.select(held).index.numpy())
    assert max(Seen.sizes) <= 2 * (len(problem.instances) - len(held_rows))
    assert np.isfinite(fitted.held_out_logits[held_rows]).all()
    assert np.isnan(np.delete(fitted.held_out_logits, held_rows)).all()
    loss = problem.take(held).mean_loss(torch.from_numpy(fitted.logits(problem.instances)))
    assert fitted.validation_loss == pytest.approx(float(loss)) == min(val)


def test_pipelines_and_seeds() -> None:
    problem = noisy()
    pipe = make_pipeline(PolynomialFeatures(2), RandomForestClassifier(5, min_samples_leaf=10))
    one, two, other = (kofn.EM(pipe, rounds=2).fit(problem, seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(one.logits(problem.instances), two.logits(problem.instances))
    assert not np.array_equal(one.logits(problem.instances), other.logits(problem.instances))
    assert not hasattr(pipe[-1], "estimators_")  # it is cloned


@pytest.mark.parametrize("classifier", [LogisticRegression(), GaussianNB(), RandomForestClassifier(3)], ids=str)
@pytest.mark.parametrize("label", [0, 1])
def test_labels_of_one_kind(classifier: Any, label: int) -> None:
    problem = some_bags(12)
    counts = label * problem.bags.sizes
    half = 0.5 / len(problem.bags.index)
    rate = 1 - half if label else half
    fitted = kofn.EM(classifier).fit(some_bags(12, labels=counts, proportions=counts * 1.0, rate=rate), seed=0)
    assert ((fitted.logits(problem.instances) > 0) == bool(label)).all()


@pytest.mark.parametrize("classifier", [KNeighborsClassifier(), Perceptron(), 3, make_pipeline(KNeighborsClassifier())])
def test_classifiers_that_will_not_do(classifier: Any) -> None:
    with pytest.raises(
        ValueError, match="`estimator` must be a classifier with predict_proba whose fit takes sample_w"
    ):
        kofn.EM(classifier).fit(some_bags(), seed=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounds": 0}, "`rounds` must be at least 1"),
        ({"patience": 0}, "`patience` must be at least 1"),
        ({"validation_fraction": 1.0}, "`validation_fraction` must be below 1"),
    ],
)
def test_options_that_are_none(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kofn.EM(GaussianNB(), **options).fit(some_bags(), seed=0)
