"""Figures of a page are drawn from the page's own code: its blocks are run, and their names are drawn."""

from __future__ import annotations

import os
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1]
sys.path.append(str(FOLDER / "hooks"))
from outputs import BLOCK, printed  # noqa: E402


@cache
def after(page: str, blocks: int) -> dict[str, Any]:
    """The names of a page, such as "guides/noisy", after its first blocks."""
    names: dict[str, Any] = {}
    codes = [found["code"] for found in BLOCK.finditer((FOLDER / f"{page}.md").read_text())][:blocks]
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # for files that a page writes
        try:
            for code in codes:
                printed(code, names)
        finally:
            os.chdir(here)
    return names
