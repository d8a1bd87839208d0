"""The commands as a user types them, in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import table_data
from cli_calls import fine, kofn

import kofn as library
from kofn.cli._learner_options import NAMES, options_of
from kofn.estimators import LLPClassifier, MILClassifier
from kofn.tables import TableModel

FEATURES = ["--features", "x,colour"]
NETWORK = [*FEATURES, "--learner", "network", "--set", "epochs=3", "--set", "hidden=8", "--set", "lr=0.05"]
QUICK = {
    "trees": [*FEATURES, "--learner", "trees", "--set", "rounds=10"],
    "linear": [*FEATURES, "--learner", "linear", "--set", "l2=0.1", "--set", "penalties=10,1,0.3,0.1,0.03,0.01"],
    "network": NETWORK,
}
STEPS = {"trees": 10, "linear": 2, "network": 3}  # linear: the penalties 10 and 0.1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    table_data.write(table_data.make_table(), folder / "t.csv")
    table_data.write(table_data.make_table(seed=1), folder / "test.parquet")
    fine("fit", "llp", folder / "t.csv", "--bag", "bag", "--label", "count", *NETWORK, "-o", folder / "model")
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
    "proportion": {"log_likelihood", "expected_count_error", "calibration_error"},
    "interval": {"log_likelihood", "expected_count_in_interval"},
    "noisy": {"log_likelihood", "distance_to_observed"},
    "baseline": {"log_likelihood", "expected_count_error", "calibration_error"},
    "mil": {"bag_accuracy"},
    "pu": {"mixture", "predicted_positive_share", "mean_probability", "recall", "lift_at_tenth", "implied_auc"},
}


@pytest.mark.parametrize("learner", NAMES)
@pytest.mark.parametrize("case", FITS)
def test_fit_of_every_kind(folder: Path, tmp_path: Path, case: str, learner: str) -> None:
    task, *options = FITS[case]
    target = tmp_path / "m"
    told = json.loads(fine("fit", task, folder / "t.csv", *options, *QUICK[learner], "-o", target, "--json"))
    assert (told["task"], told["learner"]) == (task, learner)
    assert (told["numeric"], told["categorical"]) == (["x"], ["colour"])
    assert len(told["history"]) == told["steps"] == STEPS[learner]
    assert MEASURES[case] <= set(told["validation"])
    assert json.loads(fine("info", target, "--json")) == told
    assert [path.name for path in tmp_path.iterdir()] == ["m"]  # no checkpoint is left
    assert target.is_file()
    measured = json.loads(fine("evaluate", target, folder / "test.parquet", "--json"))
    assert MEASURES[case] | ({"log_likelihood_baseline"} if task == "llp" else set()) <= set(measured)


def test_options_reach_the_estimator(folder: Path, tmp_path: Path) -> None:
    expected: dict[str, Any] = {
        "hidden": (6, 4), "dropout": 0.1, "epochs": 5, "batch_size": 7, "lr": 0.02, "schedule": "cosine",
        "weight_decay": 0.01, "l1": 0.001, "patience": 2, "validation_fraction": 0.25, "start": 0.2,
        "standardise": False, "max_instances": None, "accumulate": 2, "precision": "float32",
    }  # fmt: skip
    written = {"hidden": "6,4", "standardise": "false", "max_instances": "none"}
    said = [f"--set={name}={written.get(name, value)}" for name, value in expected.items()]
    said += ["--learner", "network", "--features", "x", "--seed", "3", "--rounding", "nearest"]
    said += ["--loss", "mutual-contamination"]
    fine("fit", "llp", folder / "t.csv", "--bag", "bag", "--label", "proportion", *said, "-o", tmp_path / "m")
    estimator = LLPClassifier.load(tmp_path / "m")
    kept = estimator.learner.get_params() | {"hidden": tuple(estimator.learner.hidden)}
    assert {name: kept[name] for name in expected} == expected
    of_estimator = {"random_state": 3, "loss": "mutual-contamination", "rounding": "nearest", "label": "proportion"}
    assert {name: getattr(estimator, name) for name in of_estimator} == of_estimator


def test_auto_is_trees_and_a_network_for_attention(folder: Path, tmp_path: Path) -> None:
    said = ["fit", "mil", folder / "t.csv", "--bag", "bag", "--label", "some", "--features", "x", "-o", tmp_path / "m"]
    fine(*said, "--set", "rounds=4")
    assert isinstance(MILClassifier.load(tmp_path / "m").learner, library.Trees)
    fine(*said, "--force", "--loss", "attention", "--set", "epochs=1")
    assert isinstance(MILClassifier.load(tmp_path / "m").learner, library.Network)


def test_linear_model(folder: Path, tmp_path: Path) -> None:
    said = ["--features", "x", "--learner", "network", "--set", "epochs=1", "--set", "hidden=none"]
    fine("fit", "llp", folder / "t.csv", "--bag", "bag", "--label", "count", *said, "-o", tmp_path / "m")
    weights = list(LLPClassifier.load(tmp_path / "m").network_.parameters())
    assert sum(w.numel() for w in weights) == 3  # x, x is missing, bias


def test_a_fit_without_signal_warns_in_one_line(tmp_path: Path) -> None:
    noise = table_data.make_table().assign(x=np.random.default_rng(5).normal(size=240))
    data = table_data.write(noise, tmp_path / "noise.csv")
    said = ["--bag", "bag", "--label", "count", "--features", "x", "--learner", "linear"]
    result = kofn("fit", "llp", data, *said, "-o", tmp_path / "m", "--json")
    assert result.exit_code == 0
    assert result.stderr.startswith("kofn: warning: this fit is no better than a model without features: the loss")
    assert len(result.stderr.splitlines()) == 1
    told = json.loads(result.stdout)
    assert told["validation_loss"] >= told["baselines"]["no features"]
    assert kofn("cv", "llp", data, *said, "--folds", "2").stderr == ""  # where the baseline stands beside it


CROSS_VALIDATED = {
    "llp": ["--bag", "bag", "--label", "count"],
    "mil": ["--bag", "bag", "--label", "some"],
    "pu": ["--label", "labelled", "--prior", "0.5"],
}


@pytest.mark.parametrize("task", CROSS_VALIDATED)
def test_cross_validation(folder: Path, task: str) -> None:
    said = ["cv", task, folder / "t.csv", *CROSS_VALIDATED[task], *FEATURES, "--folds", "3"]
    said += ["--learner", "trees,linear,network", "--set", "rounds=5", "--set", "linear.l2=0.1", "--set", "epochs=2"]
    told = json.loads(fine(*said, "--json"))
    assert (told["task"], told["loss"], told["rows"]) == (task, "count", 240)
    assert told["bags"] == (None if task == "pu" else 60)
    methods = ["no features", "bag means", *NAMES]
    assert [list(fold) for fold in told["folds"]] == [methods] * 3
    assert list(told["summary"]) == methods
    for name in methods:
        losses = [fold[name]["loss"] for fold in told["folds"]]
        assert told["summary"][name]["loss"]["mean"] == pytest.approx(np.mean(losses))
        assert told["summary"][name]["loss"]["spread"] == pytest.approx(np.std(losses, ddof=1))
    expected = {"llp": "log_likelihood", "mil": "bag_auc", "pu": "recall"}[task]
    assert all(expected in told["summary"][name] for name in NAMES)

    heading, names, *lines = fine(*said).splitlines()
    assert heading.startswith(f"Mean loss of held-out {'rows' if task == 'pu' else 'bags'}")
    expected_names = ["no features", "bag means", *NAMES, *(f"{name} AUC" for name in NAMES if task == "mil")]
    assert names.split() == " ".join(["fold", *expected_names]).split()
    assert [line.split()[0] for line in lines] == ["1", "2", "3", "mean", "spread"]
    for line, fold in zip(lines, told["folds"], strict=False):
        assert line.split()[1:6] == [f"{fold[name]['loss']:.4f}" for name in methods]


def test_cross_validation_writes_nothing(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fine("cv", "llp", folder / "t.csv", "--bag", "bag", "--label", "count", *NETWORK, "--folds", "2")
    assert list(tmp_path.iterdir()) == []


def test_learners() -> None:
    told = json.loads(fine("learners", "--json"))
    assert list(told) == list(NAMES)
    everything = fine("learners")
    for name in NAMES:
        text = fine("learners", name)
        assert text in everything
        assert text.startswith(f"{name}: ")
        shown = [line.removeprefix("  --set ") for line in text.splitlines() if line.startswith("  --set ")]
        assert [setting.partition("=")[0] for setting in shown] == list(options_of(name)) == list(told[name]["options"])
        for setting in shown:  # what is shown can be typed, and means the default
            option, _, value = setting.partition("=")
            assert options_of(name)[option].parse(value) == options_of(name)[option].default
            assert told[name]["options"][option]["about"], f"{name} says nothing of {option}"


def test_screen_after_a_fit(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "m"
    screen = fine("fit", "llp", folder / "t.csv", "--bag", "bag", "--label", "count", *NETWORK, "-o", target)
    for part in ("240 rows, 60 bags of 4", "2 columns (1 numeric: x; 1 text: colour)", "training loss", "selected",
                 "held-out data, 6 bags", "Baseline without features", "Mean absolute count error", "Calibration error",
                 f"kofn predict {target} {folder / 't.csv'} --bag bag -o predictions.csv"):  # fmt: skip
        assert part in screen
    assert fine("info", target).splitlines()[1:] == screen.rstrip().splitlines()[1:-2]


def test_same_seed_same_model(folder: Path, tmp_path: Path) -> None:
    again = ["fit", "llp", folder / "t.csv", "--bag", "bag", "--label", "count", *NETWORK, "-o", tmp_path / "m"]
    fine(*again)
    fine(*again, "--quiet", "--force")
    one, two = (TableModel.load(path).estimator for path in (folder / "model", tmp_path / "m"))
    assert one.history_ == two.history_
    fine(*again, "--seed", "1", "--force")
    assert TableModel.load(tmp_path / "m").estimator.history_ != one.history_


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_predict(folder: Path, tmp_path: Path, name: str) -> None:
    read = pd.read_csv if name.endswith("csv") else pd.read_parquet
    model, data = folder / "model", folder / "test.parquet"
    assert fine("predict", model, data, "-o", tmp_path / name) == f"{tmp_path / name}: 240 rows\n"
    rows = read(tmp_path / name)
    assert list(rows) == ["probability"]
    assert rows["probability"].between(0, 1).all()
    told = json.loads(fine("predict", model, data, "--bag", "bag", "--force", "-o", tmp_path / name, "--json"))
    assert told == {"output": str(tmp_path / name), "bags": 60}
    bags = read(tmp_path / name)
    assert list(bags) == ["bag", "size", "mean", "low", "high", "at_least_one"]
    table = table_data.make_table(seed=1).assign(probability=rows["probability"])
    expected = table.groupby("bag", sort=False)["probability"].sum()
    assert bags["bag"].tolist() == expected.index.tolist()
    assert bags["mean"].tolist() == pytest.approx(expected.tolist())
    for line in bags.itertuples():
        law = np.ones(1)
        for p in table.loc[table["bag"] == line.bag, "probability"]:
            law = np.convolve(law, [1 - p, p])
        assert line.at_least_one == pytest.approx(1 - law[0])
        assert law[line.low : line.high + 1].sum() >= 0.9
        assert max(law[: line.low].sum(), law[line.high + 1 :].sum()) <= 0.05


def test_evaluate(folder: Path) -> None:
    screen = fine("evaluate", folder / "model", folder / "test.parquet", "--truth", "truth", "--positive", "pos")
    assert "240 rows" in screen
    assert "Balanced accuracy" in screen
    screen = fine("evaluate", folder / "model", folder / "test.parquet", "--bag", "bag", "--label", "count")
    assert "60 bags, 240 rows" in screen
    assert "Log-likelihood" in screen


def test_evaluate_says_whether_positives_look_selected_at_random(folder: Path, tmp_path: Path) -> None:
    fit = ["fit", "pu", folder / "t.csv", "--label", "labelled", "--mixture", "0.3", *QUICK["linear"]]
    fine(*fit, "--loss", "nnpu", "--surrogate", "logistic", "-o", tmp_path / "m")
    told = json.loads(fine("evaluate", tmp_path / "m", folder / "test.parquet", "--json"))
    assert "selected at random" in told["selection"]
    assert fine("evaluate", tmp_path / "m", folder / "test.parquet").splitlines()[-1] == told["selection"]
    assert library.PUClassifier.load(tmp_path / "m").surrogate == "logistic"


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
    [
        "fit llp",
        "fit mil",
        "fit pu",
        "cv llp",
        "cv mil",
        "cv pu",
        "learners",
        "predict",
        "evaluate",
        "info",
        "data list",
        "data get",
        "",
    ],
    ids=lambda c: c or "kofn",
)
def test_help_has_an_example(command: str) -> None:
    text = fine(*command.split(), "--help")
    assert "Example" in text
    assert f"kofn {command}" in text


def test_version() -> None:
    assert fine("--version").startswith("kofn ")
