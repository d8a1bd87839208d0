"""Every Python block of the README and the documentation runs as written, and so do its commands."""

from __future__ import annotations

import random
import re
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kofn.cli import app
from paper.__main__ import app as paper_app

pytestmark = pytest.mark.slow  # pages train models

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.S | re.M)


def run(page: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # files that a page writes
    # A reader has no folder tests/datasets, which transformers would take for the library of that name.
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder != str(ROOT / "tests")])
    run(page)


def commands(page: Path, program: str = "kofn") -> list[list[str]]:
    """What follows the name of a program in a page's console blocks."""
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    return [
        shlex.split(line, comments=True)[len(program.split()) :] for line in lines if line.startswith(f"{program} ")
    ]


def tables() -> None:
    """The files that the commands speak of, in this folder."""
    generator = random.Random(0)
    for name, bag, label in (
        ("votes", "county", "turnout"),
        ("other", "county", "turnout"),
        ("wards", "ward", "cases"),
    ):
        lines = [f"{bag},age,income,region,{label}"]
        for number in range(20):
            known = generator.randint(0, 4)
            told = known / 4 if label == "turnout" else known + generator.gauss(0, 1)
            for _ in range(4):
                row = (
                    generator.randint(18, 90),
                    generator.randint(10, 90) * 1000,
                    generator.choice(("north", "south")),
                )
                lines.append(",".join(map(str, (f"{bag} {number}", *row, told))))
        Path(f"{name}.csv").write_text("\n".join(lines) + "\n")
    lines = ["district,box,people,age,votes"]
    for box in range(20):
        people = [generator.randint(1, 9) for _ in range(4)]
        votes = generator.randint(0, sum(people))
        lines += [f"{box // 5},{box},{many},{generator.randint(18, 90)},{votes}" for many in people]
    Path("census.csv").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    "page", ["README.md", "docs/start/own-data.md", "docs/guides/table.md", "docs/guides/noisy.md"]
)
def test_commands_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tables()
    if page == "docs/start/own-data.md":
        run(ROOT / page)  # which writes the table itself
    assert commands(ROOT / page)
    for words in commands(ROOT / page):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, f"{words}: {result.output}"


def test_commands_of_the_paper_are_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take hours: they are read, not run."""
    asked: list[str] = []

    def noted(table: str, **_: object) -> list[Path]:
        asked.append(table)
        return []

    monkeypatch.setattr("paper.__main__.reproduce", noted)
    monkeypatch.setattr("paper.__main__.rerun", lambda *_, **__: [])
    for page in PAGES:
        for words in commands(page, "python -m paper"):
            result = CliRunner().invoke(paper_app, words)
            assert result.exit_code == 0, f"{words}: {result.output}"
    assert set(asked) == {"llp", "all"}
