"""Imports point downwards, the picture shows them, and `import kofn` brings torch and numpy only."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import layers
import picture
import pytest
import walk


def lint(source: Path) -> tuple[bool, str]:
    """Whether the package `kofn` in a folder keeps the contracts of this repository, and what import-linter says."""
    # -S leaves out the installed kofn, which would come before the one in the folder.
    folders = [str(source), str(layers.ROOT), sysconfig.get_path("purelib")]
    code = "from importlinter.cli import lint_imports_command as run; run()"
    out = subprocess.run(
        [sys.executable, "-S", "-c", code, "--no-cache", "--config", str(layers.ROOT / "pyproject.toml")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders), "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )
    return out.returncode == 0, out.stdout + out.stderr


@pytest.mark.slow
def test_the_contracts_hold() -> None:
    kept, said = lint(layers.SOURCE.parent)
    assert kept, said
    assert "0 broken" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "line", "broken"),
    [
        ("counts/_tilt.py", "import kofn.losses", "kofn.counts is not allowed to import kofn.losses"),
        ("counts/_tilt.py", "from ..losses import count_loss", "kofn.counts is not allowed to import kofn.losses"),
        ("counts/_tilt.py", "def f():\n    from kofn import cli", "kofn.counts is not allowed to import kofn.cli"),
        ("metrics/_calibration.py", "import kofn.losses", "kofn.metrics is not allowed to import kofn.losses"),
        ("counts/_tilt.py", "from kofn import LLPClassifier", "kofn.counts._tilt -> kofn ("),
        ("report/_contents.py", "from . import _build", "No circles inside a package BROKEN"),
        ("helpers.py", "", "- kofn.helpers"),
        ("counts/_tilt.py", "import paper.cells", "kofn is not allowed to import paper"),
    ],
    ids=["upwards", "relative", "in a function", "sideways", "the library itself", "circle", "no layer", "the paper"],
)
def test_a_wrong_import_breaks_a_contract(tmp_path: Path, file: str, line: str, broken: str) -> None:
    shutil.copytree(layers.SOURCE, tmp_path / "kofn", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    with (tmp_path / "kofn" / file).open("a") as opened:
        opened.write(f"\n{line}\n")
    kept, said = lint(tmp_path)
    assert not kept
    assert broken in said


def drawn(size: str) -> picture.Picture:
    return picture.draw(layers.layers(), layers.packages(), layers.package_imports(), links={}, size=size)


@pytest.mark.parametrize("size", picture.SIZES)
def test_the_picture_has_every_package_and_only_arrows_that_are_imports(size: str) -> None:
    shown = drawn(size)
    boxes = {box.name: box for box in shown.boxes}
    top_level = {
        path.stem for path in layers.SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert set(boxes) == top_level - {"__init__", "__main__"} | {"kofn", "native"}
    svg = shown.svg()
    for name, purpose in layers.packages().items():
        assert f">{name or 'kofn'}</text>" in svg
        assert all(word in svg for word in re.findall(r"\w+", purpose))
    real = layers.package_imports()
    for above, below in shown.arrows:
        assert below in real[above]
        assert boxes[above].bottom < boxes[below].y
    # What is left out follows from what is drawn, or leads to the lowest layer.
    reached = {name: {below for above, below in shown.arrows if above == name} for name in boxes}
    for _ in boxes:
        reached = {name: found.union(*(reached[other] for other in found)) for name, found in reached.items()}
    assert all(found - set(layers.layers()[-1]) <= reached[name] for name, found in real.items())


@pytest.mark.parametrize("size", picture.SIZES)
def test_boxes_do_not_overlap_and_hold_their_words(size: str) -> None:
    shown = drawn(size)
    for box in shown.boxes:
        assert box.x >= 0
        assert box.x + box.width <= shown.width
        assert box.bottom <= shown.height
        assert max(map(len, box.lines)) * picture.LETTER <= box.width - picture.MARGIN
        for other in shown.boxes:
            apart = box.x + box.width <= other.x or box.bottom <= other.y
            assert box is other or apart or other.x + other.width <= box.x or other.bottom <= box.y


def test_a_new_import_is_a_new_arrow_and_a_circle_cannot_be_drawn() -> None:
    real = layers.package_imports()
    assert ("metrics", "distributions") not in drawn("phone").arrows
    real["metrics"].add("distributions")
    new = picture.draw(layers.layers(), layers.packages(), real, links={}, size="phone")
    assert ("metrics", "distributions") in new.arrows
    real["counts"].add("metrics")
    with pytest.raises(CycleError):
        picture.draw(layers.layers(), layers.packages(), real, links={}, size="phone")


def test_files_stay_short() -> None:
    for path in layers.SOURCE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 500, f"{path.name} has grown out of one purpose"


def test_no_file_on_the_way_of_a_loss_is_called_from_what_it_calls() -> None:
    steps = walk.walk()
    TopologicalSorter({step.file: step.callers for step in steps}).prepare()  # a circle is an error
    assert steps[0].file == "losses/_count.py"
    assert {"targets/_bounds.py", "counts/_event.py", "counts/_engines.py"} <= {step.file for step in steps}
    assert len(steps) <= 10


@pytest.mark.slow
def test_import_brings_torch_and_numpy_only() -> None:
    code = (
        "import sys, kofn.losses; heavy = {'scipy', 'sklearn', 'pandas', 'matplotlib', 'lightning', 'torch._dynamo'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_the_layers_are_of_the_code_under_test() -> None:
    import kofn

    assert Path(kofn.__file__).parent == layers.SOURCE
