"""Every Python block of the README and the documentation runs as written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import kofn

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page: Path) -> None:
    names: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.S | re.M):
        exec(compile(block, str(page), "exec"), names)


def test_every_public_name_is_in_the_reference() -> None:
    reference = (ROOT / "docs" / "reference.md").read_text()
    for module, names in (("kofn", kofn.__all__), ("kofn.counts", kofn.counts.__all__)):
        for name in names:
            if name != "counts":
                assert re.search(rf"^::: kofn(\.counts)?\.{name}$", reference, flags=re.M), f"{module}.{name}"
