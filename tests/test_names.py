"""A file's name says its purpose: no two files of the library have the same one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import kofn

SOURCE = Path(kofn.__file__).parent
EVERYWHERE = {"__init__.py", "__main__.py"}  # what Python asks a package to have
# Their files are being renamed, or deleted.
UNFINISHED = {"_checks", "counts", "distributions", "losses", "metrics", "targets"}


def test_names_of_files_are_unique() -> None:
    files = [path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] not in UNFINISHED]
    names = Counter(path.name for path in files if path.name not in EVERYWHERE)
    assert [name for name, times in names.items() if times > 1] == []
