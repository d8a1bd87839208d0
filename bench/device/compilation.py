"""What Triton's compiler makes of the kernel for a GPU that need not be there: registers, stack, float32 arithmetic."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

TARGETS = (80, 90)  # A100 and H100
#: What libdevice does with the upper half of a float64, and loads, stores and conversions of the logits themselves.
HARMLESS = {"abs", "setp", "cvt", "mov", "ld", "st"}


class Compiled(NamedTuple):
    """One compilation of the kernel."""

    target: int
    one: bool  # count, or an interval
    block: int
    dtype: str
    registers: int  # of a thread, 255 at most
    stack: int  # bytes of a thread; 40 are those of cos and sin for large angles, more are spilled registers
    float32: list[str]  # instructions that compute in float32
    has_two_pi: bool  # in float64: whether constants kept their digits


def float32_arithmetic(ptx: str) -> list[str]:
    """The instructions that compute in single or half precision.

    Examples:
        >>> float32_arithmetic("@%p1 add.rn.f32 %f1, %f2, %f3; cvt.f64.f32 %d1, %f1; fma.rn.f64 %d1, %d2, %d3, %d4;")
        ['add.rn.f32']
    """
    found = re.findall(r"\b([a-z]\w*(?:\.\w+)*\.b?f(?:16|32)(?:x2)?)\b", ptx)
    return sorted({instruction for instruction in found if instruction.split(".")[0] not in HARMLESS})


def compile_for(target: int, *, one: bool, size: float, dtype: str) -> Compiled:
    """Compile the kernel with value and gradient of ragged bags, as it is launched for bags of this size."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from kofn.contrib._triton_kernel import interval_kernel
    from kofn.contrib.triton import plan

    options = plan(one=one, size=size)
    constants = {"RAGGED": True, "GRADIENT": True} | {name: v for name, v in options.items() if name.isupper()}
    number = f"*{dtype}"
    types = {"x_ptr": number, "offsets_ptr": "*i64", "length": "i32", "low_ptr": "*i64", "high_ptr": "*i64"}
    types |= {"value_ptr": number, "gradient_ptr": number} | dict.fromkeys(constants, "constexpr")
    made: Any = triton.compile(
        ASTSource(interval_kernel, types, constants),
        target=GPUTarget("cuda", target, 32),
        options={name: v for name, v in options.items() if not name.isupper()},
    )
    ptx = made.asm["ptx"]
    registers, stack = _resources(made.asm["cubin"], Path(triton.__file__).parent)
    two_pi = "0d401921FB54442D18" in ptx
    return Compiled(target, one, options["BLOCK"], dtype, registers, stack, float32_arithmetic(ptx), two_pi)


def _resources(cubin: bytes, triton: Path) -> tuple[int, int]:
    """Registers and bytes of stack of a thread, from the program that the GPU would be given."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        tool = triton / "backends/nvidia/bin/cuobjdump"
        said = subprocess.run([tool, "--dump-resource-usage", file.name], capture_output=True, text=True, check=True)
    found = re.search(r"Function interval_kernel:\s+REG:(\d+) STACK:(\d+)", said.stdout)
    if found is None:
        raise ValueError(f"cuobjdump said nothing of registers: {said.stdout!r}")
    return int(found[1]), int(found[2])


def main(arguments: Sequence[str] | None = None) -> None:
    """One line of JSON for each compilation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, nargs="+", default=[8.0, 1000.0], help="of a bag")
    parser.add_argument("--dtype", nargs="+", default=["fp32", "fp64"], help="of the logits")
    options = parser.parse_args(arguments)
    for target, one, size, dtype in product(TARGETS, (True, False), options.size, options.dtype):
        print(json.dumps(compile_for(target, one=one, size=size, dtype=dtype)._asdict()), flush=True)


if __name__ == "__main__":
    main()
