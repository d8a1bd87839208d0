"""Errors of the command line speak of its options and files, never of Python's arguments."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import table_data
from cli_calls import kofn
from typer.testing import Result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("names")
    path = table_data.write(table_data.make_table(), folder / "t.csv")
    table_data.fit_counts(path).save(folder / "model")
    (folder / "report.html").write_text("mine")
    return folder


def refused(*words: object) -> str:
    """The one line of a command that is refused, in which nothing is named as Python names it."""
    found: Result = kofn(*words)
    assert (found.exit_code, found.stdout) == (2, ""), found.output
    lines = found.stderr.splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("kofn: ")
    assert not re.search(r"`\w+`|\w=\.\.\.|Value error,", lines[0]), lines[0]
    return lines[0]


def test_a_report_over_a_foreign_file(folder: Path) -> None:
    said = refused("report", folder / "model", folder / "t.csv", "-o", folder / "report.html")
    assert f"{folder / 'report.html'} exists. Add --force to replace it, or name another file with -o." in said
    assert (folder / "report.html").read_text() == "mine"


def test_a_model_that_is_not_there(folder: Path) -> None:
    said = refused("report", folder / "modell", folder / "t.csv", "-o", folder / "new.html")
    assert f"{folder / 'modell'} must be a file that kofn wrote a model to; there is none" in said


def test_a_prior_below_the_labelled_fraction(folder: Path) -> None:
    words = ["fit", "pu", folder / "t.csv", "--label", "labelled", "--features", "x,colour", "-o", folder / "pu"]
    said = refused(*words, "--prior", "0.1")
    assert "--prior must be at least the fraction of rows that are labelled" in said
    assert "--mixture takes the share" in said
    assert "mixture=" not in said


def test_a_learner_that_is_none(folder: Path) -> None:
    words = ["fit", "llp", folder / "t.csv", "--bag", "bag", "--label", "count", "-o", folder / "new"]
    said = refused(*words, "--learner", "forest")
    assert "forest" in said
    assert "--learner" in said


def test_the_help_of_report_says_what_it_takes() -> None:
    found = kofn("report", "--help")
    assert found.exit_code == 0
    assert re.search(r"kofn report \[OPTIONS\] \{?MODEL\}? \[MODEL\] \[DATA\]", found.stdout)


def test_a_column_that_is_kept_twice(folder: Path) -> None:
    said = refused("predict", folder / "model", folder / "t.csv", "--keep", "bag,bag", "-o", folder / "rows.csv")
    assert "column 'bag' is to be repeated twice. Name it once." in said
