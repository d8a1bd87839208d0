"""What the picture of the architecture shows: packages, their layers and their imports.

The layers are the contract in pyproject.toml that `make lint` enforces, the imports those of import-linter's graph.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import grimp
from importlinter.api import read_configuration

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "kofn"


def layers() -> list[list[str]]:
    """Packages and modules directly in kofn, the highest layer first; `native` is the last but one."""
    contracts = read_configuration(str(ROOT / "pyproject.toml"))["contracts_options"]
    written = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    found = [re.findall(r"\w+", layer) for layer in written]
    return [*found[:-1], ["native"], found[-1]]


def packages() -> dict[str, str]:
    """What each package of the layers is for, the first line of its docstring; the library itself is ""."""
    found = {name: _purpose(name) for name in ["", *(name for layer in layers() for name in layer)]}
    return {name: purpose.replace("`", "") for name, purpose in found.items()}


def _purpose(name: str) -> str:
    if name == "native":
        comment = (ROOT / "native" / "include" / "kofn.h").read_text().split("\n")[0]
        return "C++ core: " + comment.removeprefix("/* kofn:").strip()
    package = SOURCE / name / "__init__.py"
    code = (package if package.exists() else SOURCE / f"{name}.py").read_text()
    return (ast.get_docstring(ast.parse(code)) or "").split("\n")[0]


def package_imports() -> dict[str, set[str]]:
    """Which package imports which, in functions too; what only the type checker reads is left out."""
    graph = grimp.build_graph("kofn", exclude_type_checking_imports=True, cache_dir=None)
    modules = graph.find_children("kofn") - {"kofn.__main__"}
    for module in modules:
        graph.squash_module(module)  # a package becomes one node
    found = {
        module.removeprefix("kofn."): {
            other.removeprefix("kofn.") for other in graph.find_modules_directly_imported_by(module) - {module}
        }
        for module in modules
    }
    # The core is no module: counts loads it with ctypes.
    return found | {"counts": found["counts"] | {"native"}, "native": set()}
