"""What a benchmark leaves behind: the machine, tables in Markdown, a record in JSON."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import torch

import kofn
from kofn._io.atomic_write import atomic_write

ROOT = Path(__file__).parents[1]
Rows = list[list[str]]

_COUNTS = ("native", "src/kofn/counts")
_FITS = ("src/kofn/estimators", "src/kofn/learners")
# The code that each record is about, by the name of its file. The documentation says how often it has changed since.
SPEAKS_OF: dict[str, tuple[str, ...]] = {
    "bag_effect": (*_COUNTS, *_FITS),
    "class_counts": ("native", "src/kofn/classes"),
    "class_limit": ("native", "src/kofn/classes"),
    "cluster": _FITS,
    "cold": _COUNTS,
    "forge": _FITS,
    "fuzz": _COUNTS,
    "fuzz_triton": ("src/kofn/counts",),
    "honest": _FITS,
    "impressions": (*_FITS, "src/kofn/tables"),
    "intervals": _FITS,
    "large_bag": _COUNTS,
    "latest": _COUNTS,
    "mixture": _FITS,
    "out_of_core": (*_FITS, "src/kofn/tables"),
    "penalty": _FITS,
    "precincts": (*_FITS, "src/kofn/cli", "src/kofn/tables"),
    "random_columns": _FITS,
    "scale": _COUNTS,
    "scaling": _COUNTS,
    "search": (*_FITS, "src/kofn/model_selection"),
    "selection": ("src/kofn/metrics",),
    "slides": _FITS,
    "startup": ("src/kofn",),
    "training": ("src/kofn/learners",),
    "two_groups": (*_COUNTS, *_FITS),
}


def machine() -> str:
    """Where and with what the numbers were made."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text().splitlines()
        cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), cpu)
    return (
        f"{cpu}, {os.cpu_count()} cores, one thread used; Python {platform.python_version()}, "
        f"torch {torch.__version__}, kofn {kofn.__version__} ({kofn.counts.backend()})"
    )


def git(*words: str, folder: Path = ROOT) -> str:
    """What git says, or nothing: there may be no git, no repository, and no such commit."""
    try:
        return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


@cache
def commit() -> str:
    """The commit whose code is measured, with a plus when `src` or `native` differs from it."""
    head = git("rev-parse", "--short=10", "HEAD")
    return head + ("+" if git("status", "--porcelain", "src", "native") else "") if head else "unknown"


commit()  # now, when the code is imported: there may be others by the time that a record is written


def markdown(rows: Rows) -> str:
    """A table, its first row the names of the columns."""
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write(out: Path, record: dict[str, Any], text: str) -> list[Path]:
    """Write ``out`` as .md and .json, with the commit, each under another name until it is whole."""
    written = []
    record = {"commit": commit()} | record
    for suffix, content in ((".md", text), (".json", json.dumps(record, indent=1) + "\n")):
        written.append(out.with_suffix(suffix))
        with atomic_write(written[-1]) as part:
            part.write_text(content)
    return written
