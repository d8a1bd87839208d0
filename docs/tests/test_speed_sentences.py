"""Sentences about speed follow their records: other times make other sentences."""

from __future__ import annotations

import pytest
import speed

FLAT = {"10": 2.0, "100": 2.0, "1000": 2.0}


@pytest.mark.parametrize(
    ("theirs", "told"),
    [
        ({"10": 1.0, "100": 3.0, "1000": 9.0}, "up to 10 instances (no longer at 100)"),
        ({"10": 1.0, "100": 1.5, "1000": 1.9}, "at every size, up to 1,000 instances,"),
        ({"10": 3.0, "100": 5.0}, "at no size"),
    ],
)
def test_where_another_is_ahead(theirs: dict[str, float], told: str) -> None:
    sweep = {kind: {"kofn": FLAT, "fast-poibin": theirs} for kind in ("one count", "all counts")}
    said = speed.small_bags({"a case": {"floor": 0.25, "kofn": 1.0}}, sweep)
    assert said.count(told) == 2
    assert "one bag of 10 costs 2.00 ms" in said
    assert "0.25 ms is what any loss costs" in said


def test_the_core_is_judged_by_its_worst_case() -> None:
    warm = {"a": {"kofn": 1.0, "kofn in torch": 30.0}, "b": {"kofn": 2.0, "kofn in torch": 34.0}}
    assert "at least 17 times" in speed.core(warm, {"a": {"kofn": 1.0, "kofn in torch": 40.0}})
    assert "at least 8 times" in speed.core(warm, {"a": {"kofn": 1.0, "kofn in torch": 8.9}})


def test_the_floor_is_told_for_every_size() -> None:
    times = {8: 1.0, 32: 2.0, 128: 4.0, 512: 13.0}
    said = speed.floor({f"128 bags x {n}, one count": {"kofn": value, "floor": 1.0} for n, value in times.items()})
    assert "1.0 times as long for bags of 8, 2.0 for bags of 32, 4.0 for bags of 128 and 13.0 for bags of 512" in said


@pytest.mark.parametrize("name", speed.MADE)
def test_todays_records_have_what_is_told(name: str) -> None:
    assert "bench/" in speed.MADE[name]()
