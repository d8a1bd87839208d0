"""Imports only point downwards, the picture shows them, and `import kofn` brings torch and numpy only."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import layers
import picture
import pytest


def test_every_module_has_a_layer_and_imports_downwards() -> None:
    found = layers.modules()
    assert set(found) == set(layers.DEPTH)
    assert [line for name, path in found.items() for line in layers.wrong(name, layers.imports_of(name, path))] == []


@pytest.mark.parametrize(
    ("line", "imported"),
    [
        ("import kofn.estimators", "estimators"),
        ("import kofn.estimators._llp_classifier as llp", "estimators._llp_classifier"),
        ("from kofn import estimators", "estimators"),
        ("from kofn.estimators import LLPClassifier", "estimators"),
        ("from kofn.estimators._llp_classifier import LLPClassifier", "estimators._llp_classifier"),
        ("from ..estimators._llp_classifier import LLPClassifier", "estimators._llp_classifier"),
        ("from .. import estimators", "estimators"),
        ("from . import _law", "counts._law"),
        ("from ._law import log_count_prob", "counts._law"),
        ("def f():\n    from kofn import losses", "losses"),
    ],
    ids=lambda value: value.split()[-1],
)
def test_an_import_upwards_is_seen(line: str, imported: str) -> None:
    assert layers.imports(line, "counts") == {imported}
    assert layers.wrong("counts._tilt", {imported}) == [f"counts._tilt imports {imported}, which is not below it"]


def test_what_is_no_import_of_kofn_is_not_seen() -> None:
    code = "import torch, kofnx\nfrom torch import nn\nif TYPE_CHECKING:\n    from kofn import losses\nimport kofn._require\n"
    assert layers.imports(code, "counts") == {"_require"}
    assert layers.wrong("counts._tilt", {"_require"}) == []


def test_a_module_of_the_same_layer_and_one_without_a_layer() -> None:
    assert layers.wrong("counts._tilt", {"counts._bags"}) == [
        "counts._tilt imports counts._bags, which is not below it"
    ]
    assert layers.wrong("counts._new", set()) == ["counts._new has no layer: add it to LAYERS in docs/hooks/layers.py"]


@pytest.mark.parametrize("columns", [picture.PHONE, picture.DESKTOP], ids=["phone", "desktop"])
def test_the_picture_has_every_package_and_only_arrows_that_are_imports(columns: int) -> None:
    drawn = picture.draw(layers.packages(), layers.package_imports(), columns=columns)
    top_level = {
        path.stem for path in layers.SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    boxes = {box.name: box for box in drawn.boxes}
    assert set(boxes) == top_level - {"__init__", "__main__", "__pycache__"} | {"kofn", "native"}
    svg = drawn.svg()
    for name, purpose in layers.packages().items():
        assert f">{name or 'kofn'}</text>" in svg
        assert all(word in svg for word in re.findall(r"\w+", purpose))
    real = layers.package_imports()
    for above, below in drawn.arrows:
        assert below in real[above]
        assert boxes[above].y + boxes[above].height < boxes[below].y
    # What is left out follows from what is drawn.
    reached = {name: {below for above, below in drawn.arrows if above == name} for name in boxes}
    for _ in boxes:
        reached = {name: found.union(*(reached[other] for other in found)) for name, found in reached.items()}
    assert all(found <= reached[name] for name, found in real.items() if name)


def test_boxes_do_not_overlap_and_hold_their_words() -> None:
    for columns in (picture.PHONE, picture.DESKTOP):
        drawn = picture.draw(layers.packages(), layers.package_imports(), columns=columns)
        for box in drawn.boxes:
            assert box.x >= 0
            assert box.x + box.width <= drawn.width
            assert box.y + box.height <= drawn.height
            assert max(map(len, box.lines)) * picture.LETTER <= box.width
            for other in drawn.boxes:
                apart = box.x + box.width <= other.x or box.y + box.height <= other.y
                assert box is other or apart or other.x + other.width <= box.x or other.y + other.height <= box.y


def test_a_new_import_is_a_new_arrow() -> None:
    real = layers.package_imports()
    assert ("metrics", "models") not in picture.draw(layers.packages(), real, columns=4).arrows
    real["metrics"].add("models")
    assert ("metrics", "models") in picture.draw(layers.packages(), real, columns=4).arrows


def test_a_circle_cannot_be_drawn() -> None:
    real = layers.package_imports()
    real["_require"].add("bags")
    with pytest.raises(ValueError, match=r"in a circle: .*_require -> bags"):
        picture.draw(layers.packages(), real, columns=4)


def test_files_stay_short() -> None:
    for path in layers.SOURCE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 320, f"{path.name} has grown out of one purpose"


def test_import_brings_torch_and_numpy_only() -> None:
    code = (
        "import sys, kofn; heavy = {'scipy', 'sklearn', 'pandas', 'matplotlib', 'lightning', 'torch._dynamo'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_the_list_is_of_the_code_under_test() -> None:
    import kofn

    assert Path(kofn.__file__).parent == layers.SOURCE
