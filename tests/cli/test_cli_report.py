"""kofn report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from kofn.cli._commands import app
from kofn.tables import TableModel, report_table


def run(*arguments: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture(scope="module")
def votes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A table with bags, labels and truth, and a model trained on it."""
    folder = tmp_path_factory.mktemp("report")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"county": np.repeat(np.arange(40), 5), "age": rng.normal(size=200)})
    frame["<b>party</b>"] = np.where(rng.random(200) < 0.5, "left", "right")
    frame["voted"] = (frame["age"] > 0).astype(int)
    frame["share"] = frame.groupby("county")["voted"].transform("mean")
    data, model = folder / "votes.csv", folder / "model"
    frame.to_csv(data, index=False)
    said = ["--bag", "county", "--label", "share", "--drop", "voted", "--learner", "network", "--set", "epochs=3"]
    run("fit", "llp", data, *said, "-q", "-o", model)
    return data, model


def test_report_with_and_without_data(votes: tuple[Path, Path], tmp_path: Path) -> None:
    data, model = votes
    assert "wrote" in run("report", model, "-o", tmp_path / "short.html")
    run("report", model, data, "--truth", "voted", "--title", "First & last", "-o", tmp_path / "long.html")
    short, long = ((tmp_path / name).read_text() for name in ("short.html", "long.html"))
    assert "votes.csv: 200 rows in 40 bags" in short
    assert "<svg" in short
    assert "First &amp; last" in long
    assert "<b>party</b>" not in long
    assert len(long) > len(short)
    assert not list(tmp_path.glob("*.part*"))


def test_bags_of_a_long_table_are_drawn_at_random_and_measured_in_full(
    votes: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data, model = votes
    frame = pd.read_csv(data)
    frame.assign(age=frame["age"] + 1.0).to_csv(tmp_path / "new.csv", index=False)
    whole = report_table(TableModel.load(model), tmp_path / "new.csv")
    monkeypatch.setattr("kofn.tables._report_table.LIMIT", 23)
    report = report_table(TableModel.load(model), tmp_path / "new.csv")
    assert report.bags is not None
    assert whole.bags is not None
    assert report.bags.sizes.tolist() == [5, 5, 5, 5]
    assert list(report.bags.names) != list(whole.bags.names)[:4]
    assert list(report.bags.names) == [name for name in whole.bags.names if name in report.bags.names]
    assert (report.metrics, report.verdicts) == (whole.metrics, whole.verdicts)
    assert "all 40 bags (200 rows)" in report.scope
    assert "show 4 of them, drawn at random (seed 0)" in report.scope
    place = list(whole.bags.names).index(report.bags.names[1])
    assert report.bags.expected[1] == whole.bags.expected[place]


def test_the_training_table_is_judged_by_what_was_held_out(votes: tuple[Path, Path], tmp_path: Path) -> None:
    data, path = votes
    model = TableModel.load(path)
    report = report_table(model, data)
    assert report.bags is not None
    assert report.source == "held-out"
    assert len(report.bags) == len(model.estimator.held_out_) == 4
    frame = pd.read_csv(data)
    frame.to_parquet(tmp_path / "same.parquet")
    assert report_table(model, tmp_path / "same.parquet").source == "held-out"
    frame[100:].to_csv(tmp_path / "half.csv", index=False)
    assert report_table(model, tmp_path / "half.csv").source == "training"
    frame.drop(columns=["county", "share"]).to_csv(tmp_path / "rows.csv", index=False)
    assert report_table(model, tmp_path / "rows.csv").source == "training"
    frame.assign(age=frame["age"] + 1.0).to_csv(tmp_path / "new.csv", index=False)
    assert report_table(model, tmp_path / "new.csv").source == "new"


def test_report_without_bags_in_the_data(votes: tuple[Path, Path], tmp_path: Path) -> None:
    data, model = votes
    pd.read_csv(data).drop(columns=["county", "share"]).to_csv(tmp_path / "rows.csv", index=False)
    assert report_table(TableModel.load(model), tmp_path / "rows.csv").bags is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--truth", "voted"], "--truth names a column of DATA"),
        (["missing.csv"], "missing.csv"),
        (["-o", "."], "is a folder"),
    ],
    ids=["truth", "missing", "folder"],
)
def test_bad_input(votes: tuple[Path, Path], arguments: list[str], words: str, tmp_path: Path) -> None:
    assert words in run("report", votes[1], *arguments, code=2)


@pytest.mark.parametrize("learner", ["trees", "linear", "network"])
def test_steps_are_counted_from_one_everywhere(votes: tuple[Path, Path], tmp_path: Path, learner: str) -> None:
    data, model = votes[0], tmp_path / "m"
    more = ["--set", "epochs=4"] if learner == "network" else []
    screen = run(
        "fit", "llp", data, "--bag", "county", "--label", "share", "--drop", "voted", "--learner", learner, *more,
        "-o", model,
    )  # fmt: skip
    told = json.loads(run("info", model, "--json"))
    step = {"trees": "round", "linear": "penalty", "network": "epoch"}[learner]
    assert [entry[step] for entry in told["history"]] == list(range(1, told["steps"] + 1))
    (kept,) = (line for line in screen.splitlines() if line.endswith("selected"))
    best = told["history"][told["best_step"] - 1]
    assert float(kept.split()[0]) == pytest.approx(best["l2" if learner == "linear" else step], rel=1e-5)
    assert told["validation_loss"] == pytest.approx(best["val_loss"], rel=1e-6)
    run("report", model, "-o", tmp_path / "page.html")
    named = f"step {told['best_step']} of {told['steps']})" if learner == "linear" else f"{step} {told['best_step']}"
    assert f"{named} selected" in (tmp_path / "page.html").read_text()
