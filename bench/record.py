"""What a benchmark leaves behind: the machine, tables in Markdown, a record in JSON."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import torch

import kofn
from kofn._atomic_write import atomic_write

Rows = list[list[str]]


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


def commit() -> str:
    """The commit whose code is measured, with a plus when `src` differs from it."""
    here = Path(__file__).parent.parent

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=here, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "--short=10", "HEAD") + ("+" if git("status", "--porcelain", "src", "native") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


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
