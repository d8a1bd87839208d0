"""On which rows a model is judged: training data are known again, and never called held-out or new."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kofn
from kofn.estimators._fingerprint import KEPT, Fingerprint
from kofn.estimators._judged import judge
from kofn.estimators._trust import verdicts

LEARNERS = {"trees": kofn.Trees(max_rounds=30), "linear": kofn.Linear(), "network": kofn.Network(epochs=8)}
pytestmark = pytest.mark.filterwarnings("ignore:this fit is no better")


def task(bags: int, seed: int) -> tuple[Any, Any, Any, Any]:
    """Instances, bags of 6, counts on the rows, and the truth."""
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(6 * bags, 3)), np.repeat(np.arange(bags), 6)
    truth = (rng.random(6 * bags) < 1 / (1 + np.exp(-3 * X[:, 0]))).astype(np.int64)
    return X, groups, truth.reshape(bags, 6).sum(1)[groups], truth


TRAIN, NEW = task(100, 0), task(100, 1)


@pytest.mark.parametrize("learner", LEARNERS)
def test_training_data_are_judged_by_held_out_scores(learner: str, tmp_path: Path) -> None:
    X, groups, counts, truth = TRAIN
    fitted = kofn.LLPClassifier(LEARNERS[learner], label="count", random_state=0).fit(X, counts, groups=groups)
    fitted.save(tmp_path / "m")
    for model in (fitted, kofn.estimators.load(tmp_path / "m")):
        judged = judge(model, X, groups)
        held = np.flatnonzero(judged.rows)
        assert judged.source == "held-out"
        assert sorted(set(groups[held].tolist())) == model.held_out_.tolist()
        assert judged.bags is not None
        assert judged.bags.names == model.held_out_.tolist()
        assert (groups[held][judged.bags.index] == np.repeat(model.held_out_, 6)).all()
        assert fitted.held_out_logits_ is not None
        np.testing.assert_allclose(judged.logits, fitted.held_out_logits_[held], rtol=1e-6)
        skill, calibration, rows = verdicts(model, judged, counts[held], truth[held])
        # The verdict has the very losses that the fit compared.
        gains = skill.numbers["gains"]
        assert model.validation_loss_ is not None
        for name, baseline in model.baselines_.items():
            assert gains[name]["mean"] == pytest.approx(baseline - model.validation_loss_, abs=2e-5)
        assert skill.numbers["number"] == len(model.held_out_)
        assert f"on {len(model.held_out_)} held-out bags" in skill.sentence
        assert calibration.numbers["asked"] == 0.9
        assert rows.mark == "good"
        assert verdicts(model, judged, counts[held])[2].mark == "unknown"


def test_other_orders_and_parts_are_training_data_and_others_are_new() -> None:
    X, groups, counts, _ = TRAIN
    model = kofn.LLPClassifier("linear", label="count", random_state=0).fit(X, counts, groups=groups)
    order = np.random.default_rng(0).permutation(len(X))
    for rows in (order, slice(60, None), slice(0, 60)):
        judged = judge(model, X[rows], groups[rows])
        assert (judged.source, judged.seen) == ("training", 1.0)
        assert {one.mark for one in verdicts(model, judged, counts[rows])} == {"unknown"}
    mixed_X, mixed_groups = np.concatenate([NEW[0], X[:120]]), np.concatenate([NEW[1], groups[:120] + 1000])
    judged = judge(model, mixed_X, mixed_groups)
    assert judged.source == "training"
    assert judged.seen == pytest.approx(20 / 120)
    assert judge(model, X).source == "training"  # without bags its rows are known
    judged = judge(model, NEW[0], NEW[1])
    assert (judged.source, judged.seen) == ("new", 0.0)
    assert judged.rows.all()
    skill = verdicts(model, judged, NEW[2])[0]
    assert skill.mark == "good" or skill.numbers["gains"]["no features"]["low"] > 0
    assert "on 100 new bags" in skill.sentence


def test_gain_over_bag_means_on_new_data_is_that_of_the_stored_regression() -> None:
    X, groups, counts, _ = TRAIN
    model = kofn.LLPClassifier("linear", label="count", random_state=0).fit(X, counts, groups=groups)
    judged = judge(model, NEW[0], NEW[1])
    assert judged.bag_means is not None
    assert model.bag_means_ is not None
    shares = model.bag_means_.predict(NEW[0].astype(np.float32), kofn.Bags.from_ids(NEW[1]))
    np.testing.assert_allclose(judged.bag_means, shares)
    counted = NEW[2].reshape(100, 6)[:, 0]
    assert np.corrcoef(shares.sigmoid().numpy(), counted)[0, 1] > 0.3


def test_multiple_instances_attention_and_positives_and_unlabelled() -> None:
    X, groups, counts, truth = TRAIN
    cases: list[tuple[Any, str]] = [("count", "linear"), ("max", "network"), ("attention", "network")]
    for loss, learner in cases:
        mil = kofn.MILClassifier(LEARNERS[learner], loss=loss, random_state=0).fit(X, counts > 3, groups=groups)
        for data, source in ((TRAIN, "held-out"), (NEW, "new")):
            judged = judge(mil, data[0], data[1])
            found = verdicts(mil, judged, (data[2] > 3)[judged.rows])
            assert judged.source == source
            assert [one.about for one in found] == ["skill", "calibration", "rows"]
            assert "logistic regression on bag means" in found[0].sentence
            assert "by its own probabilities" in found[1].sentence
    y = np.where((truth == 1) & (np.arange(len(X)) % 2 == 0), 1, -1)
    pu = kofn.PUClassifier("linear", mixture=0.33, random_state=0).fit(X, y)
    judged = judge(pu, X)
    assert judged.source == "held-out"
    found = verdicts(pu, judged, y[judged.rows], truth[judged.rows])
    assert "points of AUC" in found[0].sentence
    assert found[0].numbers["gains"]["no features"]["low"] > 0.1
    assert "positive, and" in found[1].sentence
    assert (found[2].mark, found[2].numbers["auc"]["low"] > 0.9) == ("doubtful", True)
    assert "1.4 times as many positives expected as there are" in found[2].sentence
    assert judge(pu, NEW[0]).source == "new"
    unlabelled = verdicts(pu, judge(pu, NEW[0]))
    assert [one.mark for one in unlabelled] == ["unknown", "unknown", "unknown"]


def test_a_model_that_held_nothing_out_is_judged_as_training() -> None:
    X, groups, counts, _ = task(6, 0)
    model = kofn.LLPClassifier(kofn.Linear(l2=0.1), label="count", random_state=0).fit(X, counts, groups=groups)
    assert len(model.held_out_) == 0
    assert judge(model, X, groups).source == "training"


def test_a_sample_of_hashes_knows_many_bags_again() -> None:
    rng = np.random.default_rng(0)
    X, bags = rng.normal(size=(40_000, 2)).astype(np.float32), kofn.Bags.from_sizes(np.full(20_000, 2))
    known = Fingerprint.of(X, bags)
    assert len(known.lowest["bags"]) == KEPT
    half = np.concatenate([X[:20_000], rng.normal(size=(20_000, 2)).astype(np.float32)])
    assert known.share_seen(half, bags) == pytest.approx(0.5, abs=0.05)
    assert known.share_seen(X + 1, bags) == 0
    alike = np.zeros((40_000, 2), np.float32)  # which tell nothing
    assert Fingerprint.of(alike, bags).share_seen(alike[:20], kofn.Bags.from_sizes([2] * 10)) == 0
    assert Fingerprint.of(alike, bags).is_of(alike, bags)
    gaps = X.copy()
    gaps[0] = np.nan
    assert Fingerprint.of(gaps, bags).is_of(gaps, bags)


def test_the_whole_training_table_is_known_again_though_its_bags_repeat() -> None:
    """Bags that occur twice have no hash, since a new one may be like them; the table as a whole has one."""
    X, groups = np.tile(np.arange(4.0), 20)[:, None], np.repeat(np.arange(40), 2)
    y = np.tile([0.5, 0.5, 1.0, 1.0], 20)
    model = kofn.LLPClassifier(kofn.Linear(l2=1.0)).fit(X, y, groups=groups)
    assert judge(model, X, groups).source == "training"
