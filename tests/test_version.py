"""The version stands in one place, and all that repeats it agrees."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kofn
from release.version import version_of

ROOT = Path(__file__).parents[1]


def test_the_version_stands_in_one_place() -> None:
    assert version_of(ROOT) == kofn.__version__
    assert "version =" not in (ROOT / "pyproject.toml").read_text().split("[project.urls]")[0]


@pytest.mark.parametrize("file", ["CITATION.cff", "CHANGELOG.md"])
def test_a_version_that_is_contradicted_is_an_error(file: str, tmp_path: Path) -> None:
    for name in ("CITATION.cff", "CHANGELOG.md", "src/kofn/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / file).write_text((ROOT / file).read_text().replace(kofn.__version__, "9.9.9"))
    with pytest.raises(ValueError, match=rf"__version__ is {kofn.__version__}, but .*'{file}': \('9.9.9', "):
        version_of(tmp_path)


def test_a_tag_of_another_version_is_refused() -> None:
    command = [sys.executable, "-m", "release.version"]
    assert subprocess.run([*command, f"v{kofn.__version__}"], cwd=ROOT).returncode == 0
    wrong = subprocess.run([*command, "v9.9"], cwd=ROOT, capture_output=True, text=True)
    assert wrong.returncode == 1
    assert f"the tag must be v{kofn.__version__}" in wrong.stderr


def test_the_changelog_has_a_place_for_what_comes_next() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "Unreleased"
