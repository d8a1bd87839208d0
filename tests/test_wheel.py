"""The wheel has the library, whole, and nothing of the laboratory: not the paper's tables, nor tests, nor benchmarks."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytest.importorskip("scikit_build_core", reason="scikit-build-core is not installed: pip install -e '.[test]'")


def test_the_wheel_has_the_library_alone(tmp_path: Path) -> None:
    build = "import sys; from scikit_build_core.build import build_wheel; build_wheel(sys.argv[1])"
    environment = os.environ | {"KOFN_NATIVE": "0"}  # the C++ core has tests of its own
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=ROOT, env=environment, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        texts = {name: archive.read(name).decode() for name in names if name.endswith(".py")}
    files = (path for path in (ROOT / "src").rglob("*") if path.is_file() and path.suffix not in (".pyc", ".so"))
    assert names == {path.relative_to(ROOT / "src").as_posix() for path in files}
    assert {name.split("/")[0] for name in names} == {"kofn"}
    for name in names:
        assert not {"experiments", "paper", "results", "models", "batches"} & set(Path(name).parts), name
    for word in ("MutualContaminationKernelMachine", "auc_rounded", "cifar_resnet18", "mnist_convnet"):
        assert [name for name, text in texts.items() if word in text] == []
