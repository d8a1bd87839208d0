"""Run every case, print two tables, write them as Markdown and JSON."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench import accuracy, speed
from bench.record import Rows, machine, markdown, write


def speed_rows(results: dict[str, dict[str, float]]) -> Rows:
    """Milliseconds of kofn, and how many times as long the others take."""
    others = ("algorithm 1", "scipy", "fast-poibin", "kofn in torch")
    rows = [
        ["case", "kofn, ms", "algorithm 1", "scipy*", "fast-poibin*", "kofn in torch", "kofn / floor", "/ equal bags"]
    ]
    for case, ms in results.items():
        ours = ms["kofn"]
        times = [times_as_long(ms[name] / ours) if name in ms else "-" for name in others]
        equal = f"{ours / ms['kofn, equal bags']:.2f}" if "kofn, equal bags" in ms else "-"
        rows.append([case, f"{ours:.3g}", *times, f"{ours / ms['floor']:.3g}", equal])
    return rows


def times_as_long(ratio: float) -> str:
    return f"{ratio:,.0f}x" if ratio >= 100 else f"{ratio:.3g}x"


def accuracy_rows(results: dict[str, accuracy.Errors]) -> Rows:
    names = list(next(iter(results.values())))
    rows = [["log p error / gradient error", *names]]
    for case, errors in results.items():
        cells = []
        for name in names:
            value, gradient = errors[name]
            cells.append(f"{value:.0e}" + ("" if gradient is None else f" / {gradient:.0e}"))
        rows.append([case, *cells])
    return rows


def section(title: str, rows: Rows) -> str:
    """A heading and a table, which the documentation can take by its name."""
    name = title.lower()
    return f"## {title}\n\n<!-- --8<-- [start:{name}] -->\n{markdown(rows)}\n<!-- --8<-- [end:{name}] -->"


def show(console: Console, title: str, rows: Rows) -> None:
    table = Table(title=title)
    for name in rows[0]:
        table.add_column(name)
    for row in rows[1:]:
        table.add_row(*row)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="run only the speed cases whose name contains this")
    parser.add_argument("--seconds", type=float, default=2.0, help="time to spend on each case")
    parser.add_argument(
        "--turn", type=float, default=5.0, help="milliseconds of calls in a row; 0: one call, cold caches"
    )
    parser.add_argument("--out", type=Path, default=Path("bench/latest"), help="where .md and .json go")
    options = parser.parse_args()
    torch.set_num_threads(1)
    console = Console()
    chosen = [(case, runs) for case, runs in speed.cases() if options.only in case]
    times = {
        case: speed.medians(speed.with_torch(runs), seconds=options.seconds, turn=options.turn / 1e3)
        for case, runs in track(chosen, "speed")
    }
    errors = dict(accuracy.cases())
    tables = {"Speed": speed_rows(times), "Accuracy": accuracy_rows(errors)}
    for title, rows in tables.items():
        show(console, title, rows)
    notes = (
        f"Medians of runs that take turns of {options.turn:g} ms in one process (0: one call). The columns of the "
        "others say how many times as long as kofn they take; `*` computes values only, without a gradient, while kofn "
        "and Algorithm 1 also go backward; `-` was not run. Errors of log p are relative to max(1, |log p|), of "
        "gradients absolute, against 50 digits."
    )
    text = "\n\n".join([f"{machine()}.", notes, *(section(title, rows) for title, rows in tables.items())])
    record = {"machine": machine(), "milliseconds": times, "errors": errors, "contenders": speed.NAMES}
    for target in write(options.out, record, text + "\n"):
        console.print(f"wrote {target}")


if __name__ == "__main__":
    main()
