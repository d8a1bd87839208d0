"""PUClassifier estimates the mixture that it is not told, keeps its interval, and says what another would change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from estimator_cases import UNLEARNT, short_network
from sklearn.exceptions import NotFittedError

import kofn

pytestmark = UNLEARNT


def task(mixture: float = 0.4, *, labeled: int = 400, unlabeled: int = 1200) -> tuple[Any, Any, Any]:
    """Rows, labels and the truth; the first column tells the classes apart."""
    rng = np.random.default_rng(0)
    truth = np.concatenate([np.ones(labeled), rng.random(unlabeled) < mixture]).astype(int)
    X = rng.normal(size=(len(truth), 3))
    X[:, 0] += np.where(truth == 1, 1.5, -1.5)
    return X, np.where(np.arange(len(truth)) < labeled, 1, -1), truth


X, Y, TRUTH = task()
MIXTURE = float(TRUTH[Y == -1].mean())


def linear(**options: Any) -> kofn.PUClassifier:
    return kofn.PUClassifier(kofn.Linear(l2=0.01), **({"random_state": 0} | options))


def test_it_is_found_and_trained_with() -> None:
    model = linear().fit(X, Y)
    assert model.mixture_ == pytest.approx(MIXTURE, abs=0.07)
    assert model.mixture_interval_ is not None
    assert model.mixture_interval_[0] < MIXTURE < model.mixture_interval_[1]
    assert ((model.predict(X) == 1) == (TRUTH == 1)).mean() > 0.9
    same = linear(mixture=model.mixture_).fit(X, Y)
    assert np.array_equal(model.decision_function(X), same.decision_function(X))


def test_what_is_given_is_not_estimated() -> None:
    assert linear(mixture=0.3).fit(X, Y).mixture_interval_ is None
    assert linear(prior=0.5).fit(X, Y).mixture_interval_ is None


def test_the_seed_determines_it() -> None:
    assert linear().fit(X, Y).mixture_interval_ == linear().fit(X, Y).mixture_interval_


@pytest.mark.parametrize("shape", [(6, 6), (1, 6, 6), (3, 20, 17)], ids=str)
def test_images_and_a_network(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    images = rng.normal(size=(len(X), *shape)).astype(np.float32) + X[:, 0].reshape(-1, *[1] * len(shape))
    model = kofn.PUClassifier(short_network(), random_state=0).fit(images, Y)
    assert model.mixture_ == pytest.approx(MIXTURE, abs=0.07)


def test_categories_and_gaps_in_a_frame() -> None:
    frame = pd.DataFrame({"kind": np.where(X[:, 0] > 0, "a", "b"), "x": np.where(X[:, 1] > 1, np.nan, X[:, 0])})
    assert linear().fit(frame, Y).mixture_ == pytest.approx(MIXTURE, abs=0.07)


def test_of_many_rows_some_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kofn.estimators._label_scores.MOST", 300)
    model = linear().fit(X, Y)
    whole = linear()
    monkeypatch.undo()
    narrow, wide = (each.mixture_interval_ for each in (whole.fit(X, Y), model))
    assert narrow is not None
    assert wide is not None
    assert wide[0] < MIXTURE < wide[1]
    assert wide[1] - wide[0] > narrow[1] - narrow[0]


def test_progress_is_told() -> None:
    told: list[tuple[str, int, int]] = []
    linear(progress=lambda what, step, of, _: told.append((what, step, of))).fit(X, Y)
    assert told[:5] == [("estimating the mixture", step, 5) for step in range(1, 6)]


def test_data_that_hardly_tell_are_warned_of() -> None:
    noise = np.random.default_rng(0).normal(size=(400, 2))
    with pytest.warns(kofn.estimators.FitWarning, match="these data hardly tell the mixture"):
        linear().fit(noise, np.where(np.arange(400) < 100, 1, -1))


@pytest.mark.parametrize("labeled", [9, 1191])
def test_too_few_rows(labeled: int) -> None:
    with pytest.raises(ValueError, match=r"`prior` or `mixture` must be given where there are fewer than 10 .* are 9"):
        linear().fit(X[:1200], np.where(np.arange(1200) < labeled, 1, -1))


def test_the_interval_is_saved(tmp_path: Path) -> None:
    for model in (linear().fit(X, Y), linear(mixture=0.3).fit(X, Y)):
        model.save(tmp_path / "model")
        again = kofn.PUClassifier.load(tmp_path / "model")
        assert (again.mixture_, again.mixture_interval_) == (model.mixture_, model.mixture_interval_)


def test_sensitivity_over_the_interval() -> None:
    model = linear().fit(X, Y)
    rows = model.sensitivity(X, Y)
    assert model.mixture_interval_ is not None
    low, high = model.mixture_interval_
    assert [row["mixture"] for row in rows] == [low, model.mixture_, high]
    shares = [row["predicted_positive_share"] for row in rows]
    assert shares == sorted(shares)
    assert shares[0] < shares[2]
    assert shares[1] == float((model.decision_function(X[Y == -1]) > 0).mean())
    assert rows[1]["rank_correlation"] == rows[1]["top_overlap"] == 1.0
    assert all(0.9 < row["rank_correlation"] <= 1 for row in rows)


def test_sensitivity_fits_as_the_model_was_fitted() -> None:
    model = linear(mixture=0.4).fit(X, Y)
    (row,) = model.sensitivity(X, Y, mixtures=[0.2])
    other = linear(mixture=0.2).fit(X, Y)
    assert row["predicted_positive_share"] == float((other.decision_function(X[Y == -1]) > 0).mean())
    assert model.mixture_ == 0.4


def test_errors_of_sensitivity() -> None:
    model = linear(mixture=0.4).fit(X, Y)
    with pytest.raises(ValueError, match="`mixtures` must be given for a model whose mixture was given"):
        model.sensitivity(X, Y)
    with pytest.raises(ValueError, match="`mixtures` must lie between 0 and 1; got 40"):
        model.sensitivity(X, Y, mixtures=[40])
    with pytest.raises(NotFittedError):
        linear().sensitivity(X, Y)
