"""What the page about scale says in numbers, made from the records in `bench/` at every build: none of it was typed.

In a page, on a line of its own, ``<!-- scale: NAME -->``: `costs`, `simulation`, `tables` or `billion`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from bench.out_of_core import FITS

BENCH = Path(__file__).parents[2] / "bench"
BILLION = 10**9
Record = Mapping[str, Any]


def costs(scale: Record) -> str:
    """What an instance costs, whatever the size of its bag."""
    each = {call["size"]: 1e9 * call["seconds"] / call["instances"] for call in scale["costs"]}
    together = [each[size] for size in each if size > 1]
    return (
        f"A bag of one instance costs {each[1]:.0f} ns, value and gradient. In bags of 10 to {max(each):,} an instance "
        f"costs {max(together):.0f} to {min(together):.0f} ns, so the size of these bags hardly matters "
        f"(`bench/scale.json`)."
    )


def simulation(scale: Record) -> str:
    """The run on instances that were drawn on the fly."""
    run, spent = scale["simulation"], scale["simulation"]["seconds"]
    return (
        f"**{run['rows'] / 1e6:.0f} million instances in {run['bags'] / 1e6:g} million bags of 100**, ten features, "
        f"drawn when a step needs them and then discarded: one epoch of a logistic model in {run['steps']} steps of "
        f"Adam. On one thread, drawing the data took {spent['drawing']:.1f} s, the loss and its gradient "
        f"{spent['loss and gradient']:.1f} s, and the model {spent['model']:.1f} s; at most {run['peak'] / 1e9:.1f} GB "
        f"were in memory. The largest error of a weight was {run['largest error of a weight']:.3f} after that one "
        f"pass, which saw only counts (`bench/scale.json`)."
    )


def tables(large: Record, planned: Iterable[str] = ()) -> str:
    """What the fits to a table in files took, and which planned fits have no record."""
    said = []
    for name in dict.fromkeys([*planned, *large["fits"]]):
        fit = large["fits"].get(name)
        if fit is None:
            said.append(f"- {name[0].upper()}{name[1:]}: not run to its end yet.")
            continue
        said.append(
            f"- **{name[0].upper()}{name[1:]}**: at most {fit['peak'] / 1e9:.2f} GB, of which "
            f"{fit['anonymous'] / 1e9:.2f} GB anonymous, which the system cannot reclaim; {fit['seconds'] / 60:.0f} "
            f"minutes in all, {fit['processor'] / 60:.0f} of them processor time."
        )
    matrix = 4 * large["columns"] * large["rows"] / 1e9
    return (
        f"{large['rows'] / 1e6:g} million rows of {large['columns']} columns in bags of {large['bag']}, "
        f"{large['bytes'] / 1e9:.1f} GB of Parquet in {large['files']} files, {matrix:.1f} GB as a matrix "
        f"(`bench/out_of_core.json`; the machine was busy with other work, so the minutes in all are upper bounds):\n\n"
        + "\n".join(said)
    )


def billion(scale: Record, large: Record) -> str:
    """What follows for a billion rows, if everything grows in step with them."""
    run = scale["simulation"]
    per_row = {name: spent / run["rows"] * BILLION for name, spent in run["seconds"].items()}
    rows = [
        "| a billion rows in bags of 100, extrapolated | processor time of one thread | memory |",
        "|---|---|---|",
        f"| loss and gradient of all bags, once | {per_row['loss and gradient']:.0f} s | that of a batch |",
        f"| an epoch of a logistic model, data at hand | {per_row['loss and gradient'] + per_row['model']:.0f} s "
        f"| that of a batch |",
    ]
    factor = BILLION / large["rows"]
    for name, fit in large["fits"].items():
        rows.append(
            f"| {name}, {large['columns']} columns | {factor * fit['processor'] / 3600:.1f} h "
            f"| {factor * fit['anonymous'] / 1e9:.0f} GB |"
        )
    return "\n".join(rows)


def _record(name: str) -> Any:
    return json.loads((BENCH / f"{name}.json").read_text())


MADE: dict[str, Callable[[], str]] = {
    "costs": lambda: costs(_record("scale")),
    "simulation": lambda: simulation(_record("scale")),
    "tables": lambda: tables(_record("out_of_core"), FITS),
    "billion": lambda: billion(_record("scale"), _record("out_of_core")),
}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill the places of a page; an unknown name stops the build."""
    return re.sub(r"^<!-- scale: (\w+) -->$", lambda found: MADE[found[1]](), markdown, flags=re.M)
