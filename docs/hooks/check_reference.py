"""Fail when a public name of kofn is not in the built reference: run by `make docs` after mkdocs."""

from __future__ import annotations

import sys
import zlib
from importlib import import_module
from pathlib import Path

MODULES = [
    f"kofn.{name}"
    for name in (
        "counts", "targets", "losses", "distributions", "metrics", "models", "bags", "batches", "datasets", "training",
        "estimators", "report", "tables", "experiments",
    )
]  # fmt: skip


def documented(inventory: Path) -> set[str]:
    """The names in an inventory of objects, as Sphinx and mkdocstrings write it: four plain lines, then zlib."""
    body = inventory.read_bytes().split(b"\n", 4)[4]
    return {line.split(" ")[0] for line in zlib.decompress(body).decode().splitlines()}


def main() -> None:
    """Name what is missing and leave with an error."""
    there = documented(Path("site/objects.inv"))
    missing = [f"{module}.{name}" for module in MODULES for name in import_module(module).__all__]
    missing = [name for name in missing if name not in there]
    if missing:
        sys.exit("not in docs/reference.md: " + ", ".join(missing))
    print(f"every public name of {', '.join(MODULES)} is in the reference")


if __name__ == "__main__":
    main()
