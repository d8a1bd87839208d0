"""Is kofn right on a device, and how fast? Runs every way there is and prints a report to paste into an issue."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial

import torch

from bench.device import checks
from bench.device.routes import Answer, Route, describe, has_triton, require_device, routes
from bench.record import Rows, machine, markdown
from bench.speed import medians


class Report:
    """Lines of Markdown, and what was wrong."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.wrong: list[str] = []

    def attempt(self, name: str, what: Callable[[], str]) -> str:
        """What came of it, or in a few words why nothing did: one failure must not hide the other figures."""
        try:
            return what()
        except Exception as error:
            self.wrong.append(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
            return "failed"

    def check(self, name: str, distance: float, bound: float) -> None:
        """Note a distance beyond its bound."""
        if not distance <= bound:
            self.wrong.append(f"{name}: {distance:.0e}, where at most {bound:.0e} is right")


def milliseconds(report: Report, way: Route, case: checks.Case, right: Answer, seconds: float) -> str:
    """The time of a case in float32, once its answer in float64 is right."""
    bound = 1e-5 if way.device == "mps" else checks.SAME
    report.check(f"{way}, {case.name}", checks.apart(checks.answer(way, case), right), bound)
    if way.interpreted:
        return "not timed"
    run = way.prepare(case.logits, case.counts, case.offsets)
    return f"{medians({'': run}, seconds=seconds, clock=way.clock)['']:.3f}"


def speed(report: Report, ways: Sequence[Route], *, quick: bool) -> Rows:
    """Milliseconds of value and gradient of every way, each compared with the first."""
    rows = [["milliseconds of value and gradient, float32", *map(str, ways)]]
    for case in checks.cases(quick=quick):
        right, row = checks.answer(ways[0], case), [case.name]
        for way in ways:
            if way.interpreted and case.logits.numel() > checks.INTERPRETABLE:
                row.append("-")
                continue
            time_it = partial(milliseconds, report, way, case, right, 0.1 if quick else 1.0)
            row.append(report.attempt(f"{way}, {case.name}", time_it))
        rows.append(row)
    return rows


def on_cuda(report: Report, ways: Sequence[Route]) -> Rows:
    """What only a CUDA device can say of each way: how often the host waits, and whether it is captured as a graph."""
    rows = [["128 x 512 on cuda", "waits of the host", "captured as a graph"]]
    case = checks.Case("128 x 512", [512] * 128)
    for way in ways:
        if way.device == "cuda":
            reads = report.attempt(f"{way}, waits", partial(checks.host_reads, way, case))
            rows.append([str(way), reads, report.attempt(f"{way}, graph", partial(checks.captured, way, case))])
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print; 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu", "mps"), default="cuda", help="to look at")
    parser.add_argument("--bags", type=int, default=2000, help="awkward bags for the comparison with the oracle")
    parser.add_argument("--interpreted", type=int, default=20, help="as many in Triton's interpreter, on the CPU")
    parser.add_argument("--quick", action="store_true", help="small cases only")
    options = parser.parse_args(arguments)
    require_device(options.device)
    torch.set_num_threads(1)
    torch._dynamo.config.recompile_limit = 64  # the cases have many shapes
    report, ways = Report(), routes(options.device)
    triton = f"triton {__import__('triton').__version__}" if has_triton() else "no triton"
    rows, wrong = checks.against_the_oracle(ways, options.bags, options.interpreted)
    report.wrong += wrong
    tables = [rows, speed(report, ways, quick=options.quick)]
    if options.device == "cuda":
        tables.append(on_cuda(report, ways))
    parts = [f"{machine()}; {triton}; {describe(options.device)}.", *map(markdown, tables)]
    if options.device != "mps":  # which networks do not train on

        def train() -> str:
            loss, seconds = checks.training(options.device)
            report.check("validation loss of a network", loss, 0.05)
            return f"{seconds:.1f} s, validation loss {loss:.0e} from that on the CPU"

        parts.append(f"A small network on {options.device}: {report.attempt('a network', train)}.")
    verdict = [f"Wrong: {len(report.wrong)}", *report.wrong[:20]] if report.wrong else ["Everything is right."]
    print("\n\n".join([*parts, *verdict]))
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
