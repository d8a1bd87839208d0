"""A file's name says its purpose: no two files of the library have the same one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import kofn

SOURCE = Path(kofn.__file__).parent
EVERYWHERE = {"__init__.py", "__main__.py"}  # what Python asks a package to have


def test_names_of_files_are_unique() -> None:
    names = Counter(path.name for path in SOURCE.rglob("*.py") if path.name not in EVERYWHERE)
    assert [name for name, times in names.items() if times > 1] == []
