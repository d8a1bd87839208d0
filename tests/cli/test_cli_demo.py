"""kofn demo: what it shows, what it leaves, and that what it recommends works."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from cli_calls import fine, kofn

from kofn import demo
from kofn.report import Report
from kofn.tables import TableModel

QUICK = ["--learner", "linear,trees", "--set", "l2=0.1", "--set", "rounds=3"]
MODELS = [f"{task}-{learner}" for task in demo.TASKS for learner in ("linear", "trees")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("demo") / "made here"
    (folder.parent / "told.json").write_text(fine("demo", "-q", "-o", folder, *QUICK, "--json"))
    return folder


@pytest.fixture
def told(folder: Path) -> Any:
    return json.loads((folder.parent / "told.json").read_text())


@pytest.mark.slow
def test_every_method_has_a_score_where_it_applies(told: Any) -> None:
    assert told["tasks"] == ["proportions", "at least one", "unlabelled"]
    assert list(told["methods"])[:3] == ["count loss, linear", "count loss, trees", "proportion loss, linear"]
    assert "proportion loss, trees" not in told["methods"]
    for name, scores in told["methods"].items():
        losses, _ = demo.LOSSES[name.split(",")[0]]
        assert [score is not None for score in scores] == [task in losses for task in demo.TASKS]
        assert all(0.5 < score <= 1 for score in scores if score is not None), name


@pytest.mark.slow
def test_what_it_recommends_works(folder: Path, told: Any) -> None:
    assert len(told["next"]) == 4
    for command in told["next"]:
        program, *words = shlex.split(command)
        assert program == "kofn"
        assert fine(*words)
    assert "Can I trust" in (folder / "llp.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_command_opens_its_models(folder: Path, tmp_path: Path, name: str) -> None:
    task, learner = name.split("-")
    model, table = folder / name, folder / f"{task}-test.csv"
    assert f"{task}, {learner}, loss count" in fine("info", model)
    fine("predict", model, table, "-o", tmp_path / "rows.csv")
    assert len(pd.read_csv(tmp_path / "rows.csv")) == len(pd.read_csv(table))
    assert "AUC" in fine("evaluate", model, table, "--truth", "truth")
    fine("report", model, table, "-o", tmp_path / "page.html")


@pytest.mark.slow
def test_truth_is_not_learned_from_and_tests_are_of_other_digits(folder: Path) -> None:
    for task in demo.TASKS:
        model = TableModel.load(folder / f"{task}-trees")
        assert len(model.columns.names) == 64
        train, test = (pd.read_csv(folder / f"{task}{part}.csv") for part in ("", "-test"))
        assert list(train) == list(test)
        pixels = model.columns.names
        assert not set(map(tuple, train[pixels].to_numpy())) & set(map(tuple, test[pixels].to_numpy()))


@pytest.mark.slow
def test_the_page_has_the_comparison_and_verdicts_on_each_task(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    assert demo.TITLE in page
    assert "mutual contamination, linear" in page
    for _, title in demo.TASKS.values():
        assert title in page
    assert page.count("Can I trust") >= len(demo.TASKS)


@pytest.mark.slow
def test_counts_teach_nearly_what_labels_do(tmp_path: Path) -> None:
    """What the demo is there to show, with the learner that its page is about."""
    found = json.loads(fine("demo", "-q", "-o", tmp_path, "--learner", "network", "--json"))["methods"]
    for name, scores in found.items():
        slack = 0.03 if name.startswith("every instance labelled") else 0.002
        for ours, other in zip(found["count loss, network"], scores, strict=True):
            assert other is None or ours >= other - slack, name


def test_files_are_not_replaced_and_it_says_so_before_it_trains(tmp_path: Path) -> None:
    for name in ("report.html", "llp.csv"):
        (tmp_path / name).write_text("mine")
        found = kofn("demo", "-q", "-o", tmp_path)
        assert found.exit_code == 2
        assert f"{name} exists. Add --force" in found.stderr
        assert [path.name for path in tmp_path.iterdir()] == [name]
        (tmp_path / name).unlink()


def test_a_folder_where_a_model_should_be(tmp_path: Path) -> None:
    (tmp_path / "mil-trees").mkdir()
    found = kofn("demo", "-o", tmp_path, "-q")
    assert found.exit_code == 2
    assert "mil-trees must be free or a kofn model; it is a folder or a device, and a model is one file" in found.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mil-trees"]


def test_comparison_needs_no_more_than_its_fits() -> None:
    table = demo.compare([demo.Fitted("count loss", "trees", task, 0.9) for task in ("llp", "pu")])
    assert [(method.name, method.scores, method.role) for method in table.methods] == [
        ("count loss, trees", [0.9, None, 0.9], "count")
    ]
    assert isinstance(Report("", comparison=table), Report)
