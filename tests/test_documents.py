"""Every Python block of the README and the documentation runs as written, and so do the first steps' commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kofn.cli import app

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
FIRST_STEPS = ROOT / "docs" / "start" / "own-data.md"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.S | re.M)


def run(page: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # files that a page writes
    run(page)


def test_commands_of_the_first_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(FIRST_STEPS)
    commands = [line for block in blocks(FIRST_STEPS, "console") for line in block.splitlines()]
    assert len(commands) >= 5
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "kofn"
        if arguments[0] == "fit":
            arguments += ["--epochs", "3"]  # a reader waits longer
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, command + result.output
