"""The oldest versions that kofn says it works with, as constraints for pip: `python -m release.lowest`.

They are read off the installed kofn. Arguments such as ``torch==2.13.0`` stand in place of their package's own.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import requires

from packaging.requirements import Requirement


def lowest(requirements: Sequence[str], extra: str) -> dict[str, str]:
    """Constraints, by package, of what kofn with an extra requires, and of what the extras in it require.

    Examples:
        >>> found = ["torch>=2.4", "rich>=13; extra == 'cli'", "kofn[cli]; extra == 'all'", "ruff>=1; extra == 'lint'"]
        >>> lowest(found, "all")
        {'torch': 'torch==2.4', 'rich': 'rich==13'}
    """
    constraints: dict[str, str] = {}
    for each in map(Requirement, requirements):
        if each.marker is None or each.marker.evaluate({"extra": extra}):
            for bound in each.specifier:
                constraints[each.name] = f"{each.name}=={bound.version}"
            for inner in sorted(each.extras) if each.name == "kofn" else ():
                constraints |= lowest(requirements, inner)
    return constraints


if __name__ == "__main__":
    instead = {Requirement(word).name: word for word in sys.argv[1:]}
    print("\n".join((lowest(requires("kofn") or [], "all") | instead).values()))
