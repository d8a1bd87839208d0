"""Reports of fitted estimators: exact laws, metrics, every task, every error."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from report_cases import binomial_law

import kofn
from kofn.metrics import count_calibration
from kofn.report import render, report_of
from kofn.report._bag_rows import bag_rows
from kofn.report._count_distributions import calibration, some_distributions
from kofn.report._detail_json import details_json
from kofn.report._examples import _strength, is_positive
from kofn.report._plot import percent

# What is fitted in a moment is often no better than nothing at all.
pytestmark = pytest.mark.filterwarnings("ignore:this fit is no better")

NETWORK = kofn.Network(hidden=(8,), lr=0.02, epochs=3)
QUICK = kofn.Network(hidden=(4,), epochs=1)

Arrays = tuple[Any, Any, Any, Any]


def bags_of_rows(seed: int) -> Arrays:
    """Instances, true classes, bags of 3 to 7, and each bag's name on its rows; the rows are shuffled."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 8, 40)
    groups = np.repeat([f"bag {i}" for i in range(40)], sizes)
    X = rng.normal(size=(len(groups), 3))
    truth = X[:, 0] > 0.5
    order = rng.permutation(len(groups))
    bag = np.repeat(np.arange(40), sizes)
    counts = np.bincount(bag, truth).astype(int)
    return X[order], truth[order], groups[order], counts[bag][order]


@pytest.fixture(scope="module")
def data() -> Arrays:
    """What models are looked at on."""
    return bags_of_rows(0)


@pytest.fixture(scope="module")
def training() -> Arrays:
    """What they are trained on."""
    return bags_of_rows(1)


@pytest.fixture(scope="module")
def llp(training: Arrays) -> Any:
    X, _, groups, counts = training
    return kofn.LLPClassifier(NETWORK, label="count", random_state=0).fit(X, counts, groups=groups)


@pytest.fixture(scope="module")
def mil(training: Arrays) -> Any:
    X, _, groups, counts = training
    return kofn.MILClassifier(NETWORK, random_state=0).fit(X, counts > 0, groups=groups)


@pytest.fixture(scope="module")
def pu(training: Arrays) -> Any:
    X, truth, _, _ = training
    y = np.where(truth & (np.arange(len(X)) % 3 == 0), 1, -1)
    return kofn.PUClassifier(NETWORK, mixture=0.2, random_state=0).fit(X, y)


def test_calibration_of_a_calibrated_model_is_flat() -> None:
    """All counts of one law, each as often as the law says: coverage and histogram are exact."""
    logits = torch.zeros(2, dtype=torch.float64)  # 1/4, 1/2, 1/4
    counts = torch.tensor([0, 1, 1, 2])
    offsets = torch.arange(0, 9, 2)
    found = calibration(logits.repeat(4).unsqueeze(0), counts, offsets, 0.0)
    np.testing.assert_allclose(found.coverage, found.levels, atol=1e-12)
    np.testing.assert_allclose(found.pit, 0.1, atol=1e-12)
    assert found.n_bags == 4
    seen = count_calibration(logits.repeat(4), counts, offsets=offsets, levels=found.levels)
    assert found.coverage == seen.coverage


def test_calibration_of_impossible_counts() -> None:
    sure = torch.full((2,), torch.inf, dtype=torch.float64)
    found = calibration(sure.unsqueeze(0), torch.tensor([0]), torch.tensor([0, 2]), 0.0)
    assert sum(found.pit) == pytest.approx(1)
    assert found.pit[0] == 1
    assert max(found.coverage) == 0


def test_llp_report(data: Arrays, llp: Any) -> None:
    X, truth, groups, counts = data
    report = report_of(llp, X, counts, groups, truth=truth, title="Mine", facts=[("File", "a.csv")])
    assert (report.title, report.task) == ("Mine", "llp")
    assert report.bags is not None
    proba = llp.predict_bag_proba(X, groups)
    np.testing.assert_allclose(report.bags.expected, proba @ np.arange(proba.shape[1]))
    np.testing.assert_allclose(report.bags.at_least_one, 1 - proba[:, 0])
    first = dict(zip(groups, counts, strict=True))
    assert report.bags.known is not None
    assert report.bags.known.tolist() == [first[name] for name in report.bags.names]
    assert report.calibration is not None
    values = {metric.name: metric.value for metric in report.metrics}
    assert values["Mean absolute count error"] == pytest.approx(np.abs(report.bags.expected - report.bags.known).mean())
    assert values["Accuracy"] == pytest.approx((llp.predict(X) == truth).mean())
    assert report.facts[0] == ("File", "a.csv")
    assert len(report.history) == 3
    known = [law.known for law in report.distributions]
    assert known == sorted(int(k) for k in known if k is not None)
    assert known[0] == report.bags.known.min()
    assert known[-1] == report.bags.known.max()
    assert report.typical_bag is not None
    assert len(report.typical_bag.instances) == report.typical_bag.size
    assert report.typical_bag.distribution is not None
    shares = [one.probability for one in report.typical_bag.instances]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(report.typical_bag.distribution.after @ np.arange(len(shares) + 1))
    render(report)


def test_llp_labels_of_every_kind(data: Arrays) -> None:
    X, truth, groups, counts = data
    sizes = dict(zip(*np.unique(groups, return_counts=True), strict=True))
    share = counts / np.array([sizes[name] for name in groups])
    options: dict[str, tuple[dict[str, Any], Any]] = {
        "proportion": ({}, share),
        "interval": ({"label": "interval"}, np.stack([np.maximum(counts - 1, 0), counts], 1)),
        "noisy": ({"label": "count", "noise": "laplace:1"}, counts + 0.3),
        "spread": ({"rounding": "spread"}, np.round(share, 1)),
    }
    found = {}
    for name, (option, y) in options.items():
        model = kofn.LLPClassifier(QUICK, random_state=0, **option).fit(X, y, groups=groups)
        found[name] = report_of(model, X, y, groups)
        render(found[name])
    assert found["proportion"].calibration is not None
    assert found["interval"].calibration is None
    assert found["interval"].bags is not None
    assert found["interval"].bags.known is None
    assert found["interval"].bags.labels is not None
    assert " to " in found["interval"].bags.labels[0]
    for name in ("noisy", "spread"):
        bags = found[name].bags
        assert bags is not None
        assert not bags.exact
        assert found[name].calibration is None
    # With the truth every one of them can be judged.
    model = kofn.LLPClassifier(QUICK, random_state=0, **options["noisy"][0])
    judged = report_of(model.fit(X, counts + 0.3, groups=groups), X, counts + 0.3, groups, truth=truth)
    assert judged.calibration is not None


def test_mil_report(data: Arrays, mil: Any) -> None:
    X, truth, groups, counts = data
    images = np.random.default_rng(0).random((len(X), 4, 4))
    report = report_of(mil, X, counts > 0, groups, truth=truth, images=images)
    assert report.bags is not None
    assert report.bags.positive is not None
    np.testing.assert_allclose(report.bags.at_least_one, mil.predict_bag_proba(X, groups)[:, 1])
    assert {"Bag accuracy", "Bag AUC", "AUC"} <= {metric.name for metric in report.metrics}
    accuracy = next(metric.value for metric in report.metrics if metric.name == "Bag accuracy")
    assert accuracy == pytest.approx(mil.score(X, counts > 0, groups))
    assert 1 < len(report.examples) <= 6
    for bag in report.examples:
        assert bag.label == "at least one positive"
        assert bag.instances[0].image is not None
        rows = np.flatnonzero(groups == bag.name)
        assert bag.instances[0].probability == pytest.approx(mil.predict_proba(X[rows])[:, 1].max())
    assert "data:image/png" in render(report)


def test_at_least_one_gives_no_areas_but_beside_the_truth(data: Arrays, mil: Any) -> None:
    """Labels of "at least one" do not tell counts: 0 of 20 intervals held."""
    X, truth, groups, counts = data
    report = report_of(mil, X, counts > 0, groups)
    assert report.bags is not None
    assert not report.bags.areas
    assert bag_rows(report.bags).columns == ["Bag", "Surprise", "Size", "At least one", "Label"]
    page = render(report)
    assert "How many are positive is not shown" in page
    assert not report.distributions
    assert report.typical_bag is None
    told = json.loads(details_json([("", "true", report)]))["chapters"][0]["bags"][0]
    assert (told["interval"], told["expected"], told["distribution"]) == (None, None, [])
    assert report.details is not None
    assert told["atLeastOne"] == pytest.approx(report.bags.at_least_one[report.details.bags[0].bag], rel=1e-6)
    judged = report_of(mil, X, counts > 0, groups, truth=truth)
    assert judged.bags is not None
    assert {"True", "Expected", "Low", "High"} < set(bag_rows(judged.bags, word="true").columns)
    assert len(judged.distributions) == 6


def test_mil_rows_show_the_columns_that_matter(data: Arrays, mil: Any) -> None:
    X, _, groups, counts = data
    plain = report_of(mil, X, counts > 0, groups)
    assert set(plain.examples[0].columns) == {"x0", "x1", "x2"}
    assert plain.calibration is None  # no true count is known
    pandas = pytest.importorskip("pandas")
    scores = mil.decision_function(X)
    wide = pandas.DataFrame({f"noise {i}": np.random.default_rng(i).normal(size=len(X)) for i in range(8)})
    wide["score"] = scores * 2 + 1
    wide["side"] = np.where(scores > np.median(scores), "<b>up</b>", "down")
    report = report_of(mil, X, counts > 0, groups, table=wide)
    assert report.examples[0].columns[0] == "score"
    assert "side" in report.examples[0].columns[:2]
    assert len(report.examples[0].columns) == 6
    assert "<b>up" not in render(report)


def test_attention_scores_bags_by_itself(data: Arrays, training: Arrays) -> None:
    X, _, groups, counts = training
    model = kofn.MILClassifier(QUICK, loss="attention", random_state=0).fit(X, counts > 0, groups=groups)
    X, _, groups, counts = data
    report = report_of(model, X, counts > 0, groups)
    assert report.bags is not None
    np.testing.assert_allclose(report.bags.at_least_one, model.predict_bag_proba(X, groups)[:, 1])
    render(report)
    unlabelled = report_of(model, X, groups=groups).bags
    assert unlabelled is not None
    np.testing.assert_array_equal(unlabelled.at_least_one, report.bags.at_least_one)


def test_pu_report(data: Arrays, pu: Any) -> None:
    X, truth, _, _ = data
    y = np.where(truth & (np.arange(len(X)) % 3 == 0), 1, -1)
    report = report_of(pu, X, y, truth=truth)
    assert report.bags is None
    assert report.binomial is not None
    size = len(report.binomial.reference) - 1
    np.testing.assert_allclose(report.binomial.reference, binomial_law(size, 0.2), atol=1e-12)
    for one in report.binomial.distributions:
        assert one.sum() == pytest.approx(1)
    values = {metric.name: metric.value for metric in report.metrics}
    unlabeled = y == -1
    assert values["Mean probability"] == pytest.approx(pu.predict_proba(X)[unlabeled, 1].mean())
    assert values["Accuracy"] == pytest.approx(((pu.predict(X) == 1) == truth)[unlabeled].mean())
    assert report.binomial.labelled is not None
    assert len(report.binomial.labelled) == (~unlabeled).sum()
    render(report)
    render(report_of(pu, X))
    assert report_of(pu, X[y == 1], y[y == 1]).binomial is None


def test_without_labels_there_are_still_laws(data: Arrays, llp: Any, mil: Any) -> None:
    X, _, groups, _ = data
    for model in (llp, mil):
        report = report_of(model, X, groups=groups)
        assert report.metrics == []
        assert report.bags is not None
        assert report.bags.known is None
        assert len(report.distributions) == (6 if model is llp else 0)
        assert 'class="flag' not in render(report)
    alone = report_of(llp, X)
    assert alone.bags is None
    render(alone)


@pytest.mark.parametrize(
    "learner",
    [
        kofn.Trees(rounds=5),
        pytest.param(kofn.Trees(), marks=pytest.mark.slow),
        kofn.Linear(),
        kofn.Linear(l2=0.1),
        QUICK,
    ],
)
def test_every_learner_starts_from_the_base_rate(data: Arrays, learner: Any, tmp_path: Any) -> None:
    X, _, groups, counts = data
    model = kofn.LLPClassifier(learner, label="count", random_state=0).fit(X, counts, groups=groups)
    model.save(tmp_path / "m")
    for one in (model, kofn.estimators.load(tmp_path / "m")):
        report = report_of(one, X, counts, groups)
        assert dict(report.facts)["Learner"] == type(learner).__name__.lower()
        for law in report.distributions:
            assert law.before is not None
            np.testing.assert_allclose(law.before, binomial_law(len(law.before) - 1, model.rate_), atol=1e-12)
        assert (report.history, report.best_step) == (model.history_, model.best_step_)
        render(report)


def test_some_laws_of_few_bags() -> None:
    bags = kofn.Bags.from_sizes([1, 2])
    found = some_distributions(["a", "b"], bags, torch.zeros(1, 3, dtype=torch.float64), None, None, 0.0)
    assert [one.name for one in found] == ["a", "b"]
    np.testing.assert_allclose(found[1].after, [0.25, 0.5, 0.25])


def test_truth_in_any_words() -> None:
    assert is_positive([0, 1, 1], np.array(["no", "yes"])).tolist() == [False, True, True]
    assert is_positive(["no", "yes"], np.array(["no", "yes"])).tolist() == [False, True]
    assert is_positive([-1, 1], np.array([-1, 1])).tolist() == [False, True]
    with pytest.raises(ValueError, match="`truth` must be 0 and 1, or the classes"):
        is_positive(["no", "maybe"], np.array(["no", "yes"]))


def test_strength_of_columns() -> None:
    scores = np.arange(100.0)
    assert _strength(-3 * scores + 1, scores) == pytest.approx(1)
    assert _strength(np.ones(100), scores) == 0
    assert _strength(np.full(100, np.nan), scores) == 0
    assert _strength(np.array([f"name {i}" for i in range(100)], dtype=object), scores) == 0
    assert _strength(np.where(scores < 50, "a", "b").astype(object), scores) == pytest.approx(0.866, abs=1e-3)


def test_errors_name_the_argument(data: Arrays, llp: Any) -> None:
    X, truth, groups, counts = data
    with pytest.raises(TypeError, match="`estimator` must be"):
        report_of(object(), X)  # type: ignore[arg-type]  # what is wrong is the point
    for name in ("truth", "images", "table"):
        with pytest.raises(ValueError, match=f"`{name}` must have one entry for each of the {len(X)} rows"):
            report_of(llp, X, counts, groups, **{name: truth[:3]})
    with pytest.raises(ValueError, match="`y` must have one entry"):
        report_of(llp, X, counts[:3], groups)
    with pytest.raises(ValueError, match="`groups` must name the bag of each"):
        report_of(llp, X, counts, groups[:3])


def test_a_bootstrap_is_told_of(data: Arrays) -> None:
    X, _, groups, counts = data
    model = kofn.LLPClassifier(kofn.Linear(l2=0.1), label="count", bootstrap=3, random_state=0)
    facts = dict(report_of(model.fit(X, counts, groups=groups), X, counts, groups).facts)
    low, high = model.predict_interval(X, groups=np.zeros(len(X)), mean=True)
    assert facts["Bootstrap"] == "3 fits"
    assert facts["Mean probability, 90\u00a0% interval"] == f"{percent(low[0])} to {percent(high[0])}"
