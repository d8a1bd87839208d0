"""`python -m bench.device` on the CPU, which stands for a device: it runs whole, and it can fail."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from child_processes import finish, start

from bench.device import checks
from bench.device.__main__ import Report, main, milliseconds
from bench.device.routes import Answer, Route


@pytest.mark.slow
def test_a_report_of_the_cpu() -> None:
    arguments = ["--device", "cpu", "--quick", "--bags", 6, "--interpreted", 2]
    quiet = "warnings.simplefilter('ignore')\n"  # torch's compiler warns of itself
    script = quiet + "from bench.device.__main__ import main; sys.exit(main(sys.argv[1:]))"
    said = finish(start(script, *arguments), seconds=600)
    assert said.rstrip().endswith("Everything is right.")
    for part in ("| torch on cpu | 6 | 0 |", "torch, compiled on cpu", "| 16 x 8 |", "A small network on cpu:"):
        assert part in said


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there() -> None:
    with pytest.raises(SystemExit, match=r"--device must be one that there is: cpu.*; got cuda"):
        main(["--device", "cuda"])


def test_a_wrong_answer_is_told() -> None:
    report, case, way = Report(), checks.Case("2 x 3", [3, 3]), Route("torch", "cpu")
    right = checks.answer(way, case)
    assert checks.apart(right, right) == 0
    float(milliseconds(report, way, case, right, 0.001))
    assert report.wrong == []
    milliseconds(report, way, case, Answer(right.value * (1 + 1e-9), right.gradient), 0.001)
    assert report.wrong[0].startswith("torch on cpu, 2 x 3: 1e-09, where at most 1e-11 is right")
    broken = Answer(right.value * torch.nan, right.gradient)
    assert checks.apart(broken, right) == torch.inf


def test_a_failure_is_told_and_hides_nothing() -> None:
    def fails() -> Any:
        raise RuntimeError("first line\n  second line" + 300 * "x")

    report = Report()
    assert report.attempt("a graph", fails) == "failed"
    assert report.wrong[0].startswith("a graph: RuntimeError: first line second linexxx")
    assert len(report.wrong[0]) < 330
