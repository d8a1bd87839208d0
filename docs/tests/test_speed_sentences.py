"""Sentences about speed follow their records: other times make other sentences."""

from __future__ import annotations

import re

import pytest
import speed

FLAT = {"10": 2.0, "100": 2.0, "1000": 2.0}


@pytest.mark.parametrize(
    ("theirs", "told"),
    [
        ({"10": 1.0, "100": 3.0, "1000": 9.0}, "up to 10 instances for"),
        ({"10": 3.0, "100": 1.0, "1000": 9.0}, "up to 100 instances for"),  # also where it is not at a smaller one
        ({"10": 1.0, "100": 1.5, "1000": 1.9}, "up to 1,000 instances, the most that was measured,"),
        ({"10": 3.0, "100": 5.0}, "at no size"),
    ],
)
def test_where_another_is_ahead(theirs: dict[str, float], told: str) -> None:
    ours = {"kofn": FLAT, "kofn, values only": FLAT, "fast-poibin": theirs}
    said = speed.small_bags({"a case": {"floor": 0.25, "kofn": 1.0}}, {"one count": ours, "all counts": ours})
    assert said.count(told) == 3
    assert "one bag of 10 costs 2.00 ms" in said
    assert "0.25 ms is what any loss costs" in said


def test_the_core_is_judged_by_its_worst_case() -> None:
    warm = {"a": {"kofn": 1.0, "kofn in torch": 30.0}, "b": {"kofn": 2.0, "kofn in torch": 34.0}}
    assert "at least 17 times" in speed.core(warm, {"a": {"kofn": 1.0, "kofn in torch": 40.0}})
    assert "at least 8 times" in speed.core(warm, {"a": {"kofn": 1.0, "kofn in torch": 8.9}})


def test_the_floor_is_told_for_every_size() -> None:
    times = {8: 1.0, 32: 2.0, 128: 4.0, 512: 13.0}
    warm = {f"128 bags x {n}, one count": {"kofn": value, "floor": 1.0} for n, value in times.items()}
    cold = {case: {"kofn": 3 * both["kofn"], "floor": 1.0} for case, both in warm.items()}
    said = speed.floor(warm, cold)
    assert "128 bags of 8, 32, 128 and 512, " in said
    assert "takes 1.0, 2.0, 4.0 and 13.0 times as long as the bare autograd call with warm caches, and 3.0, 6.0" in said


def test_no_case_is_left_out() -> None:
    warm = {"a": {"kofn": 1.0, "floor": 0.5, "algorithm 1": 40.0, "fast-poibin": 0.5}, "b": {"kofn": 1.0, "floor": 0.2}}
    cold = {"a": {"kofn": 2.0, "floor": 1.6, "algorithm 1": 6.0, "fast-poibin": 8.0}, "b": {"kofn": 1.0, "floor": 0.4}}
    said = speed.cases(warm, cold)
    assert "Over 2 cases" in said
    assert "up to 5 times (at best 1.2 times)" in said
    assert "algorithm takes 3 to 40 times as long as kofn in the 1 cases" in said
    assert "no gradient, 0.5 to 4 times" in said


def test_a_large_bag_is_told_as_every_record_has_it() -> None:
    warm, cold = ({f"1 bag x {n}, one count": {"kofn": ms} for n in ("100,000", "1,000,000")} for ms in (1.0, 4.0))
    said = speed.large_bag(warm, cold, {"one count": {"kofn": {"100000": 0.5, "1000000": 6.0}}})
    assert said == ("One count of 100,000 instances, with its gradient, takes 4 to 0.5 ms, and of a million 6 to 1 ms.")


@pytest.mark.parametrize("name", speed.MADE)
def test_todays_records_have_what_is_told(name: str) -> None:
    assert re.search(r"\d", speed.MADE[name]())
