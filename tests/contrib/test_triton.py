"""The Triton kernel: right in Triton's interpreter, and compiled as it should be for GPUs that are not here.

What neither sees: launches, streams, speed, and the last digits of a GPU's exp, log, sin and cos.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from child_processes import finish, start

from bench.device.compilation import float32_arithmetic

pytest.importorskip("triton")


@pytest.mark.slow
def test_in_the_interpreter() -> None:
    script = "import pytest; sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '-n', '0', sys.argv[1]]))"
    said = finish(start(script, Path(__file__).with_name("triton_in_interpreter.py"), TRITON_INTERPRET=1), seconds=600)
    assert " passed" in said
    assert " skipped" not in said


@pytest.mark.slow
def test_cpu_tensors_without_the_interpreter() -> None:
    script = """
from kofn.contrib.triton import log_count_prob
try:
    log_count_prob(torch.zeros(3), 1)
except ValueError as error:
    print(error)
"""
    said = finish(start(script, TRITON_INTERPRET=0), seconds=600)
    assert said.startswith("`logits` must be on a CUDA device for kofn.contrib.triton; they are on cpu. Move")


def test_arithmetic_in_float32_is_found() -> None:
    assert float32_arithmetic("sub.f32 %f1, %f2, %f3;\n@%p2 fma.rn.ftz.f32 %f1;\nadd.f64 %d1;") == [
        "fma.rn.ftz.f32",
        "sub.f32",
    ]
    assert float32_arithmetic("\tmul.rn.f16x2 %r1;\n\tcvt.f64.f32 %d1, %f1;\n\tsetp.lt.f32 %p1;") == ["mul.rn.f16x2"]


@pytest.mark.slow
def test_the_kernel_compiles_for_gpus_that_are_not_here(tmp_path: Path) -> None:
    """For A100 and H100, one count and an interval: all in float64, with registers to spare."""
    script = "from bench.device.compilation import main; main(['--size', '1000', '--dtype', 'fp32'])"
    said = finish(start(script, TRITON_INTERPRET=0, TRITON_CACHE_DIR=tmp_path), seconds=600)
    found = [json.loads(line) for line in said.splitlines()]
    assert [(made["target"], made["one"]) for made in found] == [(80, True), (80, False), (90, True), (90, False)]
    for made in found:
        assert made["float32"] == []
        assert made["has_two_pi"]
        assert made["registers"] <= 255
        assert made["stack"] <= 64  # cos and sin of large angles take 40; where registers ran out it was 136 and more
