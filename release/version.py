"""The version stands in src/kofn/__init__.py, and what repeats it must agree.

`python -m release.version` prints it; with a tag, such as v0.1.0, it fails unless the tag is that of the version.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

# Where the version or its date is said again, and how it stands there.
REPEATED = {
    "CITATION.cff": r"^version: (?P<version>\S+)\ndate-released: (?P<date>\S+)$",
    "CHANGELOG.md": r"^## (?P<version>\d\S*) \((?P<date>[\d-]+)\)$",  # the newest is the first
}


def version_of(root: Path) -> str:
    """The version of the sources in `root`; one that CITATION.cff or CHANGELOG.md contradicts is a ValueError."""
    source = (root / "src" / "kofn" / "__init__.py").read_text()
    (version,) = re.findall(r'^__version__ = "(.+)"$', source, re.MULTILINE)
    found = {name: re.search(pattern, (root / name).read_text(), re.MULTILINE) for name, pattern in REPEATED.items()}
    said = {name: match.group("version", "date") if match else None for name, match in found.items()}
    if len(set(said.values())) != 1 or any(match is None or match["version"] != version for match in found.values()):
        raise ValueError(f"kofn.__version__ is {version}, but the newest version and its date are said to be {said}")
    return str(version)


if __name__ == "__main__":
    version = version_of(Path.cwd())
    if sys.argv[1:] not in ([], [f"v{version}"]):
        sys.exit(f"the tag must be v{version}, after the version; got {sys.argv[1:]}")
    print(version)
