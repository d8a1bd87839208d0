"""Wheels have the library, whole, and nothing of the laboratory; with the core they need no compiler."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import kofn
from kofn.counts import _native
from release.contents import CORE, require_contents, sizes
from release.install import in_place

ROOT = Path(__file__).parents[1]
pytest.importorskip("scikit_build_core", reason="scikit-build-core is not installed: pip install -e '.[test]'")


def build_wheel(out: Path, *, native: bool) -> Path:
    build = "import sys; from scikit_build_core.build import build_wheel; build_wheel(sys.argv[1])"
    environment = os.environ | {"KOFN_NATIVE": str(int(native))}
    subprocess.run([sys.executable, "-c", build, str(out)], cwd=ROOT, env=environment, check=True, capture_output=True)
    (wheel,) = out.glob("*.whl")
    return wheel


def files_of_library() -> set[str]:
    files = (path for path in (ROOT / "src").rglob("*") if path.is_file() and path.suffix not in (".pyc", ".so"))
    return {path.relative_to(ROOT).as_posix() for path in files}


def test_the_wheel_has_the_library_alone(tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path, native=False)
    assert wheel.name == f"kofn-{kofn.__version__}-py3-none-any.whl"
    require_contents(tmp_path, files_of_library())
    with zipfile.ZipFile(wheel) as archive:
        texts = {name: archive.read(name).decode() for name in sizes(wheel) if name.endswith(".py")}
    for name in sizes(wheel):
        assert not {"experiments", "paper", "results", "models", "batches"} & set(Path(name).parts), name
    for word in ("MutualContaminationKernelMachine", "auc_rounded", "cifar_resnet18", "mnist_convnet"):
        assert [name for name, text in texts.items() if word in text] == []


@pytest.mark.slow
@pytest.mark.skipif(not _native.available, reason="the C++ core is not built")
def test_the_wheel_with_the_core_works_where_there_is_no_compiler(tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path / "dist", native=True)
    require_contents(tmp_path / "dist", files_of_library())
    assert CORE in sizes(wheel)
    place = tmp_path / "fresh"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "install", "-q"]
    subprocess.run([*pip, "--no-index", "--no-deps", str(wheel)], check=True)
    # What kofn needs is borrowed from here; installing PyTorch anew is left to `make release`.
    (packages,) = place.glob("lib/python*/site-packages")
    (packages / "borrowed.pth").write_text(sysconfig.get_path("platlib"))
    said = in_place(place, "python", "-I", str(ROOT / "release" / "smoke.py"), kofn.__version__, "native")
    assert said.startswith(f"kofn {kofn.__version__} on Python")
    installed = in_place(place, "python", "-I", "-c", "import kofn; print(kofn.__file__)")
    assert Path(installed.strip()) == packages / "kofn" / "__init__.py"


def test_what_does_not_belong_into_a_wheel_is_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "kofn-1-py3-none-any.whl", "w") as archive:
        archive.writestr("kofn/__init__.py", "")
        archive.writestr("kofn/secret.py", "")
    with pytest.raises(RuntimeError, match=r"any.whl: \['kofn/secret.py'\] must not be in it, \['kofn/bags.py'\] must"):
        require_contents(tmp_path, {"src/kofn/__init__.py", "src/kofn/bags.py", "README.md"})
