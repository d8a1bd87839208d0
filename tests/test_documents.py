"""Every Python block of the README and the documentation runs as written, and so do its commands."""

from __future__ import annotations

import random
import re
import shlex
import sys
from pathlib import Path

import outputs
import pytest
from torch.distributions import Distribution
from typer.testing import CliRunner

import kofn
from kofn.cli import app
from paper.__main__ import app as paper_app

pytestmark = pytest.mark.slow  # pages train models

ROOT = Path(__file__).parent.parent
# Tutorials are notebooks: docs/tests/test_tutorials.py runs them.
WRITTEN = [page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "tutorials"]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *WRITTEN])


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.S | re.M)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_blocks_print_what_the_page_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # files that a page writes
    # A reader has no folder tests/datasets, which transformers would take for the library of that name.
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder != str(ROOT / "tests")])
    # torch.compile turns the checks of torch.distributions off, for the whole process.
    monkeypatch.setattr(Distribution, "_validate_args", Distribution._validate_args)
    for block in outputs.run(page):
        if block.told or page.is_relative_to(ROOT / "docs"):
            assert outputs.same(block.told, block.printed), f"{block.code}\nprints\n{block.printed}run `make outputs`"


def test_every_block_of_the_site_has_an_output() -> None:
    """Each is checked above; here, that none was left to print nothing."""
    found = {
        name(page): block["code"]
        for page in PAGES
        if page.is_relative_to(ROOT / "docs")
        for block in outputs.BLOCK.finditer(page.read_text())
        if block["language"] == "python" and not block["output"]
    }
    assert found == {}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("AUC 0.95\n", "AUC 0.94\n", True),  # a unit of the last digit
        ("AUC 0.95\n", "AUC 0.92\n", False),
        ("[ 1.2 -3.4]\n", "[1.2  -3.4]\n", True),
        ("12 of 60\n", "13 of 60\n", False),
        ("p = 8e-16\n", "p = 2e-16\n", False),
        ("AUC 0.95\n", "accuracy 0.95\n", False),
    ],
)
def test_outputs_are_compared_to_their_last_digits(one: str, other: str, same: bool) -> None:
    assert outputs.same(one, other) is same


def test_outputs_are_written_under_their_blocks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 2\nprint(x)\nx + 1\n```\n\ntext\n\n```python\nx = 4\n```\n")
    text = outputs.rewritten(page)
    assert text == ("```python\nx = 2\nprint(x)\nx + 1\n```\n\n```output\n2\n3\n```\n\ntext\n\n```python\nx = 4\n```\n")
    page.write_text(text.replace("3", "7"))
    assert [(block.told, block.printed) for block in outputs.run(page)] == [("2\n7\n", "2\n3\n"), ("", "")]
    assert outputs.rewritten(page) == text


def test_commands_answer_where_the_page_has_an_output(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\nkofn --version\nls\n```\n\n```output\n```\n\n```console\nkofn no-such-command\n```\n")
    text = outputs.rewritten(page)
    assert text == page.read_text().replace("```output\n", f"```output\nkofn {kofn.__version__}\n")
    assert outputs.same("trained in 2.3 s, 4 rows\n", "trained in 12 s, 4 rows\n")
    assert not outputs.same("trained in 2.3 s, 4 rows\n", "trained in 2.3 s, 5 rows\n")


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
        next(outputs.run(ROOT / page))  # the first block writes the table
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
