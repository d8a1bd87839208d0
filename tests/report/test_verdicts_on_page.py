"""What stands at the top of a report of each task, and which data its sections say that they are about."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import numpy as np
import pytest

import kofn
from kofn.estimators._verdict_words import score_text
from kofn.report import Report, Verdict, render, report_of
from kofn.report._plot import percent

pytestmark = pytest.mark.filterwarnings("ignore:this fit is no better")
LEARNER = kofn.Linear(penalties=(1.0, 0.01))


def task(seed: int) -> dict[str, Any]:
    """Bags of 5: labels of each kind, on the rows."""
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(300, 2)), np.repeat(np.arange(60), 5)
    truth = (X[:, 0] + 0.3 * rng.normal(size=300) > 0.3).astype(np.int64)
    counts = truth.reshape(60, 5).sum(1).repeat(5)
    classes = np.digitize(X[:, 0], [-0.5, 0.5])
    of_classes = np.eye(3)[classes].reshape(60, 5, 3).sum(1).repeat(5, axis=0)
    labelled = np.where((truth == 1) & (rng.random(300) < 0.5), 1, -1)
    return {
        "X": X, "groups": groups, "llp": counts, "mil": counts > 0, "pu": labelled, "classes": of_classes,
        "truth": truth, "class": classes,
    }  # fmt: skip


TRAIN, NEW = task(0), task(1)


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    X, groups = TRAIN["X"], TRAIN["groups"]
    return {
        "llp": kofn.LLPClassifier(LEARNER, label="count", random_state=0).fit(X, TRAIN["llp"], groups=groups),
        "mil": kofn.MILClassifier(LEARNER, random_state=0).fit(X, TRAIN["mil"], groups=groups),
        "pu": kofn.PUClassifier(LEARNER, mixture=0.25, random_state=0).fit(X, TRAIN["pu"]),
        "classes": kofn.LLPClassifier(LEARNER, label="count", random_state=0).fit(X, TRAIN["classes"], groups=groups),
    }


def made(models: dict[str, Any], name: str, data: dict[str, Any], *, truth: bool = False) -> tuple[Report, str]:
    groups = None if name == "pu" else data["groups"]
    known = data["class" if name == "classes" else "truth"] if truth else None
    report = report_of(models[name], data["X"], data[name], groups, truth=known)
    return report, unescape(render(report)).replace("\u00a0", " ")


def badges(page: str) -> set[str]:
    return set(re.findall(r'<p class="badge"><span class="unseen">Data: </span>([^<]*)</p>', page))


@pytest.mark.parametrize("name", ["llp", "mil", "pu", "classes"])
def test_three_verdicts_with_words_and_signs(models: dict[str, Any], name: str) -> None:
    for data, source, badge in ((TRAIN, "held-out", "held-out"), (NEW, "new", "new data")):
        report, page = made(models, name, data)
        assert report.source == source
        assert [one.about for one in report.verdicts] == ["skill", "calibration", "rows"]
        assert report.verdicts[0].mark in ("good", "doubtful")
        assert report.verdicts[2].mark == "unknown"
        assert page.index("Can I trust this?") < page.index('class="metrics"')
        for one in report.verdicts:
            assert one.sentence.replace("\u00a0", " ") in page
            assert f'<li class="{one.mark}"><span class="sign"' in page
        assert f'<span class="badge">{badge}</span>' in page
        assert badge in badges(page)
        assert badges(page) <= {badge, "training data and held-out", "training data"}
        of_rows, page = made(models, name, data, truth=True)
        assert of_rows.verdicts[2].mark in ("good", "doubtful")
        assert f"{source} rows" in of_rows.verdicts[2].sentence


def test_tiles_have_the_gain_and_the_majority(models: dict[str, Any]) -> None:
    for name in ("llp", "mil", "classes"):
        report, page = made(models, name, NEW)
        value = {metric.name: metric.value for metric in report.metrics}["Gain over no features"]
        assert value == pytest.approx(report.verdicts[0].numbers["gains"]["no features"]["mean"])
        assert ("majority baseline" in page) == (name == "mil")


def test_counts_are_true_and_not_known_if_the_model_was_not_told(models: dict[str, Any]) -> None:
    assert "Expected and known counts" in made(models, "llp", NEW)[1]
    assert "Expected and true counts" in made(models, "llp", NEW, truth=True)[1]
    assert "Expected and true counts" in made(models, "mil", NEW, truth=True)[1]
    assert "known counts" not in made(models, "mil", NEW, truth=True)[1]


def test_no_validation_where_there_is_none() -> None:
    network = kofn.Network(epochs=2, validation_fraction=0.0)
    model = kofn.LLPClassifier(network, label="count", random_state=0).fit(
        TRAIN["X"], TRAIN["llp"], groups=TRAIN["groups"]
    )
    report = report_of(model, TRAIN["X"], TRAIN["llp"], TRAIN["groups"])
    page = render(report)
    assert report.source == "training"
    assert {one.mark for one in report.verdicts} == {"unknown"}
    assert "alidation" not in page
    assert "Nothing was held out" in page
    assert badges(page) == {"training data"}


def test_of_a_long_table_some_bags_are_drawn_and_all_are_measured(models: dict[str, Any]) -> None:
    for name in ("llp", "mil", "classes"):
        arguments = models[name], NEW["X"], NEW[name], NEW["groups"]
        whole, some = report_of(*arguments), report_of(*arguments, limit=42)
        assert (whole.metrics, whole.verdicts) == (some.metrics, some.verdicts)
        table = some.bags or some.parts[0].bags
        assert table is not None
        assert len(table) == 8
        assert "all 60 bags (300 rows)" in some.scope
        assert "8 of them, drawn at random (seed 0)" in some.scope
        assert some.scope in unescape(render(some))


def test_a_verdict_is_escaped() -> None:
    page = render(Report("T", "llp", verdicts=[Verdict("rows", "bad", "<b>worse</b>")], scope="<i>all</i>"))
    assert "&lt;b&gt;worse" in page
    assert "<i>all" not in page


@pytest.mark.parametrize("data", [TRAIN, NEW], ids=["held-out", "new"])
@pytest.mark.parametrize("name", ["llp", "classes"])
def test_coverage_has_one_value(models: dict[str, Any], name: str, data: dict[str, Any]) -> None:
    report, page = made(models, name, data)
    (measured,) = (metric.value for metric in report.metrics if "coverage of 90" in metric.name)
    assert measured == pytest.approx(report.verdicts[1].numbers["held"], abs=1e-12)
    if report.calibration is not None:
        drawn = dict(zip(report.calibration.levels, report.calibration.coverage, strict=True))[0.9]
        assert measured == pytest.approx(drawn, abs=1e-12)
    shown = percent(float(measured)).replace("\u00a0", " ")
    assert f"the randomised coverage of 90 % intervals of the counts is {shown}" in page
    assert "surplus" not in page


@pytest.mark.parametrize("name", ["llp", "mil", "pu"])
def test_auc_has_one_value_and_is_never_in_percent(models: dict[str, Any], name: str) -> None:
    report, page = made(models, name, NEW, truth=True)
    by_name = {metric.name: metric for metric in report.metrics}
    numbers = report.verdicts[2].numbers
    shown = score_text(float(by_name["AUC"].value))
    assert by_name["AUC"].value == pytest.approx(numbers["auc"]["mean"], abs=1e-12)
    assert f"AUC {shown} (" in page
    assert f'<dd class="value">{shown}</dd>' in page
    if name != "pu":
        assert by_name["AUC within bags"].value == pytest.approx(numbers["auc_within_bags"]["mean"], abs=1e-12)
    for metric in report.metrics:
        assert metric.form == "score" or "AUC" not in metric.name


def test_cross_validation_is_called_so(models: dict[str, Any]) -> None:
    assert "the 60 bags (300 rows) in 5-fold cross-validation" in made(models, "llp", TRAIN)[1]
    part = kofn.LLPClassifier(kofn.Network(epochs=2), label="count", random_state=0)
    X, groups = TRAIN["X"], TRAIN["groups"]
    of_part = made({"llp": part.fit(X, TRAIN["llp"], groups=groups)}, "llp", TRAIN)[1]
    assert "that were held out" in of_part
    assert "cross-validation" not in of_part
