"""Two fitted models, compared bag by bag: numbers by hand, verdicts in words, and the page in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from cli_calls import fine
from headless_chromium import Chromium
from scipy.stats import binom
from scipy.stats import t as student_t

import kofn
from kofn.report import comparison_of, render, write

pytestmark = pytest.mark.filterwarnings("ignore:this fit is no better")


def task(seed: int) -> tuple[Any, Any, Any, Any]:
    """Instances, bags of 5, counts on the rows, and the truth."""
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(500, 2)), np.repeat([f"ward {i}" for i in range(100)], 5)
    truth = (rng.random(500) < 1 / (1 + np.exp(-3 * X[:, 0]))).astype(np.int64)
    return X, groups, truth.reshape(100, 5).sum(1).repeat(5), truth


TRAIN, NEW = task(0), task(1)


@pytest.fixture(scope="module")
def models() -> tuple[Any, Any]:
    """One that ignores all, and one that learns."""
    X, groups, counts, _ = TRAIN
    fitted = [
        kofn.LLPClassifier(kofn.Linear(penalties=(l2,)), label="count", random_state=0).fit(X, counts, groups=groups)
        for l2 in (1e4, 1e-3)
    ]
    return fitted[0], fitted[1]


def test_differences_by_hand(models: tuple[Any, Any]) -> None:
    X, groups, counts, truth = NEW
    report = comparison_of(*models, X, counts, groups, truth=truth, names=["none", "good"])
    assert report.paired is not None
    assert list(report.paired.names) == [f"ward {i}" for i in range(100)]
    found = []
    for model in models:
        laws = model.predict_bag_proba(X, groups)
        found.append(np.log(laws[np.arange(100), counts[::5]]))
    np.testing.assert_allclose(report.paired.log_likelihoods, found, rtol=1e-6)
    difference = found[1] - found[0]
    np.testing.assert_allclose(report.paired.difference, difference, rtol=1e-5)
    low, high = student_t.interval(0.9, 99, difference.mean(), difference.std(ddof=1) / 10)
    numbers = report.verdicts[0].numbers["difference"]
    assert (numbers["mean"], numbers["low"], numbers["high"]) == pytest.approx((difference.mean(), low, high), rel=1e-5)
    assert report.verdicts[0].mark == "good"
    assert report.verdicts[0].sentence.startswith("good is better than none by")
    assert "on 100 new bags (Student's" in report.verdicts[0].sentence
    assert [one.about for one in report.verdicts] == ["comparison", "calibration", "calibration"]
    assert len(report.paired_calibration) == 2
    # The first of the two is the binomial of the base rate.
    rate = models[0].rate_
    np.testing.assert_allclose(report.paired.log_likelihoods[0], binom.logpmf(counts[::5], 5, rate), atol=0.02)
    page = render(report)
    for words in ("Which bags differ", "Calibration side by side", "Both models, bag by bag", "ward 17", "True"):
        assert words in page


def test_turned_round_the_verdict_names_the_same_model(models: tuple[Any, Any]) -> None:
    X, groups, counts, _ = NEW
    verdict = comparison_of(models[1], models[0], X, counts, groups, names=["good", "none"]).verdicts[0]
    assert verdict.mark == "good"
    assert verdict.sentence.startswith("good is better than none by")
    assert verdict.numbers["difference"]["high"] < 0


def test_a_model_against_itself_and_on_few_bags(models: tuple[Any, Any]) -> None:
    X, groups, counts, _ = NEW
    again = comparison_of(models[1], models[1], X, counts, groups).verdicts[0]
    assert again.mark == "doubtful"
    assert "as good as" in again.sentence
    few = comparison_of(*models, X[:20], counts[:20], groups[:20]).verdicts[0]
    assert few.mark == "unknown"
    assert "4 are too few" in few.sentence


def test_training_data_are_compared_on_what_both_held_out(models: tuple[Any, Any]) -> None:
    X, groups, counts, _ = TRAIN
    network = kofn.LLPClassifier(kofn.Network(epochs=3), label="count", random_state=0).fit(X, counts, groups=groups)
    report = comparison_of(network, models[1], X, counts, groups)
    assert report.source == "held-out"
    assert report.paired is not None
    assert list(report.paired.names) == [f"ward {i}" for i in network.held_out_]
    mine = -kofn.count_loss(
        kofn_logits(models[1], network.held_out_),
        kofn.Exactly(torch.from_numpy(counts[::5][network.held_out_])),
        reduction="none",
    )
    np.testing.assert_allclose(report.paired.log_likelihoods[1], mine, rtol=1e-6)
    seen = comparison_of(network, models[1], X[5:], counts[5:], groups[5:])
    assert (seen.source, seen.verdicts[0].mark) == ("training", "unknown")
    assert "they have seen these data" in seen.verdicts[0].sentence


def kofn_logits(model: Any, bags: Any) -> Any:
    return torch.from_numpy(model.held_out_logits_.reshape(100, 5)[bags])


def test_other_tasks(models: tuple[Any, Any]) -> None:
    X, groups, counts, truth = TRAIN
    mil = [
        kofn.MILClassifier(kofn.Linear(l2=l2), random_state=0).fit(X, counts > 3, groups=groups) for l2 in (10.0, 0.01)
    ]
    report = comparison_of(mil[0], mil[1], NEW[0], NEW[2] > 3, NEW[1])
    assert report.paired is not None
    assert report.paired.expected is None  # "at least one" does not tell how many
    expected = [np.log(one.predict_bag_proba(NEW[0], NEW[1])[np.arange(100), (NEW[2] > 3)[::5] * 1]) for one in mil]
    np.testing.assert_allclose(report.paired.log_likelihoods, expected, rtol=1e-5)
    render(report)
    y = np.where((truth == 1) & (np.arange(500) % 2 == 0), 1, -1)
    pu = [kofn.PUClassifier(kofn.Linear(l2=l2), mixture=0.33, random_state=0).fit(X, y) for l2 in (100.0, 0.01)]
    labelled = np.where((NEW[3] == 1) & (np.arange(500) % 2 == 0), 1, -1)
    rows = comparison_of(pu[0], pu[1], NEW[0], labelled)
    assert rows.paired is None
    assert "DeLong" in rows.verdicts[0].sentence
    assert "bag by bag" in render(rows)
    with pytest.raises(ValueError, match="of one task"):
        comparison_of(mil[0], models[0], NEW[0], NEW[2] > 3, NEW[1])
    other = kofn.LLPClassifier(kofn.Linear(l2=1.0), random_state=0).fit(X, counts / 5, groups=groups)
    with pytest.raises(ValueError, match="the same `label`"):
        comparison_of(other, models[0], NEW[0], NEW[2], NEW[1])


def test_from_the_command_line(tmp_path: Path) -> None:
    for name, (X, groups, counts, truth) in (("train", TRAIN), ("new", NEW)):
        frame = pd.DataFrame({"x": X[:, 0], "z": X[:, 1], "ward": groups, "yes": counts, "truth": truth})
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    for column in ("x", "z"):
        told = ["--bag", "ward", "--label", "yes", "--features", column, "--learner", "linear", "-q"]
        fine("fit", "llp", tmp_path / "train.csv", *told, "-o", tmp_path / column)
    said = fine("report", tmp_path / "z", tmp_path / "x", tmp_path / "new.csv", "-o", tmp_path / "two.html")
    assert "x is better than z by" in " ".join(said.split())
    page = (tmp_path / "two.html").read_text()
    assert "x against z" in page
    assert "ward 99" in page


@pytest.mark.browser
def test_in_a_browser(models: tuple[Any, Any], tmp_path: Path) -> None:
    X, groups, counts, truth = NEW
    write(comparison_of(*models, X, counts, groups, truth=truth, names=["none", "good"]), tmp_path / "two.html")
    with Chromium.opened() as browser:
        for width in (1280, 390):
            for scheme in ("light", "dark"):
                browser.log("browser")
                browser.log("performance")
                browser.open((tmp_path / "two.html").as_uri(), width=width, scheme=scheme)
                assert browser.log("browser") == []
                asked = [url for url in browser.requested() if not url.startswith("data:")]
                assert asked == [(tmp_path / "two.html").as_uri()]
                assert browser.run("return document.documentElement.scrollWidth") <= width
        assert browser.run("return document.querySelectorAll('.verdicts li').length") == 3
        marks = browser.run("return [...document.querySelectorAll('.verdicts .mark')].map((one) => one.textContent)")
        assert marks[0] == "Clear"
        values = "return [...document.querySelectorAll('#paired tbody tr')].map((row) => +row.cells[1].dataset.v)"
        first = browser.run(values)
        assert [abs(one) for one in first] == sorted((abs(one) for one in first), reverse=True)
        button = browser.driver.find_elements("css selector", "#paired thead button")[1]
        browser.run("arguments[0].focus()", button)
        browser.driver.switch_to.active_element.send_keys("\ue007")
        assert browser.run(values) == sorted(first)
        assert "Sorted by Difference" in browser.run("return document.querySelector('#paired [aria-live]').textContent")
