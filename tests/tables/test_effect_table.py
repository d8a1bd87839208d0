"""The mean probability of groups of rows, and its figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import table_data

import kofn
from kofn.estimators import FitWarning, _count_mixture
from kofn.tables import Effect, TableFile, TableModel, draw_effect, effect_of, fit_table, predict_bags, predict_rows

LINEAR = kofn.Linear(l2=0.01)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("effect")
    table_data.write(table_data.make_table(), folder / "t.csv")
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> TableModel:
    estimator = kofn.LLPClassifier(LINEAR, bootstrap=5, random_state=0)
    return fit_table(folder / "t.csv", estimator, bag="bag", label="count", features="x,colour")


def test_means_are_those_of_the_rows(folder: Path, model: TableModel, tmp_path: Path) -> None:
    found = effect_of(model, folder / "t.csv", by=["colour", "truth"])
    predict_rows(model, folder / "t.csv", tmp_path / "rows.csv", keep="colour,truth")
    rows = pd.read_csv(tmp_path / "rows.csv").groupby(["colour", "truth"])["probability"].agg(["mean", "size"])
    assert found.groups == rows.index.tolist()
    np.testing.assert_allclose(found.probability[:, 0], rows["mean"], rtol=1e-9)
    assert found.rows.tolist() == rows["size"].tolist()


def test_intervals_are_those_of_the_estimator(folder: Path, model: TableModel) -> None:
    frame = pd.read_csv(folder / "t.csv")
    for level in (None, 0.5):
        found = effect_of(model, folder / "t.csv", by=["colour"], interval=level)
        colours = frame["colour"].to_numpy()
        low, high = model.estimator.predict_interval(frame, level or 0.9, groups=colours, mean=True)
        order = [list(dict.fromkeys(colours)).index(name) for (name,) in found.groups]
        assert found.level == (level or 0.9)
        assert found.low is not None
        assert found.high is not None
        np.testing.assert_allclose(found.low[:, 0], low[order], rtol=1e-9)
        np.testing.assert_allclose(found.high[:, 0], high[order], rtol=1e-9)


def test_intervals_of_trees_warn_that_they_are_too_narrow(folder: Path) -> None:
    estimator = kofn.LLPClassifier(kofn.Trees(rounds=3), bootstrap=3, random_state=0)
    trees = fit_table(folder / "t.csv", estimator, bag="bag", label="count", features="x,colour")
    with pytest.warns(FitWarning, match="90 % intervals of trees held 35 %"):
        effect_of(trees, folder / "t.csv", by=["colour"])


def test_an_effect_does_not_know_the_results_of_bags(folder: Path, model: TableModel, tmp_path: Path) -> None:
    frame = pd.read_csv(folder / "t.csv")
    table_data.write(frame.assign(count=0), tmp_path / "none.csv")
    found, of_none = (effect_of(model, path, by=["bag"]) for path in (folder / "t.csv", tmp_path / "none.csv"))
    np.testing.assert_array_equal(found.probability, of_none.probability)
    assert "ignores each bag's own result" in found.averaged
    for path in (folder / "t.csv", tmp_path / "none.csv"):
        predict_rows(model, path, tmp_path / "rows.csv", posterior=True)
        known = pd.read_csv(path)["count"].sum() / 4  # repeated on the rows of bags of four
        assert pd.read_csv(tmp_path / "rows.csv")["posterior"].sum() == pytest.approx(known)


def test_without_bootstrap_there_are_no_intervals(folder: Path) -> None:
    plain = fit_table(
        folder / "t.csv", kofn.LLPClassifier(LINEAR, random_state=0), bag="bag", label="count", features="x,colour"
    )
    found = effect_of(plain, folder / "t.csv", by=["colour"])
    assert (found.low, found.high, found.level) == (None, None, None)
    assert list(found.columns()) == ["colour", "rows", "probability"]
    for ask in (
        lambda: effect_of(plain, folder / "t.csv", by=["colour"], interval=0.9),
        lambda: predict_rows(plain, folder / "t.csv", folder / "no.csv", interval=0.9),
        lambda: predict_bags(plain, folder / "t.csv", folder / "no.csv", bag="bag", interval=0.9),
    ):
        with pytest.raises(ValueError, match=r"`bootstrap` must be a number of fits, such as 50"):
            ask()
    assert not (folder / "no.csv").exists()


def test_bags_are_predicted_some_at_a_time(
    folder: Path, model: TableModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All bags of 208,000 people by 50 models at once were killed."""
    frame = pd.read_csv(folder / "t.csv").assign(people=lambda t: 1 + 40 * (t["bag"] == "b007"))
    table_data.write(frame, tmp_path / "many.csv")
    asked: dict[str, Any] = {"bag": "bag", "copies": "people", "interval": 0.9}
    predict_bags(model, tmp_path / "many.csv", tmp_path / "whole.csv", **asked)
    monkeypatch.setattr(_count_mixture, "ENTRIES", 100)  # of 5 models and bags of four
    sizes = [
        part.sizes.tolist() for part in _count_mixture.in_parts(kofn.Bags.from_sizes([4] * 7 + [164] + [4] * 9), 5)
    ]
    assert max(sum(part) for part in sizes if 164 not in part) == 20
    assert [size for part in sizes for size in part] == [4] * 7 + [164] + [4] * 9
    predict_bags(model, tmp_path / "many.csv", tmp_path / "parts.csv", **asked)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "parts.csv"), pd.read_csv(tmp_path / "whole.csv"))


def test_copies_weigh(folder: Path, model: TableModel, tmp_path: Path) -> None:
    frame = pd.read_csv(folder / "t.csv").assign(people=lambda t: 1 + 2 * (t["truth"] == "pos"))
    many = frame.loc[frame.index.repeat(frame["people"])]
    frame.to_csv(tmp_path / "people.csv", index=False)
    many.to_csv(tmp_path / "many.csv", index=False)
    one = effect_of(model, tmp_path / "people.csv", by=["colour"], copies="people")
    other = effect_of(model, tmp_path / "many.csv", by=["colour"])
    assert one.rows.tolist() == other.rows.tolist()
    np.testing.assert_allclose(one.probability, other.probability, rtol=1e-9)


def test_rows_and_bags_with_intervals(folder: Path, model: TableModel, tmp_path: Path) -> None:
    frame = pd.read_csv(folder / "t.csv")
    predict_rows(model, folder / "t.csv", tmp_path / "rows.csv", interval=0.8)
    rows = pd.read_csv(tmp_path / "rows.csv")
    low, high = model.estimator.predict_interval(frame, 0.8)
    np.testing.assert_allclose(
        rows[["probability", "low", "high"]].T, [model.estimator.predict_proba(frame)[:, 1], low, high]
    )
    predict_bags(model, folder / "t.csv", tmp_path / "bags.csv", bag="bag", interval=0.8)
    bags = pd.read_csv(tmp_path / "bags.csv")
    assert list(bags) == ["bag", "size", "mean", "low", "high", "at_least_one", "mean_low", "mean_high"]
    low, high = model.estimator.predict_interval(frame, 0.8, groups=frame["bag"])
    np.testing.assert_allclose(bags[["mean_low", "mean_high"]].T, [low, high])
    table = model.estimator.predict_bag_proba(frame, frame["bag"])
    np.testing.assert_allclose(bags["mean"], (table * np.arange(5)).sum(1))
    np.testing.assert_allclose(bags["at_least_one"], 1 - table[:, 0])


def test_several_classes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    kind, bag = rng.integers(0, 3, 240), np.repeat(np.arange(30), 8)
    counts = np.eye(3, dtype=int)[kind].reshape(30, 8, 3).sum(1)[bag]
    frame = pd.DataFrame(
        {"bag": bag, "a": counts[:, 0], "b": counts[:, 1], "c": counts[:, 2], "x": kind + rng.normal(size=240)}
    )
    path = table_data.write(frame, tmp_path / "t.csv")
    estimator = kofn.LLPClassifier(LINEAR, bootstrap=3, random_state=0)
    model = fit_table(path, estimator, bag="bag", label="a,b,c", label_kind="classes")
    found = effect_of(model, path, by=["x"])
    np.testing.assert_allclose(found.probability.sum(1), 1)
    assert [name for name in found.columns() if name.startswith("low")] == ["low_a", "low_b", "low_c"]
    draw_effect(found, tmp_path / "effect.svg")
    predict_rows(model, path, tmp_path / "rows.csv", interval=0.9)
    assert TableFile(tmp_path / "rows.csv").columns == [
        f"{what}_{c}" for what in ("probability", "low", "high") for c in "abc"
    ]
    predict_bags(model, path, tmp_path / "bags.csv", bag="bag", interval=0.9)
    assert {"mean_a", "mean_low_a", "mean_high_c"} <= set(TableFile(tmp_path / "bags.csv").columns)


def effect(groups: list[tuple[str, ...]], by: list[str]) -> Effect:
    share = np.linspace(0.1, 0.9, len(groups))[:, None]
    return Effect(by, groups, np.arange(len(groups)), ["1"], share, share - 0.05, share + 0.05, 0.9)


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_figures(tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"effect{suffix}"
    draw_effect(effect([("a", "x"), ("a", "y"), ("b", "y")], ["first", "second"]), target)
    again = target.read_bytes()
    assert again.startswith(b"<?xml" if suffix == ".svg" else b"\x89PNG")
    draw_effect(effect([("a", "x"), ("a", "y"), ("b", "y")], ["first", "second"]), target)
    assert target.read_bytes() == again  # the same picture, byte for byte


def test_a_figure_shows_names_and_does_not_obey_them(tmp_path: Path) -> None:
    names = ["<script>alert(1)</script>", "$\\frac{a}{b}$", "a\nb\x1b[31m", "=1+1", "x" * 100]
    draw_effect(effect([(name,) for name in names], ["<b>"]), tmp_path / "effect.svg")
    texts = {node.text for node in ElementTree.parse(tmp_path / "effect.svg").iter() if node.text}
    assert {
        "<script>alert(1)</script>",
        "$\\frac{a}{b}$",
        "=1+1",
        "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}[31m",
    } <= texts
    assert "script" not in {node.tag.rpartition("}")[2] for node in ElementTree.parse(tmp_path / "effect.svg").iter()}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (effect([(str(i),) for i in range(41)], ["a"]), "up to 40 groups"),
        (effect([("a", str(i)) for i in range(9)], ["a", "b"]), "up to 8 colours"),
        (effect([("a", "b", "c")], ["a", "b", "c"]), "groups by one column, or by two"),
    ],
)
def test_what_cannot_be_drawn(tmp_path: Path, found: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        draw_effect(found, tmp_path / "effect.svg")
    assert not list(tmp_path.iterdir())


def test_bad_requests(folder: Path, model: TableModel, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must end in \.svg or \.png"):
        draw_effect(effect([("a",)], ["a"]), tmp_path / "effect.pdf")
    with pytest.raises(ValueError, match="has no column 'nowhere'"):
        effect_of(model, folder / "t.csv", by=["nowhere"])
    with pytest.raises(ValueError, match="`by` must name a column"):
        effect_of(model, folder / "t.csv", by=[])
    with pytest.raises(ValueError, match=r"column 'low' cannot stand beside"):
        effect_of(model, folder / "t.csv", by=["low"])
    with pytest.raises(ValueError, match=r"`interval` must be a probability above 0 and below 1; got 1"):
        effect_of(model, folder / "t.csv", by=["colour"], interval=1.0)
