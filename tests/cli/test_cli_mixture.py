"""kofn fit pu without a prior: the mixture is estimated, and everything that shows the model says how."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_calls import fine

from kofn.tables import TableModel, write_table

SHARE = 0.4  # of the unlabelled
TALK = "some positives look like no negative"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Users of which some are known to have converted, and a model of them."""
    path = tmp_path_factory.mktemp("mixture")
    rng = np.random.default_rng(0)
    truth = np.repeat([True, False], [300 + int(800 * SHARE), int(800 * (1 - SHARE))])
    x = rng.normal(size=len(truth)) + np.where(truth, 1.5, -1.5)
    columns = {"x": x, "z": rng.normal(size=len(x)), "known": (np.arange(len(x)) < 300).astype(int)}
    write_table(path / "users.csv", [columns])
    fine("fit", "pu", path / "users.csv", "--label", "known", "--learner", "linear", "-o", path / "model")
    return path


def test_json_has_the_estimate_its_interval_and_the_assumption(folder: Path) -> None:
    told = json.loads(fine("info", folder / "model", "--json"))
    mixture = told["mixture"]
    assert mixture["estimated"] is True
    assert mixture["value"] == pytest.approx(SHARE, abs=0.08)
    assert mixture["interval"][0] < SHARE < mixture["interval"][1]
    assert mixture["level"] == 0.9
    assert TALK in mixture["assumes"]
    rows = told["validation"]["sensitivity"]
    assert [row["mixture"] for row in rows] == [mixture["interval"][0], mixture["value"], mixture["interval"][1]]
    assert rows[0]["predicted_positive_share"] < rows[2]["predicted_positive_share"]
    assert TableModel.load(folder / "model").validation["sensitivity"] == rows


def test_the_screen_says_it(folder: Path) -> None:
    shown = fine("info", folder / "model")
    assert "known (300 labelled positives, 800 unlabelled)" in shown
    assert "of the unlabelled rows are positive, 90 % interval" in shown
    assert f"estimated, which assumes that {TALK}" in shown
    assert "If the mixture were another" in shown
    assert "rank correlation" in shown


def test_evaluate_has_the_interval(folder: Path) -> None:
    measured = json.loads(fine("evaluate", folder / "model", folder / "users.csv", "--json"))
    assert measured["mixture_low"] < measured["mixture"] < measured["mixture_high"]


@pytest.mark.parametrize("data", [[], ["users.csv"]], ids=["model", "data"])
def test_the_report_has_the_table(folder: Path, data: list[str], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    fine("report", folder / "model", *(folder / name for name in data), "-o", page)
    text = page.read_text()
    assert "If the mixture were another" in text
    assert text.count("<td>") >= 12
    if data:
        assert TALK in text


def test_what_is_given_is_shown_as_given(folder: Path, tmp_path: Path) -> None:
    said = ["--label", "known", "--learner", "linear", "--mixture", "0.35", "-o", tmp_path / "given"]
    shown = fine("fit", "pu", folder / "users.csv", *said)
    assert "0.35 of the unlabelled rows are positive, as given" in shown
    assert "If the mixture were another" not in shown
    told = json.loads(fine("info", tmp_path / "given", "--json"))
    assert told["mixture"] == {"value": 0.35, "estimated": False}
    assert "sensitivity" not in told["validation"]


def test_a_network_is_not_fitted_three_times(folder: Path, tmp_path: Path) -> None:
    said = ["--learner", "network", "--set", "epochs=2", "--set", "hidden=none"]
    told = json.loads(
        fine("fit", "pu", folder / "users.csv", "--label", "known", *said, "-o", tmp_path / "network", "--json")
    )
    assert told["mixture"]["estimated"]
    assert "sensitivity" not in told["validation"]


def test_cross_validation_estimates_once(folder: Path) -> None:
    said = ["--label", "known", "--learner", "linear", "--folds", "2", "--json"]
    found = json.loads(fine("cv", "pu", folder / "users.csv", *said))
    mixtures = {fold["linear"]["mixture"] for fold in found["folds"]}
    assert len(mixtures) == 1
    assert mixtures.pop() == pytest.approx(SHARE, abs=0.08)
