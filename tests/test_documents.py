"""Every Python block of the README and the documentation runs as written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_blocks_run(page: Path) -> None:
    names: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.S | re.M):
        exec(compile(block, str(page), "exec"), names)
