"""Fits with a bootstrap, predictions with intervals, and effects, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
import table_data
from cli_calls import fine, kofn

from kofn.tables import TableModel


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("intervals")
    table = folder / "t.csv"
    table_data.write(table_data.make_table(), table)
    said = ["--bag", "bag", "--label", "count", "--features", "x,colour", "--learner", "linear", "--set", "l2=0.01"]
    fine("fit", "llp", table, *said, "--bootstrap", 3, "--jobs", 1, "-o", folder / "model")
    return folder


def test_a_model_tells_of_its_bootstrap(folder: Path) -> None:
    assert json.loads(fine("info", folder / "model", "--json"))["bootstrap"] == 3
    assert "llp, linear, loss count, 3 bootstrap fits" in fine("info", folder / "model")


def test_a_bag_effect(folder: Path, tmp_path: Path) -> None:
    said = ["--bag", "bag", "--label", "count", "--features", "x,colour", "--learner", "linear", "--set", "l2=0.01"]
    fine("fit", "llp", folder / "t.csv", *said, "--bag-effect", "0.7", "-o", tmp_path / "given")
    assert "loss count, bag effect 0.7" in fine("info", tmp_path / "given")
    found = json.loads(
        fine("fit", "llp", folder / "t.csv", *said, "--bag-effect", "fit", "-o", tmp_path / "m", "--json")
    )
    assert found["bag_effect"] >= 0
    assert found["bag_effect_error"] > 0
    widths = []
    for model in (folder / "model", tmp_path / "given"):
        fine("predict", model, folder / "t.csv", "--bag", "bag", "-o", tmp_path / "bags.csv", "--force")
        bags = pd.read_csv(tmp_path / "bags.csv")
        widths.append((bags["high"] - bags["low"]).mean())
    assert widths[1] > widths[0]
    fine("report", tmp_path / "given", folder / "t.csv", "-o", tmp_path / "r.html")
    assert "Bag effect" in (tmp_path / "r.html").read_text()
    wrong = kofn("fit", "llp", folder / "t.csv", *said, "--bag-effect", "some", "-o", tmp_path / "wrong")
    assert wrong.exit_code == 2
    assert "--bag-effect must be fit" in wrong.output


@pytest.mark.parametrize("task", ["mil", "pu"])
def test_other_tasks(folder: Path, tmp_path: Path, task: str) -> None:
    said = {"mil": ["--bag", "bag", "--label", "some"], "pu": ["--label", "labelled", "--mixture", "0.3"]}[task]
    said += ["--features", "x,colour", "--learner", "trees", "--set", "rounds=3"]
    told = fine("fit", task, folder / "t.csv", *said, "--bootstrap", 2, "--jobs", 1, "-o", tmp_path / "m", "--json")
    assert json.loads(told)["bootstrap"] == 2
    fine("predict", tmp_path / "m", folder / "t.csv", "--interval", 0.9, "-o", tmp_path / "rows.csv")
    rows = pd.read_csv(tmp_path / "rows.csv")
    assert ((rows["low"] <= rows["probability"]) & (rows["probability"] <= rows["high"])).all()
    if task == "mil":  # "at least one" does not tell how many: counts are not given as areas
        fine("predict", tmp_path / "m", folder / "t.csv", "--bag", "bag", "-o", tmp_path / "bags.csv")
        bags, model = pd.read_csv(tmp_path / "bags.csv"), TableModel.load(tmp_path / "m")
        assert list(bags) == ["bag", "size", "at_least_one"]
        table = pd.read_csv(folder / "t.csv")
        expected = model.estimator.predict_bag_proba(table[["x", "colour"]], table["bag"])[:, 1]
        assert bags["at_least_one"].tolist() == pytest.approx(expected.tolist())
        wrong = kofn("predict", tmp_path / "m", folder / "t.csv", "--bag", "bag", "--interval", 0.9, "-o", "no.csv")
        assert wrong.exit_code == 2
        assert "labels say whether there is a positive row, not how many" in " ".join(wrong.output.split())


def test_predictions(folder: Path, tmp_path: Path) -> None:
    fine("predict", folder / "model", folder / "t.csv", "--interval", 0.8, "--keep", "bag", "-o", tmp_path / "rows.csv")
    assert list(pd.read_csv(tmp_path / "rows.csv")) == ["bag", "probability", "low", "high"]
    fine("predict", folder / "model", folder / "t.csv", "--interval", 0.8, "--bag", "bag", "-o", tmp_path / "bags.csv")
    bags = pd.read_csv(tmp_path / "bags.csv")
    assert ((bags["mean_low"] < bags["mean"]) & (bags["mean"] < bags["mean_high"])).all()


def test_a_posterior_has_no_interval_of_another_quantity_beside_it(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "rows.csv"
    wrong = kofn("predict", folder / "model", folder / "t.csv", "--posterior", "--interval", 0.9, "-o", target)
    assert wrong.exit_code == 2
    assert "--interval is of the probability, which does not know the result of the row's bag" in " ".join(
        wrong.output.split()
    )
    assert not target.exists()


def test_an_effect_on_the_screen(folder: Path) -> None:
    lines = fine("effect", folder / "model", folder / "t.csv", "--by", "colour").splitlines()
    assert lines[0] == "Mean probability, with 90 % confidence intervals"
    assert "ignores each bag's own result" in lines[1]
    assert lines[2].split() == ["colour", "rows", "probability", "low", "high"]
    assert [line.split()[0] for line in lines[3:]] == ["green", "red"]
    assert len({len(line) for line in lines[2:]}) == 1  # numbers stand below each other


def test_an_effect_in_files_and_as_json(folder: Path, tmp_path: Path) -> None:
    said = [
        "--by",
        "colour",
        "--by",
        "truth",
        "--interval",
        0.5,
        "-o",
        tmp_path / "e.csv",
        "--figure",
        tmp_path / "e.svg",
    ]
    told = json.loads(fine("effect", folder / "model", folder / "t.csv", *said, "--json"))
    assert "ignores each bag's own result" in told["averaged"]
    assert (told["by"], told["level"]) == (["colour", "truth"], 0.5)
    table = pd.read_csv(tmp_path / "e.csv")
    assert list(table) == ["colour", "truth", "rows", "probability", "low", "high"] == list(told["groups"][0])
    assert [group["rows"] for group in told["groups"]] == table["rows"].tolist()
    assert (tmp_path / "e.svg").read_text().startswith("<?xml")
    for again in (said[:-2], [*said[:-4], *said[-2:]]):
        result = kofn("effect", folder / "model", folder / "t.csv", *again)
        assert result.exit_code == 2
        assert f"exists. Add --force to replace it, or name another file with {again[-2]}." in result.stderr
    fine("effect", folder / "model", folder / "t.csv", *said, "--force")


def test_long_effects_are_cut_on_the_screen(folder: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(folder / "t.csv").assign(name=lambda t: [f"\x1b[31mname {i}" for i in range(len(t))])
    frame.to_csv(tmp_path / "t.csv", index=False)
    told = fine("effect", folder / "model", tmp_path / "t.csv", "--by", "name")
    assert told.splitlines()[-1] == "... and 180 more groups. Write all of them with -o."
    assert "\x1b" not in told
    result = kofn("effect", folder / "model", tmp_path / "t.csv", "--by", "name", "--figure", tmp_path / "e.svg")
    assert result.exit_code == 2
    assert "--figure shows up to 40 groups in up to 8 colours; there are 240 in 1." in result.stderr
    assert "write a table with --output" in result.stderr


def test_without_a_bootstrap(folder: Path, tmp_path: Path) -> None:
    said = ["--bag", "bag", "--label", "count", "--features", "x", "--learner", "linear", "--set", "l2=0.01"]
    fine("fit", "llp", folder / "t.csv", *said, "-o", tmp_path / "m")
    told = fine("effect", tmp_path / "m", folder / "t.csv", "--by", "colour")
    assert told.startswith("Mean probability. For confidence intervals, fit with --bootstrap.\n")
    result = kofn("effect", tmp_path / "m", folder / "t.csv", "--by", "colour", "--interval", 0.9)
    assert result.exit_code == 2
    assert "--bootstrap must be a number of fits, such as 50, for a model to have intervals" in result.stderr


def test_an_effect_on_several_classes_is_a_table_of_each(folder: Path, tmp_path: Path) -> None:
    lines = ["bag,colour,a,b,c"]
    for bag in range(12):
        lines += [f"{bag},{colour},{bag % 3},{2 - bag % 3},1" for colour in ("red", "blue", "blue")]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    said = ("--bag", "bag", "--label", "a,b,c", "--label-kind", "classes", "--learner", "linear", "--bootstrap", "2")
    fine("fit", "llp", tmp_path / "t.csv", *said, "-o", tmp_path / "m")
    told = fine("effect", tmp_path / "m", tmp_path / "t.csv", "--by", "colour", "-o", tmp_path / "e.csv").splitlines()
    assert told[0] == "Mean probability, with 90 % confidence intervals"
    assert [told[place] for place in (3, 8, 13)] == ["a", "b", "c"]
    assert told[4].split() == ["colour", "rows", "probability", "low", "high"]
    written = (tmp_path / "e.csv").read_text().splitlines()
    assert [told[place].split()[2] for place in (6, 11, 16)] == [
        f"{float(value):.4f}" for value in written[2].split(",")[2::3]
    ]
