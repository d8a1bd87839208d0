"""What analysts asked for: bags of several columns, posteriors, categories never seen, names that are kept."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import table_data
from cli_calls import kofn

from kofn.estimators import MILClassifier, PUClassifier
from kofn.learners import Linear, Network
from kofn.tables import (
    Columns,
    TableFile,
    TableWarning,
    evaluate_bags,
    fit_table,
    predict_bags,
    predict_rows,
    report_table,
)

pytestmark = pytest.mark.filterwarnings("ignore:this fit is no better")
LINEAR = Linear(l2=0.1)


def test_several_columns_make_the_bag(tmp_path: Path) -> None:
    frame = table_data.make_table()
    number = frame["bag"].str[1:].astype(int)
    frame["district"], frame["box"] = "d" + (number // 10).astype(str), number % 10
    path = table_data.write(frame, tmp_path / "t.csv")
    one, two = table_data.fit_counts(path), table_data.fit_counts(path, bag="district,box")
    assert two.bag == "district,box"
    x = frame[["x", "colour"]]
    np.testing.assert_array_equal(one.estimator.decision_function(x), two.estimator.decision_function(x))
    two.save(tmp_path / "m")
    assert kofn("predict", tmp_path / "m", path, "--bag", "district,box", "-o", tmp_path / "o.csv").exit_code == 0
    predict_bags(one, path, tmp_path / "one.csv", bag="bag")
    found, expected = pd.read_csv(tmp_path / "o.csv"), pd.read_csv(tmp_path / "one.csv")
    assert list(found)[:3] == ["district", "box", "size"]
    names = "b" + found["district"].str[1:] + found["box"].astype(str)
    assert (names.str[1:].astype(int) == expected["bag"].str[1:].astype(int)).all()
    pd.testing.assert_frame_equal(found.iloc[:, 2:], expected.iloc[:, 1:])
    assert evaluate_bags(two, path) == evaluate_bags(one, path)
    report = report_table(two, path)
    assert report.bags is not None
    assert report.bags.names[0] == f"{frame['district'][0]}, {frame['box'][0]}"
    first = frame.index[frame["bag"] == "b007"][0]
    frame.loc[first, "count"] += 1
    with pytest.raises(ValueError, match=r"bag \('d0', '7'\) has two labels"):
        table_data.fit_counts(table_data.write(frame, path), bag="district,box")
    frame["box"] = frame["box"].astype(object)
    frame.loc[4, "box"] = None
    with pytest.raises(ValueError, match="column 'box': row 5 has no bag"):
        table_data.fit_counts(table_data.write(frame, path), bag="district,box")


@pytest.mark.parametrize("case", ["count", "mil"])
def test_posteriors_of_rows(tmp_path: Path, case: str) -> None:
    frame = table_data.make_table()
    path = table_data.write(frame, tmp_path / "t.csv")
    if case == "count":
        model = table_data.fit_counts(path)
    else:
        model = fit_table(path, MILClassifier(LINEAR, random_state=0), bag="bag", label="some", features="x")
    model.save(tmp_path / "m")
    result = kofn("predict", tmp_path / "m", path, "--posterior", "--keep", "bag", "-o", tmp_path / "o.csv", "--json")
    assert json.loads(result.stdout) == {"output": str(tmp_path / "o.csv"), "rows": 240}
    rows = pd.read_csv(tmp_path / "o.csv")
    assert list(rows) == ["bag", "probability", "posterior"]
    label = frame["count" if case == "count" else "some"]
    expected = model.estimator.posterior_proba(frame, label.to_numpy(), frame["bag"].to_numpy())[:, 1]
    np.testing.assert_allclose(rows["posterior"], expected, atol=1e-9)
    if case == "count":
        sums = rows.groupby("bag")["posterior"].sum()
        np.testing.assert_allclose(sums, frame.groupby("bag")["count"].first(), atol=1e-6)
    frame.drop(columns="bag").to_csv(tmp_path / "none.csv", index=False)
    result = kofn("predict", tmp_path / "m", tmp_path / "none.csv", "--posterior", "-o", tmp_path / "new.csv")
    assert result.exit_code == 2
    assert "none.csv has no column 'bag'" in result.stderr
    assert not (tmp_path / "new.csv").exists()


def test_posteriors_need_labels_of_bags(tmp_path: Path) -> None:
    path = table_data.write(table_data.make_table(), tmp_path / "t.csv")
    pu = fit_table(path, PUClassifier(LINEAR, mixture=0.3, random_state=0), label="labelled", features="x")
    with pytest.raises(ValueError, match=r"`posterior` needs labels of bags.*positive and unlabelled rows has none"):
        predict_rows(pu, path, tmp_path / "o.csv", posterior=True)
    attention = MILClassifier(Network(epochs=1), loss="attention", random_state=0)
    model = fit_table(path, attention, bag="bag", label="some", features="x")
    with pytest.raises(ValueError, match="a model of attention has none"):
        predict_rows(model, path, tmp_path / "o.csv", posterior=True)


@pytest.mark.parametrize("name", ["size", "mean", "low", "high", "at_least_one"])
def test_a_bag_column_never_loses_its_names(tmp_path: Path, name: str) -> None:
    frame = table_data.make_table()[["bag", "x", "count"]].rename(columns={"bag": name})
    path = table_data.write(frame, tmp_path / "t.csv")
    model = table_data.fit_counts(path, bag=name, features="x")
    with pytest.raises(ValueError, match=rf"column '{name}' cannot be repeated beside size.*would be lost. Rename it"):
        predict_bags(model, path, tmp_path / "o.csv", bag=name)
    assert not (tmp_path / "o.csv").exists()


def test_a_kept_column_is_never_lost(tmp_path: Path) -> None:
    frame = table_data.make_table().assign(probability=0.5, posterior=1)
    path = table_data.write(frame, tmp_path / "t.csv")
    table_data.fit_counts(path).save(tmp_path / "m")
    result = kofn("predict", tmp_path / "m", path, "--keep", "bag,probability", "-o", tmp_path / "o.csv")
    assert result.exit_code == 2
    assert "column 'probability' cannot be repeated beside probability: one of them would be lost" in result.stderr
    assert kofn("predict", tmp_path / "m", path, "--keep", "bag,posterior", "-o", tmp_path / "o.csv").exit_code == 0
    assert list(pd.read_csv(tmp_path / "o.csv")) == ["bag", "posterior", "probability"]
    result = kofn("predict", tmp_path / "m", path, "--keep", "posterior", "--posterior", "-o", tmp_path / "p.csv")
    assert result.exit_code == 2


def test_categories_never_seen_in_training_are_told_of(tmp_path: Path) -> None:
    frame = table_data.make_table()
    path = table_data.write(frame, tmp_path / "t.csv")
    table_data.fit_counts(path).save(tmp_path / "m")
    frame.loc[3:5, "colour"] = "blue"
    frame.loc[9, "colour"] = None  # missing is missing, not new
    new = table_data.write(frame, tmp_path / "new.csv")
    words = (
        "new.csv has categories that were never seen in training, and are treated as missing: column 'colour' in 3 "
        "rows, such as 'blue'."
    )
    outputs = {"predict": ["-o", tmp_path / "o.csv"], "evaluate": [], "report": ["-o", tmp_path / "o.html"]}
    for command, more in outputs.items():
        result = kofn(command, tmp_path / "m", new, *more)
        assert result.exit_code == 0, result.stderr
        assert words in result.stderr
        assert len(result.stderr.splitlines()) == 1
        assert kofn(command, tmp_path / "m", path, *more, *(["--force"] if more else [])).stderr == ""


def test_one_column_cannot_be_two_things(tmp_path: Path) -> None:
    path = table_data.write(table_data.make_table(), tmp_path / "t.csv")
    result = kofn("fit", "llp", path, "--bag", "count", "--label", "count", "-o", tmp_path / "m")
    assert result.exit_code == 2
    assert "column 'count' is named both --bag and --label. Name different columns." in result.stderr
    with pytest.raises(ValueError, match="column 'count' is named both `label` and `copies`"):
        table_data.fit_counts(path, copies="count")
    with pytest.raises(ValueError, match="column 'bag' is named twice in `bag`"):
        table_data.fit_counts(path, bag="bag,bag")


def test_a_missing_header_is_told_of(tmp_path: Path) -> None:
    frame = table_data.make_table()[["bag", "x", "proportion"]].dropna()
    frame = frame[frame.groupby("bag")["x"].transform("size") == 4]
    frame.to_csv(tmp_path / "t.csv", index=False, header=False)
    first = (tmp_path / "t.csv").read_text().splitlines()[0].split(",")
    # Only if the bag that loses its first row still has a possible share; else it is an error that names the bag.
    said = ["fit", "llp", tmp_path / "t.csv", "--bag", first[0], "--label", first[2], "--rounding", "nearest"]
    result = kofn(*said, "--learner", "linear", "--set", "l2=1", "-o", tmp_path / "m")
    assert result.exit_code == 0, result.stderr
    assert "t.csv seems to have no header: its columns are called" in result.stderr


@pytest.mark.parametrize("names", [["0", "1", "2"], ["2019", "2020", "2021"], ["x", "7", "y"], ["a", "b", "c"]])
def test_columns_may_be_called_by_ascending_numbers(tmp_path: Path, names: list[str]) -> None:
    frame = table_data.make_table()[["bag", "x", "count"]].set_axis(names, axis=1)
    table_data.fit_counts(table_data.write(frame, tmp_path / "t.csv"), bag=names[0], label=names[2], features=names[1])


@pytest.mark.parametrize("label", ["count", "proportion", "some"])
def test_the_truth_among_the_features_is_told_of(tmp_path: Path, label: str) -> None:
    frame = table_data.make_table()
    truth = frame["truth"] == "pos"
    frame = frame[["bag", "x", label]].assign(voted=truth.astype(int), stayed=np.where(truth, "a", "b"))
    path = table_data.write(frame, tmp_path / "t.csv")
    task = "mil" if label == "some" else "llp"
    said = ["--bag", "bag", "--label", label, "--learner", "linear", "--set", "l2=1"]
    result = kofn("fit", task, path, *said, "-o", tmp_path / "m")
    assert result.exit_code == 0
    told = [line for line in result.stderr.splitlines() if "whose counts in the bags are the labels" in line]
    assert "column 'voted'" in told[0]
    assert "leave it out: --drop voted" in told[0]
    if task == "llp":
        assert "column 'stayed'" in told[1]
    result = kofn("fit", task, path, *said, "--drop", "voted,stayed", "-o", tmp_path / "n")
    assert "whose counts" not in result.stderr


def test_a_bag_that_is_cut_is_not_told_to_round(tmp_path: Path) -> None:
    path = table_data.write(table_data.make_table().iloc[:-1], tmp_path / "t.csv")
    result = kofn("fit", "llp", path, "--bag", "bag", "--label", "proportion", "--features", "x", "-o", tmp_path / "m")
    assert result.exit_code == 2
    missing, rounding = result.stderr.index("Are instances of the bag missing?"), result.stderr.index("--rounding")
    assert missing < rounding


def test_a_report_of_unlabelled_rows_with_their_truth(tmp_path: Path) -> None:
    frame = table_data.make_table()
    data = table_data.write(frame, tmp_path / "t.csv")
    model = fit_table(data, PUClassifier(LINEAR, mixture=0.3, random_state=0), label="labelled", features="x")
    model.save(tmp_path / "m")
    test = table_data.write(frame.assign(labelled=np.nan), tmp_path / "test.csv")
    result = kofn("report", tmp_path / "m", test, "--truth", "truth", "--positive", "pos", "-o", tmp_path / "o.html")
    assert result.exit_code == 0, result.stderr
    report = report_table(model, test, truth="truth", positive="pos")
    values = {metric.name: metric.value for metric in report.metrics}
    right = (model.estimator.predict(frame) == 1) == (frame["truth"] == "pos")
    assert values["Accuracy"] == pytest.approx(right.mean())
    assert "Recall of labelled positives" not in values
    found = evaluate_bags(model, test)
    assert found["mean_probability"] == pytest.approx(model.estimator.predict_proba(frame)[:, 1].mean())


def test_a_header_alone_is_no_text(tmp_path: Path) -> None:
    frame = table_data.make_table()
    table_data.fit_counts(table_data.write(frame, tmp_path / "t.csv")).save(tmp_path / "m")
    header = table_data.write(frame.iloc[:0], tmp_path / "header.csv")
    for command in (["predict", "-o", tmp_path / "o.csv"], ["evaluate"], ["report", "-o", tmp_path / "o.html"]):
        result = kofn(command[0], tmp_path / "m", header, *command[1:])
        assert result.exit_code == 2
        assert "header.csv has a header and no rows. There is nothing to read." in result.stderr


def test_no_name_at_all(tmp_path: Path) -> None:
    path = table_data.write(table_data.make_table(), tmp_path / "t.csv")
    for label in ("", " , "):
        with pytest.raises(ValueError, match=rf"t.csv has no column '{label}'"):
            table_data.fit_counts(path, label=label)


@pytest.mark.slow
def test_thousands_of_columns(tmp_path: Path) -> None:
    """Looked up, learned and encoded in 0.3 s of this machine; a column at a time, and from a list, it was 7 s."""
    names = [f"c{i}" for i in range(20_000)]
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(8, len(names))), columns=names)
    (tmp_path / "t.csv").write_text(",".join(names) + "\n")
    start = time.process_time()
    TableFile(tmp_path / "t.csv").require_columns(*names)
    encoded = Columns().learn(frame)(frame)
    assert time.process_time() - start < 2.5
    np.testing.assert_array_equal(encoded, frame.to_numpy(np.float32))


def test_unseen_categories_are_a_warning_in_python(tmp_path: Path) -> None:
    frame = table_data.make_table()
    model = table_data.fit_counts(table_data.write(frame, tmp_path / "t.csv"))
    new = table_data.write(frame.assign(colour="blue"), tmp_path / "new.parquet")
    with pytest.warns(TableWarning, match="column 'colour' in 240 rows, such as 'blue'"):
        predict_rows(model, new, tmp_path / "o.csv")
