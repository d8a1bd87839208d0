"""What the pages say of speed, in sentences made from the records in `bench/` at every build: none of it was typed.

In a page, on a line of its own, ``<!-- speed: NAME -->``: `core`, `floor`, `small_bags` or `large_bag`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

BENCH = Path(__file__).parents[2] / "bench"
Times = Mapping[str, Mapping[str, float]]  # milliseconds of each contender, by case
Sweep = Mapping[str, Times]  # of each contender at each size of a bag, for one count and for all


def core(warm: Times, cold: Times) -> str:
    """What the C++ core brings, by the case in which it brings least."""
    least = min(case["kofn in torch"] / case["kofn"] for record in (warm, cold) for case in record.values())
    return (
        f"With one, CPU tensors use a native core that is at least {int(least)} times as fast in every case of the "
        f"[benchmarks](benchmarks.md) (`bench/latest.json`, `bench/cold.json`)."
    )


def floor(warm: Times) -> str:
    """What the count loss of a training batch costs beside the least that any loss costs in autograd."""
    sizes = (8, 32, 128, 512)
    cases = [warm[f"128 bags x {n}, one count"] for n in sizes]
    first, *rest = [(case["kofn"] / case["floor"], n) for case, n in zip(cases, sizes, strict=True)]
    more = [f"{ratio:.1f} for bags of {n}" for ratio, n in rest]
    return (
        f"Beside the bare autograd call, the count loss of 128 bags, value and gradient, takes {first[0]:.1f} times "
        f"as long for bags of {first[1]}, {', '.join(more[:-1])} and {more[-1]} (`bench/latest.json`)."
    )


def small_bags(warm: Times, sweep: Sweep) -> str:
    """Where fast-poibin, which has no gradient, is ahead of kofn on one bag."""
    ahead = {kind: _ahead(times["kofn"], times["fast-poibin"]) for kind, times in sweep.items()}
    smallest = min(map(int, sweep["one count"]["kofn"]))
    one = {name: sweep["one count"][name][str(smallest)] for name in ("kofn", "fast-poibin")}
    least = min(case["floor"] for case in warm.values())
    return (
        f"**Where kofn is slower.** fast-poibin is ahead for *one small bag*: {ahead['one count']} for one count, and "
        f"{ahead['all counts']} for all counts. A call of kofn on one bag of {smallest} costs {one['kofn']:.2f} ms, "
        f"of fast-poibin {one['fast-poibin']:.3f} ms (`bench/scaling.json`). {least:.2f} ms is what any loss costs in "
        f"autograd (the floor of `bench/latest.json`); fast-poibin is a plain function of an array, without a "
        f"gradient. In a training step there are many bags, and the call is paid once for all of them: see 128 bags "
        f"below."
    )


def large_bag(sweep: Sweep) -> str:
    """One count of a large bag."""
    times = sweep["one count"]["kofn"]
    return (
        f"One count of 100,000 instances, with its gradient, costs {times['100000']:.1f} ms, of a million "
        f"{times['1000000']:.0f} ms (`bench/scaling.json`)."
    )


def _ahead(ours: Mapping[str, float], theirs: Mapping[str, float]) -> str:
    """At which of the sizes that both have the other one takes less time."""
    faster = {int(size): theirs[size] < ours[size] for size in ours if size in theirs}
    if all(faster.values()):
        return f"at every size, up to {max(faster):,} instances,"
    first = min(size for size, ahead in faster.items() if not ahead)
    below = [size for size in faster if size < first]
    return f"up to {max(below):,} instances (no longer at {first:,})" if below else "at no size"


def _record(name: str) -> Any:
    return json.loads((BENCH / f"{name}.json").read_text())["milliseconds"]


MADE: dict[str, Callable[[], str]] = {
    "core": lambda: core(_record("latest"), _record("cold")),
    "floor": lambda: floor(_record("latest")),
    "small_bags": lambda: small_bags(_record("latest"), _record("scaling")),
    "large_bag": lambda: large_bag(_record("scaling")),
}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill the places of a page; an unknown name stops the build."""
    return re.sub(r"^<!-- speed: (\w+) -->$", lambda found: MADE[found[1]](), markdown, flags=re.M)
