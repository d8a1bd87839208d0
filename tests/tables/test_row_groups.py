"""Groups of rows by the values of a column, and what they are called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import table_data
from hypothesis import given
from hypothesis import strategies as st

from kofn.estimators._value_groups import bin_edges, bin_names
from kofn.tables import TableFile
from kofn.tables._row_groups import row_groups


def grouped(folder: Path, columns: dict[str, Any], *by: str, suffix: str = ".csv") -> tuple[list[Any], list[Any]]:
    """The groups of a table, and that of each row, by name."""
    file = TableFile(table_data.write(pd.DataFrame(columns), folder / f"t{suffix}"))
    found = row_groups(file, by or list(columns))
    return found.names, [found.names[group] for group in found.of]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_text_and_missing(tmp_path: Path, suffix: str) -> None:
    names, rows = grouped(tmp_path, {"sex": ["m", None, "f", "m"]}, suffix=suffix)
    assert names == [("f",), ("m",), ("(missing)",)]
    assert rows == [("m",), ("(missing)",), ("f",), ("m",)]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_few_numbers_are_groups_of_their_own(tmp_path: Path, suffix: str) -> None:
    names, rows = grouped(tmp_path, {"n": [10.0, 2.0, np.nan, 10.0, 0.5]}, suffix=suffix)
    assert names == [("0.5",), ("2",), ("10",), ("(missing)",)]
    assert rows == [("10",), ("2",), ("(missing)",), ("10",), ("0.5",)]


def test_many_numbers_are_bins(tmp_path: Path) -> None:
    ages = [*range(18, 95), None]
    names, rows = grouped(tmp_path, {"age": ages})
    assert [name for (name,) in names] == [
        "below 20", "20 to 29", "30 to 39", "40 to 49", "50 to 59", "60 to 69", "70 to 79", "80 to 89", "90 and above",
        "(missing)",
    ]  # fmt: skip
    assert rows[ages.index(29)] == ("20 to 29",)
    assert rows[ages.index(30)] == ("30 to 39",)
    assert rows[-1] == ("(missing)",)


def test_combinations_that_occur(tmp_path: Path) -> None:
    names, rows = grouped(tmp_path, {"sex": ["f", "m", "f"], "year": [2, 1, 10]})
    assert names == [("f", "2"), ("f", "10"), ("m", "1")]
    assert rows == [("f", "2"), ("m", "1"), ("f", "10")]


def test_truth_values_and_late_text(tmp_path: Path) -> None:
    assert grouped(tmp_path, {"b": [True, False, True]}, suffix=".parquet")[0] == [("False",), ("True",)]
    late = [1] * 70_000 + ["x"]  # after the first chunk
    assert grouped(tmp_path, {"late": late})[0] == [("1",), ("x",)]


def test_lists_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"column 'l' must be numbers or text to group rows by; it has a ndarray"):
        grouped(tmp_path, {"l": [[1], [2]]}, suffix=".parquet")


@given(st.lists(st.floats(-1e6, 1e6), min_size=13, max_size=60, unique=True), st.booleans())
def test_bins_hold_every_number_once(values: list[float], whole: bool) -> None:
    numbers = np.unique(np.round(values) if whole else np.array(values))
    if len(numbers) < 13:
        return
    edges = bin_edges(numbers)
    assert edges == sorted(set(edges))
    assert len(edges) <= 12
    names = bin_names(edges, whole=whole)
    assert len(set(names)) == len(names) == len(edges) + 1
