"""Python processes of their own that see the same kofn, tests and C++ core as this one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import kofn
from kofn.counts import _native

PRELUDE = """
import sys
sys.meta_path = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]  # another's sources
import warnings, torch
warnings.simplefilter("error")
torch.set_num_threads(1)
"""


def environment() -> dict[str, str]:
    """What lets another process see the same kofn, tests and C++ core."""
    folders = [Path(kofn.__file__).parents[1], Path(__file__).parent, Path(__file__).parents[1]]
    found = {"PYTHONPATH": os.pathsep.join(map(str, folders)), "OMP_NUM_THREADS": "1"}
    return found | ({"KOFN_LIBRARY": _native._library._name} if _native.available else {})


def start(script: str, *arguments: Any, **variables: Any) -> subprocess.Popen[bytes]:
    """Run a script; its arguments are sys.argv[1:]."""
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + script, *map(str, arguments)],
        env=os.environ | environment() | {name: str(value) for name, value in variables.items()},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def finish(process: subprocess.Popen[bytes], *, seconds: float = 120) -> str:
    """Wait for the end, which must be a good one; what was printed."""
    try:
        said = process.communicate(timeout=seconds)[0].decode()
    finally:
        process.kill()
    assert process.returncode == 0, said
    return said
