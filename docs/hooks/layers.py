"""The layers of kofn: the one list that the import test enforces and the picture of the architecture draws.

It lies beside the documentation's hooks because both readers can import it from here: mkdocs puts the folder of a hook
on the path, and pytest has it in `pythonpath`.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "kofn"

# Each layer may import from the lines above it, never from those below; modules of a line may share.
LAYERS = [
    ["_require", "_checks._tensors", "_checks._options", "_checks._estimators"],
    ["_checks._labels"],
    ["_checks"],
    ["counts._bags", "counts._tilt", "counts._eager", "counts._layout", "counts._native"],
    ["counts._tree", "counts._window"],
    ["counts._interval", "counts._sweep"],
    ["counts._functions", "counts._backend"],
    ["counts._by_torch"],
    ["counts._by_native"],
    ["counts._law"],
    ["counts"],
    ["_segments"],
    ["_at_least_one", "_discrete_laplace", "_facts", "_atomic_folder", "bags._names"],
    ["bags._bags"],
    ["bags"],
    ["_model_folder", "batches._datasets"],
    ["batches._samplers"],
    ["batches"],
    ["distributions._instances", "models._networks", "metrics._labels", "metrics._counts", "targets"],
    ["distributions._poisson_binomial", "distributions._conditional_bernoulli"],
    ["models._attention", "models._registry"],
    ["distributions._divergences"],
    ["losses.count"],
    ["losses.llp"],
    ["losses.mil", "losses.pu", "losses.kernel"],
    ["losses.modules"],
    ["distributions", "losses", "metrics", "models"],
    ["datasets._downloads", "datasets._draws"],
    ["datasets._labelled", "datasets._tasks", "datasets._augment", "datasets._colon"],
    ["datasets._task_makers"],
    ["datasets._adult", "datasets._magic", "datasets._mnist", "datasets._cifar10", "datasets._bundled"],
    ["datasets"],
    [""],
    ["training._require_lightning", "training._objectives", "training._stopping", "training._schedules"],
    ["training._module", "training._data_module", "training._checkpoints"],
    ["training._trainer"],
    ["training"],
    [
        "estimators._require_sklearn",
        "estimators._fit_identity",
        "estimators._row_labels",
        "estimators._network",
        "estimators._saving",
    ],
    ["estimators._count_classifier"],
    [
        "estimators._llp_classifier",
        "estimators._mil_classifier",
        "estimators._pu_classifier",
        "estimators._grid_search",
    ],
    ["estimators"],
    ["report._contents"],
    ["report._images", "report._count_distributions", "report._plot"],
    ["report._bag_rows", "report._comparison", "report._examples", "report._figures"],
    ["report._distribution_figures"],
    ["report._build", "report._page"],
    ["report"],
    ["tables._table_file"],
    ["tables._encoder", "tables._writing"],
    ["tables._reading"],
    ["tables._label_columns", "tables._measures", "tables._table_model"],
    ["tables._fit_table", "tables._predict_table"],
    ["tables._evaluate_table"],
    ["tables._report_table", "demo"],
    ["tables"],
    ["experiments._published", "experiments._outcome", "experiments._recipes", "experiments._captions"],
    ["experiments._cells"],
    [
        "experiments._llp_runs",
        "experiments._mil_runs",
        "experiments._pu_runs",
        "experiments._colon_runs",
        "experiments._records",
    ],
    ["experiments._figure_runs", "experiments._summary"],
    ["experiments._run", "experiments._paper_figures", "experiments._table_layout"],
    ["experiments._findings"],
    ["experiments._grid", "experiments._report"],
    ["experiments._reproduce"],
    ["experiments"],
    ["cli._app", "cli._options", "cli._progress", "cli._screen"],
    [
        "cli._data_command",
        "cli._demo_command",
        "cli._evaluate_command",
        "cli._info_command",
        "cli._predict_command",
        "cli._report_command",
        "cli._reproduce_command",
    ],
    ["cli._fit_command"],
    ["cli._commands"],
    ["cli"],
    ["__main__"],
]
DEPTH = {name: depth for depth, names in enumerate(LAYERS) for name in names}


def modules() -> dict[str, Path]:
    """Every module of kofn by its name inside the package, and its file; the package itself is ""."""
    return {_name(path): path for path in sorted(SOURCE.rglob("*.py"))}


def _name(path: Path) -> str:
    parts = list(path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(code: str, package: str) -> set[str]:
    """Modules of kofn that a file imports, inside functions too; what only the type checker reads is left out.

    Args:
        code: the text of the file.
        package: where it lies inside kofn, for relative imports: "counts" for `kofn/counts/_law.py`, "" at the top.
    """
    tree = ast.parse(code)
    tree.body = [
        node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
    ]
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = ["kofn", *filter(None, package.split("."))]
                base = ".".join([*above[: len(above) - node.level + 1], *filter(None, [base])])
            inside = {f"{base}.{alias.name}" for alias in node.names}
            found |= {name if name.removeprefix("kofn.") in DEPTH else base for name in inside}
    return {name.removeprefix("kofn").lstrip(".") for name in found if name.split(".")[0] == "kofn"}


def imports_of(name: str, path: Path) -> set[str]:
    """Modules of kofn that a module of it imports."""
    return imports(path.read_text(), name if path.name == "__init__.py" else name.rpartition(".")[0])


def wrong(name: str, imported: set[str]) -> list[str]:
    """What is wrong with the imports of a module: one sentence for each, none if all point downwards."""
    if name not in DEPTH:
        return [f"{name} has no layer: add it to LAYERS in docs/hooks/layers.py"]
    return [
        f"{name} imports {other}, which is not below it"
        for other in sorted(imported)
        if DEPTH.get(other, len(LAYERS)) >= DEPTH[name]
    ]


def packages() -> dict[str, str]:
    """Top-level packages and modules of kofn with the first line of their docstring, `native` included."""
    found = {}
    for name, path in modules().items():
        if "." not in name and name != "__main__":
            found[name] = (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n")[0]
    comment = (ROOT / "native" / "include" / "kofn.h").read_text().split("\n")[0]
    found["native"] = "C++ core: " + comment.removeprefix("/* kofn:").strip()
    return {name: purpose.replace("`", "") for name, purpose in found.items()}


def package_imports() -> dict[str, set[str]]:
    """Which top-level package imports which, read from the code of all their modules."""
    found: dict[str, set[str]] = {name: set() for name in packages()}
    for name, path in modules().items():
        package = name.split(".")[0]
        if package in found:
            found[package] |= {other.split(".")[0] for other in imports_of(name, path)} - {package, ""}
    # The core is no module: it is loaded, with ctypes, by the module that is named for it.
    found["counts"] |= {"native"} if "counts._native" in modules() else set()
    return found
