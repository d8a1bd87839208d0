"""Bags from names, lists and sizes: against a dict, for whatever a column may hold."""

from __future__ import annotations

import datetime
import decimal
import importlib
import re
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kofn
from kofn import Bags

pd = importlib.import_module("pandas")
pa = importlib.import_module("pyarrow")

DAY = datetime.date(2020, 2, 29)


def by_dict(ids: Iterable[Hashable]) -> dict[Hashable, list[int]]:
    """The oracle: names in the order in which they first appear, each with its positions."""
    bags: dict[Hashable, list[int]] = {}
    for position, name in enumerate(ids):
        bags.setdefault(name, []).append(position)
    return bags


def members(bags: Bags) -> list[list[int]]:
    return [bag.tolist() for bag in bags]


def assert_same(bags: Bags, ids: list[Any]) -> None:
    expected = by_dict(ids)
    assert bags.names == list(expected)
    assert [bags[j].tolist() for j in range(len(bags))] == list(expected.values())
    assert members(bags) == list(expected.values())
    assert bags.sizes.tolist() == [len(bag) for bag in expected.values()]
    assert bags.index.dtype == bags.offsets.dtype == bags.sizes.dtype == torch.int64


NAMES = {
    "int": st.integers(-3, 3),
    "int64": st.sampled_from([-(2**63), 2**63 - 1, 0]),
    "beyond int64": st.sampled_from([2**63, 2**64, -(2**70), 2**70, 1]),
    "bool": st.booleans(),
    "str": st.sampled_from(["", "a", "a\0", "a\0\0", "ab", "é", " a", "nan", "None"]),
    "bytes": st.sampled_from([b"", b"a", b"a\0", b"b"]),
    "float": st.sampled_from([0.0, -0.0, 0.5, float("inf"), -1e300]),
    "tuple": st.tuples(st.integers(0, 1), st.sampled_from("ab")),
    "date": st.dates(DAY, DAY + datetime.timedelta(2)),
    "mixed": st.sampled_from([1, True, 1.0, "1", b"1", (1,), frozenset([1]), DAY, 2**70]),
}


@pytest.mark.parametrize("kind", NAMES)
@given(data=st.data())
def test_lists_of_any_hashable(kind: str, data: st.DataObject) -> None:
    ids = data.draw(st.lists(NAMES[kind], max_size=12))
    assert_same(Bags.from_ids(ids), ids)
    assert_same(Bags.from_ids(name for name in ids), ids)
    boxed = np.empty(len(ids), dtype=object)
    boxed[:] = ids
    assert_same(Bags.from_ids(boxed), ids)


DTYPES = ["?", "i1", "u1", "i8", "u8", ">i4", "f2", "f8", "c16", "U3", "S3", "M8[D]", "M8[ns]", "m8[s]", "O"]


@pytest.mark.parametrize("dtype", DTYPES)
@given(numbers=st.lists(st.integers(0, 4), max_size=12))
def test_arrays_of_any_dtype(dtype: str, numbers: list[int]) -> None:
    array = np.array(numbers, dtype="i8").astype(dtype)
    assert_same(Bags.from_ids(array), list(array))
    assert_same(Bags.from_ids(np.repeat(array, 2)[::2]), list(array))
    assert_same(Bags.from_ids(array[::-1]), list(array[::-1]))


def test_arrays_beyond_int64_and_of_records() -> None:
    assert Bags.from_ids(np.array([2**64 - 1, 1, 2**64 - 1], dtype="u8")).names == [2**64 - 1, 1]
    records = np.array([(2, "a"), (1, "a"), (2, "a")], dtype=[("county", int), ("class", "U1")])
    assert_same(Bags.from_ids(records), [(2, "a"), (1, "a"), (2, "a")])


COLUMNS: dict[str, Callable[[list[str]], Any]] = {
    "object": lambda ids: pd.Series(ids, dtype=object),
    "str": lambda ids: pd.Series(ids, dtype="str"),
    "string": lambda ids: pd.Series(ids, dtype="string"),
    "arrow string": lambda ids: pd.Series(ids, dtype="string[pyarrow]"),
    "categorical": pd.Categorical,
    "category column": lambda ids: pd.Series(ids, dtype="category"),
    "ordered, other categories": lambda ids: pd.Categorical(ids, categories=list("zcba"), ordered=True),
    "index": pd.Index,
    "other index": lambda ids: pd.Series(ids, index=range(len(ids), 0, -1)),
    "pyarrow": pa.array,
    "pyarrow in chunks": lambda ids: pa.chunked_array([ids[:2], ids[2:]]),
}


@pytest.mark.parametrize("column", COLUMNS)
def test_columns_of_strings(column: str) -> None:
    assert_same(Bags.from_ids(COLUMNS[column](list("bacab"))), list("bacab"))


@pytest.mark.parametrize("dtype", ["int32", "Int64", "UInt8", "int64[pyarrow]", "Float64", "float64"])
def test_columns_of_numbers(dtype: str) -> None:
    assert_same(Bags.from_ids(pd.Series([3, 1, 3, 2], dtype=dtype)), [3, 1, 3, 2])
    with pytest.raises(ValueError, match="instance 1 has"):
        Bags.from_ids(pd.array([3, None, 3], dtype=dtype if dtype != "int32" else "Int32"))


def test_columns_of_other_kinds() -> None:
    assert_same(Bags.from_ids(pd.Series([True, False, True], dtype="boolean")), [True, False, True])
    moments = pd.to_datetime(["2020-03-01", "2020-02-29", "2020-03-01"])
    assert members(Bags.from_ids(moments)) == [[0, 2], [1]]
    assert_same(Bags.from_ids(moments.tz_localize("Europe/Berlin")), list(moments.tz_localize("Europe/Berlin")))
    assert_same(Bags.from_ids(pd.MultiIndex.from_tuples([(1, 2), (1, 3), (1, 2)])), [(1, 2), (1, 3), (1, 2)])
    intervals = pd.cut(pd.Series([9, 1, 2]), 2)
    assert_same(Bags.from_ids(intervals), list(intervals))


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool, torch.float32, torch.bfloat16, torch.float16])
def test_tensors(dtype: torch.dtype) -> None:
    ids = torch.tensor([1, 0, 1, 1]).to(dtype)
    assert_same(Bags.from_ids(ids), [1, 0, 1, 1])
    assert_same(Bags.from_ids(torch.tensor([2.5, 0.1, 2.5], requires_grad=True)), [2.5, float(np.float32(0.1)), 2.5])


MISSING = {
    "None": ["a", None, "b", None],
    "nan": ["a", float("nan"), "b", None],
    "floats": [1.0, float("nan"), float("nan")],
    "decimals": [decimal.Decimal(1), decimal.Decimal("nan"), decimal.Decimal("nan")],
    "array": np.array([1.0, np.nan, np.nan]),
    "date": np.array(["2020-01-01", "NaT", "NaT"], "M8[D]"),
    "masked": np.ma.MaskedArray([1, 2, 3], mask=[False, True, True]),
    "pandas NA": pd.Series(["a", pd.NA, None], dtype="string"),
    "pandas str": pd.Series(["a", None, None]),
    "category": pd.Categorical(["a", None, None]),
    "boolean": pd.Series([True, None, None], dtype="boolean"),
    "NaT": [pd.NaT, pd.NaT],
    "tensor": torch.tensor([0.0, torch.nan, torch.nan]),
    "pyarrow": pa.array([1, None, None]),
}


@pytest.mark.parametrize("kind", MISSING)
def test_missing_names(kind: str) -> None:
    row = 0 if kind == "NaT" else 1
    message = f"`ids` must name a bag for each instance; instance {row} has .* \\(2 in all have none\\). Drop"
    with pytest.raises(ValueError, match=message):
        Bags.from_ids(MISSING[kind])


UNHASHABLE: list[tuple[Any, str]] = [
    ([[1], [2]], r"instance 0 is [1]."),
    ([1, {2}], "instance 1 is {2}."),
    ([("a", 1), ("a", [1])], "instance 1 is ('a', [1])."),  # a tuple is hashable only if all in it are
    ([torch.tensor(1), torch.tensor(1)], "instance 0 is tensor(1)."),  # hashed by address: each its own bag
    ([1, decimal.Decimal("sNaN")], "instance 1 is Decimal('sNaN')."),
]


@pytest.mark.parametrize(("ids", "message"), UNHASHABLE)
def test_names_without_a_hash(ids: Any, message: str) -> None:
    with pytest.raises(TypeError, match=re.escape("`ids` must be hashable by value; that of " + message)):
        Bags.from_ids(ids)


@pytest.mark.parametrize("ids", ["region", b"region", 3, None, {"a": 1}, {1, 2}])
def test_ids_that_are_no_sequence(ids: Any) -> None:
    with pytest.raises(TypeError, match=f"`ids` must be a sequence .* got {type(ids).__name__}. Of a table"):
        Bags.from_ids(ids)


@pytest.mark.parametrize("ids", [np.zeros((2, 1)), np.array(1), torch.zeros(2, 2), pd.DataFrame({"a": [1]})])
def test_ids_of_another_shape(ids: Any) -> None:
    with pytest.raises(ValueError, match=r"`ids` must name one bag for each instance, shape \(n,\); got shape \("):
        Bags.from_ids(ids)


@pytest.mark.parametrize(
    "bags", [Bags.from_ids([]), Bags.from_lists([]), Bags.from_lists({}), Bags.from_sizes([]), Bags([], [0])]
)
def test_no_bags(bags: Bags) -> None:
    assert len(bags) == 0
    assert bags.names == members(bags) == []
    assert bags.offsets.tolist() == [0]
    assert bags.index.shape == bags.sizes.shape == bags.bag_of().shape == (0,)
    assert bags.index.dtype == bags.sizes.dtype == torch.int64
    assert repr(bags) == "Bags(0 bags of 0 instances)"


LISTS = st.lists(st.lists(st.integers(0, 6), max_size=5), max_size=6)  # overlapping, repeated, empty


@given(lists=LISTS)
def test_from_lists(lists: list[list[int]]) -> None:
    bags = Bags.from_lists(lists)
    assert members(bags) == lists
    assert bags.names == list(range(len(lists)))
    assert bags.sizes.tolist() == [len(bag) for bag in lists]
    assert bags.bag_of().tolist() == [j for j, bag in enumerate(lists) for _ in bag]
    for container in (tuple, np.array, torch.tensor, lambda bag: np.array(bag, dtype="u2")):
        assert members(Bags.from_lists(container(bag) for bag in lists)) == lists
    named = Bags.from_lists({f"bag {j}": bag for j, bag in enumerate(lists)})
    assert members(named) == lists
    assert named.names == [f"bag {j}" for j in range(len(lists))]
    again = Bags(bags.index, bags.offsets, names=iter(named.names))
    assert members(again) == lists
    assert again.names == named.names


@given(sizes=st.lists(st.integers(0, 4), max_size=8))
def test_from_sizes(sizes: list[int]) -> None:
    bags = Bags.from_sizes(sizes)
    assert bags.sizes.tolist() == sizes
    assert bags.index.tolist() == list(range(sum(sizes)))
    assert bags.offsets.tolist() == np.cumsum([0, *sizes]).tolist()


def test_containers_of_positions() -> None:
    assert members(Bags.from_lists([range(2), pd.Series([3, 4]), np.array([5, 6])[::-1]])) == [[0, 1], [3, 4], [6, 5]]
    locked = np.array([2, 1])
    locked.flags.writeable = False
    assert Bags.from_sizes(locked).offsets.tolist() == [0, 2, 3]


POSITIONS: list[tuple[Callable[[], Bags], type[Exception], str]] = [
    (lambda: Bags([0.0, 1.0], [0, 2]), TypeError, "`index` must be integers; got torch.float64. Convert with"),
    (lambda: Bags([0, -1], [0, 2]), ValueError, "`index` must be at least 0; got -1."),
    (lambda: Bags([[0, 1]], [0, 2]), ValueError, r"`index` must have one dimension; got shape \(1, 2\)."),
    (lambda: Bags([0, 1], [0.0, 2.0]), TypeError, "`offsets` must be integers; got torch.float64"),
    (lambda: Bags([0, 1], [0, 1]), ValueError, "`offsets` must start at 0 and end at .* 2; they run from 0 to 1"),
    (lambda: Bags([0, 1], [1, 2]), ValueError, "`offsets` must start at 0"),
    (lambda: Bags([0, 1], []), ValueError, "`offsets` must have shape"),
    (lambda: Bags([0, 1], [0, 3, 2]), ValueError, "`offsets` must not decrease; bag 1 would run from 3 to 2"),
    (lambda: Bags([0], [0, 1], names="ab"), ValueError, "`names` must have one for each of the 1 bags; got 2."),
    (lambda: Bags.from_lists([[0], [-1]]), ValueError, r"`lists\[1\]` must be at least 0; got -1."),
    (lambda: Bags.from_lists({"a": [0], "b": [0.5]}), TypeError, r"`lists\['b'\]` must be integers"),
    (lambda: Bags.from_lists([[True]]), TypeError, r"`lists\[0\]` must be integers; got torch.bool"),
    (lambda: Bags.from_lists([0, 1]), ValueError, r"`lists\[0\]` must have one dimension; got shape \(\)"),
    (lambda: Bags.from_lists([{0, 1}]), TypeError, r"`lists\[0\]` must be numbers, .* got set: "),
    (lambda: Bags.from_lists(["ab"]), TypeError, r"`lists\[0\]` must be numbers, .* got str: "),
    (lambda: Bags.from_lists([[[0], [0, 1]]]), TypeError, r"`lists\[0\]` must be numbers, .* got list: "),
    (lambda: Bags.from_lists([[2**70]]), TypeError, r"`lists\[0\]` must be numbers"),
    (lambda: Bags.from_sizes([1, -2]), ValueError, "`sizes` must be at least 0; got -2."),
    (lambda: Bags.from_sizes(3), ValueError, r"`sizes` must have one dimension; got shape \(\)"),
    (lambda: Bags.from_sizes(["a"]), TypeError, "`sizes` must be numbers"),
]


@pytest.mark.parametrize("case", range(len(POSITIONS)))
def test_positions_that_cannot_be(case: int) -> None:
    make, error, message = POSITIONS[case]
    with pytest.raises(error, match=message):
        make()


def test_one_bag() -> None:
    bags = kofn.Bags.from_lists([[4, 2], [], [2]])
    assert [bags[j].tolist() for j in (0, 1, 2, -1, -2, -3)] == [[4, 2], [], [2], [2], [], [4, 2]]
    assert bags[np.int64(-1)].tolist() == [2]
    assert repr(bags) == "Bags(3 bags of 3 instances)"
    for outside in (3, -4):
        with pytest.raises(IndexError, match=f"there is no bag {outside}; there are 3."):
            bags[outside]
    several: Any = slice(0, 2)
    with pytest.raises(TypeError, match=r"must be an integer; got slice. For several bags: bags.select"):
        bags[several]
