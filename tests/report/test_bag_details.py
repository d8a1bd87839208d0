"""Details of bags: the library's numbers, in JSON that cannot leave its element, within limits."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from report_cases import EVIL, full

import kofn
from kofn.bags import Bags
from kofn.counts import CountDistribution
from kofn.report import RowTable, render, report_of
from kofn.report._bag_details import shown_rows
from kofn.report._detail_json import bag_address, details_json
from kofn.report._row_table import MOST_CELLS, MOST_COLUMNS, row_table
from kofn.report._surprise import listed_bags, odds_text, tail_bits

pytestmark = pytest.mark.filterwarnings("ignore:this fit is no better")

TREES = kofn.Trees(rounds=5)


def embedded(report: Any) -> dict[str, Any]:
    """What the page's script reads."""
    page = render(report)
    text = page.partition('id="bag-data">')[2].partition("</script>")[0]
    data: dict[str, Any] = json.loads(text)
    return data


def law_of(bag: dict[str, Any], size: int) -> np.ndarray[Any, Any]:
    found = np.zeros(size + 1)
    found[bag["first"] : bag["first"] + len(bag["distribution"])] = bag["distribution"]
    return found


@pytest.fixture(scope="module")
def data() -> tuple[pd.DataFrame, Any, Any, Any]:
    """Rows, bags of 2 to 9 that lie in no order, counts, and the true classes."""
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat([f"bag {i}" for i in range(40)], rng.integers(2, 10, 40)))
    X = pd.DataFrame({"width": rng.normal(size=len(groups)), "colour": rng.choice(["red", "blue"], len(groups))})
    truth = (X["width"] + (X["colour"] == "red") > 0.7).to_numpy()
    return X, groups, pd.Series(truth).groupby(groups).transform("sum").to_numpy(), truth


def test_llp_numbers_are_the_librarys(data: Any) -> None:
    X, groups, counts, truth = data
    model = kofn.LLPClassifier(TREES, label="count", random_state=0).fit(X, counts, groups=groups)
    found = embedded(report_of(model, X, counts, groups, truth=truth))
    (chapter,) = found["chapters"]
    laws, posterior, prior = (
        model.predict_bag_proba(X, groups),
        model.posterior_proba(X, counts, groups),
        model.predict_proba(X),
    )
    names = list(dict.fromkeys(groups))
    assert [bag["name"] for bag in chapter["bags"]] == names
    (table,) = found["tables"]
    width = table["values"][table["columns"].index("width")]
    for place, bag in enumerate(chapter["bags"]):
        size = int((groups == bag["name"]).sum())
        np.testing.assert_allclose(law_of(bag, size), laws[place, : size + 1], atol=1e-6)
        rows = [int(np.abs(X["width"] - width[row]).argmin()) for row in bag["rows"]]
        assert sorted(rows) == np.flatnonzero(groups == bag["name"]).tolist()
        np.testing.assert_allclose(bag["probability"], prior[rows, 1], atol=1e-6)
        np.testing.assert_allclose(bag["posterior"], posterior[rows, 1], atol=1e-6)
        assert sum(bag["posterior"]) == pytest.approx(bag["known"], abs=1e-5)
        assert bag["probability"] == sorted(bag["probability"], reverse=True)
        assert bag["truth"] == truth[rows].astype(int).tolist()
        assert bag["label"] == f"{bag['known']:g} positives"
        assert bag["bounds"] == [bag["known"]] * 2


def test_mil_and_pu_numbers_are_the_librarys(data: Any) -> None:
    X, groups, counts, truth = data
    y = (counts > 0).astype(int)
    model = kofn.MILClassifier(TREES, random_state=0).fit(X, y, groups=groups)
    report = report_of(model, X, y, groups)
    (chapter,) = embedded(report)["chapters"]
    posterior, bag_proba = model.posterior_proba(X, y, groups)[:, 1], model.predict_bag_proba(X, groups)
    assert report.bags is not None
    assert report.bags.surprise is not None
    for place, bag in enumerate(chapter["bags"]):
        mine = groups == bag["name"]
        np.testing.assert_allclose(sorted(bag["posterior"]), sorted(posterior[mine]), atol=1e-6)
        positive = bool(y[mine][0])
        assert bag["bounds"] == ([1, int(mine.sum())] if positive else [0, 0])
        assert report.bags.surprise[place] == pytest.approx(-np.log2(bag_proba[place, int(positive)]), abs=1e-6)
    seen = kofn.PUClassifier(TREES, mixture=0.3, random_state=0).fit(X, np.where(truth & (counts > 2), 1, 0))
    (chapter,) = embedded(report_of(seen, X, groups=groups, truth=truth))["chapters"]
    assert {bag["posterior"] for bag in chapter["bags"]} == {None}
    assert len(chapter["bags"]) == 40
    assert report_of(seen, X).details is None


def test_classes_share_their_rows_and_have_joint_posteriors(data: Any) -> None:
    X, groups, _, truth = data
    codes = np.where(truth, 1 + (X["colour"] == "red").to_numpy(), 0)
    Y = pd.DataFrame(
        {name: pd.Series(codes == code).groupby(groups).transform("sum") for code, name in enumerate("abc")}
    )
    model = kofn.LLPClassifier(TREES, label="count", random_state=0).fit(X, Y, groups=groups)
    found = embedded(report_of(model, X, Y, groups, truth=np.array(list("abc"))[codes]))
    assert len(found["tables"]) == 1
    assert [chapter["prefix"] for chapter in found["chapters"]] == ["part1-", "part2-", "part3-"]
    posterior, laws = model.posterior_proba(X, Y, groups), model.predict_bag_proba(X, groups)
    for code, chapter in enumerate(found["chapters"]):
        assert chapter["positive"] == f"class {'abc'[code]}"
        for place, bag in enumerate(chapter["bags"]):
            mine = np.flatnonzero(groups == bag["name"])
            np.testing.assert_allclose(law_of(bag, len(mine)), laws[place, code, : len(mine) + 1], atol=1e-6)
            np.testing.assert_allclose(bag["posterior"], posterior[mine, code], atol=1e-6)
            assert bag["truth"] == (codes[mine] == code).astype(int).tolist()


@pytest.mark.parametrize("kind", ["interval", "noisy", "spread", "unlabelled"])
def test_labels_of_every_kind(data: Any, kind: str) -> None:
    X, groups, counts, _ = data
    sizes = pd.Series(groups).groupby(groups).transform("size").to_numpy()
    options: dict[str, Any] = {
        "interval": ({"label": "interval"}, np.stack([np.maximum(counts - 1, 0), counts], 1)),
        "noisy": ({"label": "count", "noise": "laplace:1"}, counts + 0.3),
        "spread": ({"rounding": "spread"}, np.round(counts / sizes, 1)),
        "unlabelled": ({"label": "count"}, counts),
    }
    more, y = options[kind]
    model = kofn.LLPClassifier(TREES, random_state=0, **more).fit(X, y, groups=groups)
    report = report_of(model, X, None if kind == "unlabelled" else y, groups)
    assert report.bags is not None
    (chapter,) = embedded(report)["chapters"]
    bag = chapter["bags"][0]
    if kind == "unlabelled":
        assert report.bags.surprise is None
        assert (bag["posterior"], bag["bounds"], bag["surprise"]) == (None, None, "")
        return
    assert report.bags.surprise is not None
    assert np.isfinite(report.bags.surprise).all()
    mine = groups == bag["name"]
    np.testing.assert_allclose(
        sorted(bag["posterior"]), sorted(model.posterior_proba(X, y, groups)[mine, 1]), atol=1e-6
    )
    if kind == "noisy":
        assert bag["bounds"] is None
        assert "noise included" in report.bags.surprise_meaning
    if kind == "interval":
        assert bag["bounds"] == y[mine][0].tolist()


def test_copies_of_a_row_are_one_line() -> None:
    X = pd.DataFrame({"age": np.repeat([20.0, 30.0, 60.0, 70.0], 6), "box": np.tile(np.arange(6), 4)})
    copies = np.tile([1, 2, 3], 8)
    y = pd.Series((X["age"] > 50) * copies).groupby(X["box"]).transform("sum").to_numpy()
    model = kofn.LLPClassifier("linear", label="count", random_state=0)
    model.fit(X[["age"]], y, groups=X["box"], copies=copies)
    found = embedded(report_of(model, X[["age"]], y, X["box"], copies=copies))
    bag = found["chapters"][0]["bags"][1]
    assert len(bag["rows"]) == 4
    assert bag["copies"] == [2] * 4
    assert bag["size"] == 8
    given = model.posterior_proba(X[["age"]], y, X["box"], copies)[X["box"] == 1, 1]
    np.testing.assert_allclose(sorted(bag["posterior"]), sorted(given), atol=1e-6)


def test_surprise_is_a_tail_that_does_not_grow_with_the_bag() -> None:
    for size in (10, 1000):
        dist = CountDistribution(torch.zeros(size, dtype=torch.float64))
        middle = torch.tensor(size // 2)
        assert tail_bits(dist, middle, middle) == 0
    dist = CountDistribution(torch.zeros(1, 10, dtype=torch.float64))
    low, high = torch.tensor([8]), torch.tensor([9])
    assert tail_bits(dist, low, high)[0] == pytest.approx(-np.log2(2 * 56 / 1024))
    assert tail_bits(dist, torch.tensor([0]), torch.tensor([10]))[0] == 0
    sure = CountDistribution(torch.full((1, 2), torch.inf, dtype=torch.float64))
    assert odds_text(float(tail_bits(sure, torch.tensor([0]), torch.tensor([0]))[0])) == "impossible"
    assert odds_text(np.nan) == ""


def test_text_of_users_cannot_leave_the_data() -> None:
    name = "</script><!--" + EVIL
    data = details_json([("", "known", full(name))])
    assert "<" not in data
    assert json.loads(data)["chapters"][0]["bags"][0]["name"] == f"{name} 0"
    assert details_json([("", "known", replace(full(), details=None))]) == ""
    assert bag_address("", "a/b\ud800") == "bag-a%2Fb%3F"


def test_limits_of_rows_columns_and_bags() -> None:
    bags = Bags.from_sizes([3, 500])
    shown = shown_rows(bags, np.array([1]), torch.arange(503.0))
    assert shown.rows[0].tolist() == list(range(502, 402, -1))
    columns = [(f"x{place}", np.arange(50_000.0)) for place in range(784)]
    few, many = (row_table(columns, np.arange(number)) for number in (10, 30_000))
    assert len(few.columns) == MOST_COLUMNS
    assert few.note == "The 40 most important of 784 columns."
    assert len(many.columns) * 30_000 <= MOST_CELLS
    assert row_table([("x", np.array([1.23456789, np.nan, np.inf]))], np.arange(3)).values == [[1.234568, None, "inf"]]
    missing = pd.Series(["a", None, "b"])
    assert row_table([("x", missing), ("y", pd.Series([1, None, 3], dtype="Int64"))], np.arange(3)).values == [
        ["a", None, "b"],
        [1, None, 3],
    ]
    assert RowTable().columns == ()
    assert len(listed_bags(299, None).places) == 299
    chosen = listed_bags(5000, np.r_[np.inf, np.full(4999, np.nan)])
    assert 0 in chosen.places
    assert len(np.unique(chosen.places)) == 300
