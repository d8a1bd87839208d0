"""Imports only point downwards, and `import kofn` brings torch and numpy only."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import kofn

ROOT = Path(kofn.__file__).parent

# Each layer may import from the lines above it, never from those below; modules of a line may share.
LAYERS = [
    ["_checks._tensors", "_checks._options", "_checks._data", "_checks._estimators"],
    ["_checks._labels", "_checks._tasks"],
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
    ["_at_least_one", "_discrete_laplace", "_facts", "_whole_folder", "bags"],
    ["_model_folder", "batches._data"],
    ["batches._plans"],
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
    ["datasets._files", "datasets._draws"],
    ["datasets._labelled", "datasets._tasks", "datasets._augment", "datasets._colon"],
    ["datasets._adult", "datasets._magic", "datasets._mnist", "datasets._cifar10", "datasets._bundled"],
    ["datasets"],
    [""],
    ["training._needs", "training._objectives", "training._stopping"],
    ["training._module", "training._data", "training._checkpoints"],
    ["training._fit"],
    ["training"],
    ["estimators._needs", "estimators._labels", "estimators._network", "estimators._saving"],
    ["estimators._base"],
    ["estimators._llp", "estimators._mil", "estimators._pu", "estimators._search"],
    ["estimators"],
    ["report._data"],
    ["report._images", "report._laws", "report._plot"],
    ["report._bag_rows", "report._comparison", "report._examples", "report._figures"],
    ["report._law_figures"],
    ["report._build", "report._page"],
    ["report"],
    ["tables._files"],
    ["tables._encoder", "tables._writing"],
    ["tables._reading"],
    ["tables._labels", "tables._measures", "tables._model"],
    ["tables._fit", "tables._predict"],
    ["tables._evaluate"],
    ["tables._report", "demo"],
    ["tables"],
    ["experiments._published", "experiments._outcome", "experiments._recipes", "experiments._words"],
    ["experiments._cells"],
    ["experiments._llp", "experiments._mil", "experiments._pu", "experiments._colon", "experiments._records"],
    ["experiments._figure_runs", "experiments._summary"],
    ["experiments._run", "experiments._figures", "experiments._layout"],
    ["experiments._findings"],
    ["experiments._grid", "experiments._report"],
    ["experiments._reproduce"],
    ["experiments"],
    ["cli._app", "cli._options", "cli._progress", "cli._screen"],
    ["cli._data", "cli._demo", "cli._evaluate", "cli._info", "cli._predict", "cli._report", "cli._reproduce"],
    ["cli._fit"],
    ["cli._commands"],
    ["cli"],
    ["__main__"],
]
DEPTH = {name: depth for depth, names in enumerate(LAYERS) for name in names}


def module_name(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> set[str]:
    """Modules of kofn that a file imports, in any function too."""
    found = set()
    tree = ast.parse(path.read_text())
    tree.body = [
        node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "kofn":
            base = node.module.removeprefix("kofn").lstrip(".")
            names = {f"{base}.{alias.name}".lstrip(".") for alias in node.names}
            found |= {name if name in DEPTH else base for name in names}
        elif isinstance(node, ast.Import):
            found |= {
                alias.name.removeprefix("kofn").lstrip(".") for alias in node.names if alias.name.startswith("kofn")
            }
    return found


def test_every_module_has_a_layer_and_imports_downwards() -> None:
    for path in sorted(ROOT.rglob("*.py")):
        name = module_name(path)
        assert name in DEPTH, f"{name} has no layer: add it to LAYERS"
        for imported in imports(path):
            assert DEPTH[imported] < DEPTH[name], f"{name} imports {imported}, which is not below it"


def test_files_stay_short() -> None:
    for path in ROOT.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 320, f"{path.name} has grown out of one purpose"


def test_import_brings_torch_and_numpy_only() -> None:
    code = (
        "import sys, kofn; heavy = {'scipy', 'sklearn', 'pandas', 'matplotlib', 'lightning', 'torch._dynamo'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
