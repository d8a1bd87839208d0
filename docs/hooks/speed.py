"""What the pages say of speed, in sentences made from the records in `bench/` at every build: none of it was typed.

In a page, on a line of its own, ``<!-- speed: NAME -->``: `cases`, `ahead`, `core`, `floor`, `small_bags`
or `large_bag`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

BENCH = Path(__file__).parents[2] / "bench"
Times = Mapping[str, Mapping[str, float]]  # milliseconds of each contender, by case
Sweep = Mapping[str, Times]  # of each contender at each size of a bag, for one count and for all


def cases(warm: Times, cold: Times) -> str:
    """Over all cases: kofn beside what any loss costs, and the others beside kofn."""
    least = [case["kofn"] / case["floor"] for record in (warm, cold) for case in record.values()]
    return (
        f"Over {len(warm)} cases, with warm and with cold caches, the loss and its gradient take up to "
        f"{max(least):.0f} times (at best {min(least):.1f} times) as long as the least that any loss costs in "
        f"autograd. The paper's algorithm takes {_others(warm, cold, 'algorithm 1')}, and fast-poibin, which has no "
        f"gradient, {_others(warm, cold, 'fast-poibin')}."
    )


def core(warm: Times, cold: Times) -> str:
    """What the C++ core brings, by the case in which it brings least."""
    least = min(case["kofn in torch"] / case["kofn"] for record in (warm, cold) for case in record.values())
    return (
        f"With one, CPU tensors use a native core that is at least {int(least)} times as fast in every case of the "
        f"[benchmarks](benchmarks.md) (`bench/latest.json`, `bench/cold.json`)."
    )


def floor(warm: Times, cold: Times) -> str:
    """What the count loss of a training batch costs beside the least that any loss costs in autograd."""
    sizes = (8, 32, 128, 512)
    with_warm, with_cold = (
        [
            f"{record[case]['kofn'] / record[case]['floor']:.1f}"
            for case in (f"128 bags x {n}, one count" for n in sizes)
        ]
        for record in (warm, cold)
    )
    return (
        f"For 128 bags of {_listed(map(str, sizes))}, the count loss, value and gradient, takes {_listed(with_warm)} "
        f"times as long as the bare autograd call with warm caches, and {_listed(with_cold)} times with cold ones "
        f"(`bench/latest.json`, `bench/cold.json`)."
    )


def _listed(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}"


def ahead(sweep: Sweep) -> str:
    """Up to which size of one bag fast-poibin, which has no gradient, is ahead of kofn."""
    theirs = {kind: times["fast-poibin"] for kind, times in sweep.items()}
    one, every = (_ahead(sweep[kind]["kofn"], theirs[kind]) for kind in ("one count", "all counts"))
    values = _ahead(sweep["all counts"]["kofn, values only"], theirs["all counts"])
    return (
        f"For one bag fast-poibin, which has no gradient, is faster than kofn with its gradient {one} for one count "
        f"and {every} for all counts, and faster than kofn without one {values} for all counts."
    )


def small_bags(warm: Times, sweep: Sweep) -> str:
    """Where fast-poibin is ahead, and what that is in milliseconds."""
    smallest = min(map(int, sweep["one count"]["kofn"]))
    one = {name: sweep["one count"][name][str(smallest)] for name in ("kofn", "fast-poibin")}
    least = min(case["floor"] for case in warm.values())
    return (
        f"**Where kofn is slower.** {ahead(sweep)} A call of kofn on one bag of {smallest} costs {one['kofn']:.2f} ms, "
        f"of fast-poibin {one['fast-poibin']:.3f} ms (`bench/scaling.json`). {least:.2f} ms is what any loss costs in "
        f"autograd (the floor of `bench/latest.json`); fast-poibin is a plain function of an array. In a training step "
        f"there are many bags, and the call is paid once for all of them: see 128 bags below."
    )


def large_bag(warm: Times, cold: Times, sweep: Sweep) -> str:
    """One count of a large bag, in all records that have it."""
    parts = []
    for size, words in ((100_000, "100,000 instances, with its gradient, takes"), (1_000_000, "a million")):
        case = f"1 bag x {size:,}, one count"
        times = [warm[case]["kofn"], cold[case]["kofn"], sweep["one count"]["kofn"][str(size)]]
        parts.append(f"of {words} {max(times):.2g} to {min(times):.2g} ms")
    return f"One count {', and '.join(parts)}."


def _others(warm: Times, cold: Times, name: str) -> str:
    """How many times as long as kofn another contender takes, at the least and at the most."""
    times = [case[name] / case["kofn"] for record in (warm, cold) for case in record.values() if name in case]
    cases = sum(any(name in record[case] for record in (warm, cold)) for case in warm)
    return f"{min(times):.2g} to {max(times):,.0f} times as long as kofn in the {cases} cases where it was run"


def _ahead(ours: Mapping[str, float], theirs: Mapping[str, float]) -> str:
    """The largest of the sizes that both have at which the other one takes less time."""
    both = [size for size in ours if size in theirs]
    faster = [int(size) for size in both if theirs[size] < ours[size]]
    if not faster:
        return "at no size"
    all_of_them = ", the most that was measured," if max(faster) == max(map(int, both)) else ""
    return f"up to {max(faster):,} instances{all_of_them}"


def _record(name: str) -> Any:
    return json.loads((BENCH / f"{name}.json").read_text())["milliseconds"]


MADE: dict[str, Callable[[], str]] = {
    "cases": lambda: cases(_record("latest"), _record("cold")),
    "ahead": lambda: ahead(_record("scaling")),
    "core": lambda: core(_record("latest"), _record("cold")),
    "floor": lambda: floor(_record("latest"), _record("cold")),
    "small_bags": lambda: small_bags(_record("latest"), _record("scaling")),
    "large_bag": lambda: large_bag(_record("latest"), _record("cold"), _record("scaling")),
}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill the places of a page; an unknown name stops the build."""
    return re.sub(r"^<!-- speed: (\w+) -->$", lambda found: MADE[found[1]](), markdown, flags=re.M)
