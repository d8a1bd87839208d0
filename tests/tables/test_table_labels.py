"""Labels of bags in a table: what they mean, and every way in which they can be wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from kofn.tables._label_columns import Column, bag_values, binary, count_labels, numbers
from kofn.tables._reading import RowMetadata

WHERE = Column("t.csv", "y")


def metadata(values: list[Any], bags: list[int], **more: list[Any]) -> RowMetadata:
    columns = {"y": pd.Series(values)} | {name: pd.Series(column) for name, column in more.items()}
    return RowMetadata(len(values), np.array(bags), [f"bag{i}" for i in range(max(bags) + 1)], columns)


def read(values: list[Any], bags: list[int], columns: str = "y", **options: Any) -> tuple[Any, str]:
    more = {name: options.pop(name) for name in ("z",) if name in options}
    options = {"kind": None, "noise": None, "rounding": "error"} | options
    return count_labels(metadata(values, bags, **more), columns.split(","), "t.csv", **options)


@pytest.mark.parametrize(
    ("values", "bags", "options", "kind"),
    [
        ([0.5, 0.5, 1.0], [0, 0, 1], {}, "proportion"),
        (["0.5", "0.5", "1"], [0, 0, 1], {}, "proportion"),
        ([2, 2, 0], [0, 0, 1], {}, "count"),
        ([1, 0, 1], [0, 1, 2], {}, "proportion"),  # bags of one: both are the same
        ([1, 1, 0], [0, 0, 1], {"kind": "count"}, "count"),
        ([1, 1, 0], [0, 0, 1], {"kind": "proportion"}, "proportion"),
        ([7.3, 7.3, -2.0], [0, 0, 1], {"noise": "laplace:1"}, "count"),
        ([0.3, 0.3, 1.0], [0, 0, 1], {"rounding": "nearest"}, "proportion"),
    ],
)
def test_kind_of_label(values: list[Any], bags: list[int], options: dict[str, Any], kind: str) -> None:
    y, found = read(values, bags, **options)
    assert found == kind
    assert y.tolist() == [float(v) for v in values]


def test_percent_signs() -> None:
    y, kind = read(["25 %", "25 %", "25%", "25 %", "100 %", "0.0"], [0, 0, 0, 0, 1, 2])
    assert kind == "proportion"
    assert y.tolist() == [0.25, 0.25, 0.25, 0.25, 1.0, 0.0]


def test_percentages_or_counts_of_large_bags() -> None:
    bags = [0] * 101 + [1] * 150
    values = [37] * 101 + [100] * 150
    with pytest.raises(ValueError, match=r"up to 100, and every bag has more than 100 rows: counts or percentages"):
        read(values, bags)
    assert read(values, bags, kind="count")[1] == "count"
    assert read([37] * 101 + [101] * 150, bags)[1] == "count"
    assert read([37] * 101 + [50] * 100, [0] * 101 + [1] * 100)[1] == "count"  # a bag of 100: both are the same there


def test_intervals() -> None:
    y, kind = read([0, 0, 1], [0, 0, 1], "y,z", z=[1, 1, 1])
    assert kind == "interval"
    assert y.tolist() == [[0, 1], [0, 1], [1, 1]]


@pytest.mark.parametrize(
    ("values", "bags", "options", "message"),
    [
        ([0.5, 0.25, 1.0], [0, 0, 1], {}, r"t.csv, column 'y': bag 'bag0' has two labels, 0.5 and 0.25 \(row 2\)"),
        (
            [0.5, 0.5, 1.2],
            [0, 0, 1],
            {},
            "t.csv, column 'y': `proportions` must lie between 0 and 1; bag 'bag1' has 1.2",
        ),
        (
            [3, 3, 1],
            [0, 0, 1],
            {},
            "column .*a count must be an integer.*bag 'bag0' has 2 instances and the count 3.*several instances, say how many: `copies`.*percentages are not counts",
        ),
        (
            ["3 %%", "3 %%", 1],
            [0, 0, 1],
            {},
            "bag 'bag0' .*row 1, .* has '3 %%', which must be a number, such as 0.37 or 37 %",
        ),
        (
            [1.5, 1.5, 1],
            [0, 0, 1],
            {"kind": "count"},
            "a count must be an integer from 0 to the size of its bag: bag 'bag0' has 2 instances and the count 1.5",
        ),
        (
            [0.3, 0.3, 1],
            [0, 0, 1],
            {},
            "would be 0.6 positives. Are instances of the bag missing.*Only if.*rounded.*`rounding='nearest'`",
        ),
        ([0.81], [0], {"rounding": "nearest"}, "'bag0' has 1 instances and the proportion 0.81, .* become 1 positives"),
        ([1, 1, 0], [0, 0, 1], {}, "only 0 and 1, which may be counts or proportions.*`label_kind='count'`"),
        ([-3, -3, -3], [0, 0, 1], {}, "bag 'bag0' has the label -3; a proportion or a count is at least 0.*`noise`"),
        ([0, 0, 0], [0, 0, 1], {}, "has only 0, which may be counts or proportions"),
        (["a", "a", 0], [0, 0, 1], {}, "bag 'bag0' .*row 1, .* has 'a', which must be a number"),
        ([None, None, 0.0], [0, 0, 1], {}, "bag 'bag0' .*row 1, .* has no value"),
        ([1, 1, 0], [0, 0, 1], {"kind": "interval"}, "`label` must name one column, two for an interval"),
    ],
    ids=[
        "two",
        "above-one",
        "above-size",
        "signs",
        "no-count",
        "no-whole",
        "certainty",
        "ambiguous",
        "negative",
        "all-zero",
        "text",
        "missing",
        "one-bound",
    ],
)
def test_labels_that_are_refused(values: list[Any], bags: list[int], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(values, bags, **options)


@pytest.mark.parametrize("bounds", [([2, 2], [1, 1]), ([3, 3], [4, 4]), ([-2, -2], [-1, -1]), ([0.5, 0.5], [1, 1])])
def test_bounds_that_are_refused(bounds: tuple[list[float], list[float]]) -> None:
    with pytest.raises(ValueError, match=r"column 'y,z': bounds must be integers.*bag 'bag0' has 2 instances"):
        read(bounds[0], [0, 0], "y,z", z=bounds[1])


@pytest.mark.parametrize(
    ("values", "options", "expected"),
    [
        ([0, 1], {}, [0, 1]),
        ([-1, 1], {}, [0, 1]),
        (["1", "0"], {}, [1, 0]),
        (["1.0", "0.0"], {}, [1, 0]),
        ([True, False], {}, [1, 0]),
        (["Yes", "no "], {}, [1, 0]),
        ([">50K", "<=50K"], {"positive": ">50K"}, [1, 0]),
        (["1", None], {"missing": True}, [1, 0]),
        ([1.0, None], {"missing": True}, [1, 0]),
        (["sold", None], {"positive": "sold", "missing": True}, [1, 0]),
    ],
)
def test_two_values(values: list[Any], options: dict[str, Any], expected: list[int]) -> None:
    assert binary(pd.Series(values), WHERE, **({"positive": None} | options)).tolist() == expected


@pytest.mark.parametrize(
    ("values", "positive", "message"),
    [
        (["a", "b"], None, "must have two values, 0 and 1; it has 'a' and 'b'.*`positive`"),
        ([0, 1, 2], None, "it has 0, 1 and 2"),
        ([-1, 0, 1], None, "-1, 0 and 1"),
        ([0.0, None], None, "row 2 has no value"),
        (["a", "b"], "c", "never has the value 'c' that `positive` names; it has 'a', 'b'"),
    ],
)
def test_values_that_are_refused(values: list[Any], positive: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        binary(pd.Series(values), WHERE, positive=positive)


def test_infinity_is_no_label() -> None:
    with pytest.raises(ValueError, match=r"bag 'bag1' .row 2, without the header. has inf, which must be a number"):
        numbers(pd.Series([1.0, np.inf]), WHERE, metadata([0, 0], [0, 1]))


def test_noise_does_not_explain_everything() -> None:
    with pytest.raises(ValueError, match=r"column 'y': bag 'bag1' has the label 1e\+308, which no noise explains"):
        read([1.0, 1.0, 1e308], [0, 0, 1], noise="laplace:1")


def test_lists_are_no_labels() -> None:
    with pytest.raises(ValueError, match=r"row 1, .* has \[1, 2\], which must be a number"):
        read([[1, 2], [1, 2]], [0, 0])
    with pytest.raises(ValueError, match=r"must have two values, 0 and 1; it has \[1 2\]"):  # as Parquet has them
        binary(pd.Series([np.array([1, 2]), np.array([1, 2])]), WHERE, positive=None)


def test_percentages_that_are_no_proportions() -> None:
    with pytest.raises(ValueError, match=r"bag 'bag0' has the proportion 37; .* divide by 100, or write 37 %"):
        read([37, 37, 12.5], [0, 0, 1])


@pytest.mark.parametrize("name", ["share", "turnout_percent", "Proportion yes"])
def test_counts_with_a_name_of_proportions(name: str) -> None:
    """As counts of large bags they would pass, and teach something else."""
    values = RowMetadata(60, np.repeat([0, 1], 30), ["a", "b"], {name: pd.Series(np.repeat([12, 25], 30))})
    options: dict[str, Any] = {"noise": None, "rounding": "error"}
    with pytest.raises(ValueError, match=r"integers up to 25, and a name of proportions.*`label_kind='count'`"):
        count_labels(values, [name], "t.csv", kind=None, **options)
    assert count_labels(values, [name], "t.csv", kind="count", **options)[1] == "count"


def test_two_labels_of_a_bag_in_the_words_of_the_file() -> None:
    words = pd.Series(["benign", "malignant"])
    with pytest.raises(ValueError, match="bag 'bag0' has two labels, 'benign' and 'malignant'"):
        bag_values(np.array([0, 1]), metadata([0, 0], [0, 0]), WHERE, words)
