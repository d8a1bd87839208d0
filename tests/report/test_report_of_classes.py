"""A report of several classes: a chapter for each, and a confusion matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from class_cases import class_task
from typer.testing import CliRunner

import kofn
from kofn.cli import app
from kofn.report import Confusion, Report, render, report_of
from kofn.report._class_chapters import class_codes

TASK = class_task(60)


@pytest.fixture(scope="module")
def model() -> Any:
    estimator = kofn.LLPClassifier(kofn.Linear(l2=1e-3), label="count", random_state=0)
    return estimator.fit(TASK.X, TASK.counts, groups=TASK.groups)


def test_a_chapter_for_each_class(model: Any) -> None:
    report = report_of(model, TASK.X, TASK.counts, TASK.groups, truth=TASK.truth)
    assert [part.title for part in report.parts] == [f"Class {c} against the rest" for c in range(3)]
    laws = model.predict_bag_proba(TASK.X, TASK.groups)
    for code, part in enumerate(report.parts):
        assert part.bags is not None
        assert part.bags.known is not None
        np.testing.assert_array_equal(part.bags.known, TASK.counts[::6, code])
        np.testing.assert_allclose(part.bags.expected, laws[:, code] @ np.arange(7))
        assert part.calibration is not None
        for one in part.distributions:
            np.testing.assert_allclose(one.after, laws[int(one.name), code])
            assert one.before is not None
            expected = one.before @ np.arange(7)
            assert expected == pytest.approx(6 * model.rate_[code])
    assert report.confusion is not None
    assert report.confusion.counts.sum() == 360
    assert np.trace(report.confusion.counts) == (model.predict(TASK.X) == TASK.truth).sum()
    assert {metric.name for metric in report.metrics} >= {"Accuracy", "Mean absolute count error"}
    page = render(report)
    assert "True and predicted classes" in page
    assert "how many of each bag are of each class." in page
    assert ("Loss", "joint") in report.facts


def test_unknown_counts_and_nothing_but_rows(model: Any) -> None:
    counts = TASK.counts.copy()
    counts[:6, 1:] = np.nan
    report = report_of(model, TASK.X, counts, TASK.groups)
    first, second, _ = report.parts
    assert first.calibration is not None
    assert second.calibration is None
    assert second.bags is not None
    assert second.bags.known is not None
    assert np.isnan(second.bags.known).sum() == 1
    assert "Every bag" in render(report)
    bare = report_of(model, TASK.X)
    assert not bare.parts
    assert bare.confusion is None
    assert "Training" in render(bare)


def test_names_of_classes_are_text() -> None:
    names = ["<b>", "a & b", "c"]
    page = render(Report("Names", "llp", confusion=Confusion(names, np.array([[1, 2, 0], [0, 0, 0], [1, 1, 5]]))))
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    assert "a &amp; b" in page


def test_truth_by_name_or_number() -> None:
    names = np.array(["ant", "bee", "cat"])
    assert class_codes(["bee", "ant"], names).tolist() == [1, 0]
    assert class_codes([2, 0], names).tolist() == [2, 0]
    assert class_codes([20, 10], np.array([10, 20, 30])).tolist() == [1, 0]
    with pytest.raises(ValueError, match=r"`truth` must be one of the classes \['ant', 'bee', 'cat'\]; got .*dog"):
        class_codes(["dog"], names)


def test_report_from_the_command_line(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame(TASK.X, columns=list("wxyz")).assign(ward=TASK.groups)
    for code, name in enumerate(("votes_a", "votes_b", "votes_c")):
        frame[name] = TASK.counts[:, code].astype(int)
    frame["vote"] = np.array(["a", "b", "c"])[TASK.truth]
    frame.to_csv(tmp_path / "votes.csv", index=False)
    model, data, page = (str(tmp_path / name) for name in ("model", "votes.csv", "page.html"))
    fit = f"fit llp {data} --bag ward --label votes_a,votes_b,votes_c --drop vote --learner linear --set l2=0.001"
    for command in (f"{fit} -o {model}", f"report {model} {data} --truth vote -o {page}"):
        result = CliRunner().invoke(app, command.split())
        assert result.exit_code == 0, result.output
    text = Path(page).read_text()
    for name in ("votes_a", "votes_b", "votes_c"):
        assert f"Class {name} against the rest" in text
