"""The commands as a user types them, in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import table_data
from typer.testing import CliRunner, Result

from kofn.cli import app
from kofn.estimators import LLPClassifier, MILClassifier
from kofn.tables import TableModel

QUICK = ["--features", "x,colour", "--epochs", "3", "--hidden", "8", "--lr", "0.05"]


def kofn(*args: object) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def fine(*args: object) -> str:
    result = kofn(*args)
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    table_data.write(table_data.make_table(), folder / "t.csv")
    table_data.write(table_data.make_table(seed=1), folder / "test.parquet")
    fine("fit", "llp", folder / "t.csv", "--bag", "bag", "--label", "count", *QUICK, "-o", folder / "model")
    return folder


FITS: dict[str, list[str]] = {
    "proportion": ["llp", "--bag", "bag", "--label", "proportion"],
    "interval": ["llp", "--bag", "bag", "--label", "low,high"],
    "noisy": ["llp", "--bag", "bag", "--label", "noisy", "--noise", "laplace:0.5"],
    "baseline": ["llp", "--bag", "bag", "--label", "count", "--loss", "proportion"],
    "mil": ["mil", "--bag", "bag", "--label", "some", "--loss", "max"],
    "pu": ["pu", "--label", "labelled", "--mixture", "0.3"],
}
MEASURES = {
    "proportion": {"log_likelihood", "log_likelihood_baseline", "expected_count_error", "calibration_error"},
    "interval": {"log_likelihood", "expected_count_in_interval"},
    "noisy": {"log_likelihood", "distance_to_observed"},
    "baseline": {"log_likelihood", "log_likelihood_baseline", "expected_count_error", "calibration_error"},
    "mil": {"bag_accuracy"},
    "pu": {"mixture", "predicted_positive_share", "mean_probability", "recall"},
}


@pytest.mark.parametrize("case", FITS)
def test_fit_of_every_kind(folder: Path, tmp_path: Path, case: str) -> None:
    task, *options = FITS[case]
    target = tmp_path / "m"
    told = json.loads(fine("fit", task, folder / "t.csv", *options, *QUICK, "-o", target, "--json"))
    assert told["task"] == task
    assert told["features"] == ["x", "x is missing", "colour=green", "colour=red"]
    assert len(told["history"]) == told["epochs"] == 3
    assert MEASURES[case] <= set(told["validation"])
    assert json.loads(fine("info", target, "--json")) == told
    assert [path.name for path in tmp_path.iterdir()] == ["m"]  # no checkpoint is left
    measured = json.loads(fine("evaluate", target, folder / "test.parquet", "--json"))
    assert MEASURES[case] <= set(measured)


def test_options_reach_the_estimator(folder: Path, tmp_path: Path) -> None:
    said = "--hidden 6,4 --dropout 0.1 --epochs 5 --batch-size 7 --lr 0.02 --schedule cosine --weight-decay 0.01 --l1 0.001 --patience 2"
    said += " --valid-fraction 0.25 --seed 3 --loss mutual-contamination --rounding nearest --features x --device cpu"
    fine("fit", "llp", folder / "t.csv", "--bag", "bag", "--label", "proportion", *said.split(), "-o", tmp_path / "m")
    estimator = LLPClassifier.load(tmp_path / "m")
    expected: dict[str, Any] = {
        "hidden": (6, 4), "dropout": 0.1, "epochs": 5, "batch_size": 7, "lr": 0.02, "schedule": "cosine", "weight_decay": 0.01, "l1": 0.001,
        "patience": 2, "validation_fraction": 0.25, "random_state": 3, "loss": "mutual-contamination",
        "rounding": "nearest", "label": "proportion",
    }  # fmt: skip
    kept = estimator.get_params() | {"hidden": tuple(estimator.hidden)}
    assert {name: kept[name] for name in expected} == expected


def test_start_of_large_bags(folder: Path, tmp_path: Path) -> None:
    said = ["fit", "mil", folder / "t.csv", "--bag", "bag", "--label", "some", *QUICK, "-o", tmp_path / "m", "--start"]
    assert "--start must be a number between 0 and 1, or bags; got 'half'" in kofn(*said, "half").stderr
    assert "`start` must be a probability above 0 and below 1" in kofn(*said, "2").stderr
    fine(*said, "0.2")
    assert MILClassifier.load(tmp_path / "m").start == 0.2
    (tmp_path / "m").unlink()
    fine(*said, "bags", "--schedule", "one-cycle")
    assert MILClassifier.load(tmp_path / "m").start == "bags"


def test_linear_model(folder: Path, tmp_path: Path) -> None:
    said = ["--features", "x", "--epochs", "1", "--hidden", "none"]
    fine("fit", "llp", folder / "t.csv", "--bag", "bag", "--label", "count", *said, "-o", tmp_path / "m")
    weights = list(LLPClassifier.load(tmp_path / "m").network_.parameters())
    assert sum(w.numel() for w in weights) == 3  # x, x is missing, bias


def test_screen_after_a_fit(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "m"
    screen = fine("fit", "llp", folder / "t.csv", "--bag", "bag", "--label", "count", *QUICK, "-o", target)
    for part in ("240 rows, 60 bags of 4", "4 from 2 columns (1 numeric: x; 1 text: colour)", "training loss", "kept",
                 "held-out data, 6 bags", "log-likelihood", "calibration error",
                 f"kofn predict {target} {folder / 't.csv'} --bag bag -o predictions.csv"):  # fmt: skip
        assert part in screen
    assert fine("info", target).splitlines()[1:] == screen.rstrip().splitlines()[1:-2]


def test_same_seed_same_model(folder: Path, tmp_path: Path) -> None:
    again = ["fit", "llp", folder / "t.csv", "--bag", "bag", "--label", "count", *QUICK, "-o", tmp_path / "m"]
    fine(*again)
    fine(*again, "--quiet")  # a model may be replaced
    one, two = (TableModel.load(path).estimator for path in (folder / "model", tmp_path / "m"))
    assert one.history_ == two.history_
    fine(*again, "--seed", "1")
    assert TableModel.load(tmp_path / "m").estimator.history_ != one.history_


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_predict(folder: Path, tmp_path: Path, name: str) -> None:
    read = pd.read_csv if name.endswith("csv") else pd.read_parquet
    model, data = folder / "model", folder / "test.parquet"
    assert fine("predict", model, data, "-o", tmp_path / name) == f"{tmp_path / name}: 240 rows\n"
    rows = read(tmp_path / name)
    assert list(rows) == ["probability"]
    assert rows["probability"].between(0, 1).all()
    told = json.loads(fine("predict", model, data, "--bag", "bag", "-o", tmp_path / name, "--json"))
    assert told == {"output": str(tmp_path / name), "bags": 60}
    bags = read(tmp_path / name)
    assert list(bags) == ["bag", "size", "mean", "low", "high", "at_least_one"]
    table = table_data.make_table(seed=1).assign(probability=rows["probability"])
    expected = table.groupby("bag", sort=False)["probability"].sum()
    assert bags["bag"].tolist() == expected.index.tolist()
    assert bags["mean"].tolist() == pytest.approx(expected.tolist())
    assert (bags["low"] <= bags["mean"]).all()
    assert (bags["mean"] <= bags["high"]).all()


def test_evaluate(folder: Path) -> None:
    screen = fine("evaluate", folder / "model", folder / "test.parquet", "--truth", "truth", "--positive", "pos")
    assert "240 rows" in screen
    assert "AUC of rows" in screen
    screen = fine("evaluate", folder / "model", folder / "test.parquet", "--bag", "bag", "--label", "count")
    assert "60 bags, 240 rows" in screen
    assert "log-likelihood" in screen


def test_data(tmp_path: Path) -> None:
    names = set(json.loads(fine("data", "list", "--json")))
    assert {"adult", "digits", "colon"} <= names
    assert {line.split()[0] for line in fine("data", "list").splitlines()} == names
    told = json.loads(fine("data", "get", "breast-cancer", "--bag-size", "8", "-o", tmp_path / "t.csv", "--json"))
    table = pd.read_csv(tmp_path / "t.csv")
    assert told["rows"] == len(table)
    bags = table.groupby("bag")
    assert (bags.size() == 8).all()
    assert (bags["truth"].mean() == bags["proportion"].first()).all()
    assert (bags["proportion"].nunique() == 1).all()
    assert "64" in fine("data", "get", "digits")


@pytest.mark.parametrize(
    "command",
    ["fit llp", "fit mil", "fit pu", "predict", "evaluate", "info", "data list", "data get", ""],
    ids=lambda c: c or "kofn",
)
def test_help_has_an_example(command: str) -> None:
    text = fine(*command.split(), "--help")
    assert "Example" in text
    assert f"kofn {command}" in text


def test_version() -> None:
    assert fine("--version").startswith("kofn ")
