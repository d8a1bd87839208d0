"""The frame of all commands: statuses, one line for every error, and text that is safe on a terminal."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import table_data
from typer.testing import CliRunner, Result

from kofn.cli import app
from kofn.cli._screen_text import screen_text

KOFN = [sys.executable, "-m", "kofn"]
posix = pytest.mark.skipif(os.name != "posix", reason="devices and signals of POSIX")


def kofn(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def failing(error: BaseException) -> Any:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (ValueError("a\nb"), 2, "kofn: a b\n"),
        (OSError(28, "No space left on device", "m"), 2, "kofn: m: No space left on device\n"),
        (OSError("plain"), 2, "kofn: plain\n"),
        (ImportError("This needs x"), 2, "kofn: This needs x\n"),
        (KeyboardInterrupt(), 130, "kofn: interrupted.\n"),
        (BrokenPipeError(), 141, ""),
        (RuntimeError("torch\n  frame 0"), 1, "kofn: unforeseen error, RuntimeError: torch frame 0. For its traceback"),
        (ZeroDivisionError(), 1, "kofn: unforeseen error, ZeroDivisionError. For its traceback run: kofn --debug info"),
        (MemoryError(), 1, "kofn: unforeseen error, MemoryError. "),
        (RecursionError("deep " * 900), 1, "kofn: unforeseen error, RecursionError: deep deep"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_every_error_is_one_line_with_its_status(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int, words: str
) -> None:
    monkeypatch.setattr("kofn.tables.TableModel.load", failing(error))
    found = kofn("info", "my model")
    assert (found.exit_code, found.stdout) == (status, "")
    assert found.stderr.startswith(words)
    assert len(found.stderr.splitlines()) <= 1
    assert len(found.stderr) < 1200
    if status == 1:
        assert found.stderr.endswith(" run: kofn --debug info 'my model'\n")
    if status in (1, 2):
        shown = kofn("info", "my model", "--debug")
        assert shown.exit_code == status
        assert shown.stderr.startswith("Traceback")
        assert f"\n{type(error).__name__}" in shown.stderr


def test_usage_is_one_line() -> None:
    for words, said in (
        ("fit llp t.csv", "kofn: Missing option '--bag'. See: kofn fit llp --help"),
        ("fit llp t.csv --bag b --label y -o m --loss best", "kofn: Invalid value for '--loss'"),
        ("info m --nonsense", "kofn: No such option: --nonsense. See: kofn info --help"),
        ("nonsense", "kofn: No such command 'nonsense'. See: kofn --help"),
    ):
        found = kofn(*words.split())
        assert (found.exit_code, found.stdout, len(found.stderr.splitlines())) == (2, "", 1)
        assert found.stderr.startswith(said)


@pytest.mark.parametrize("words", [[], ["fit"], ["cv"], ["data"]], ids=str)
def test_a_group_without_a_command_shows_its_help(words: list[str]) -> None:
    found = kofn(*words)
    assert found.exit_code == 2
    assert "Usage: kofn" in found.output


def test_text_on_a_screen_is_shown_and_not_obeyed() -> None:
    for sign in [*map(chr, range(32)), *map(chr, range(127, 160)), "\u202e", "\u2066", "\u2028", "\ufeff", "\udcff"]:
        assert screen_text(f"a{sign}b").isprintable()
    kept = "Städte, 日本, 👍 'x' \\ 100 %"
    assert screen_text(kept) == kept


NASTY = "x;touch PWNED;#"
ESCAPE = "\x1b]0;owned\x07\x1b[31m\u202e"


def test_the_next_command_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table_data.write(table_data.make_table().rename(columns={"bag": NASTY}), tmp_path / "my data;.csv")
    said = ["fit", "llp", "my data;.csv", "--bag", NASTY, "--label", "count", "--features", "x", "--set", "rounds=2"]
    found = kofn(*said, "-o", "a $(model)")
    assert found.exit_code == 0, found.output
    (command,) = (line.removeprefix("next") for line in found.stdout.splitlines() if line.startswith("next"))
    assert shlex.split(command) == [
        "kofn", "predict", "a $(model)", "my data;.csv", "--bag", NASTY, "-o", "predictions.csv"
    ]  # fmt: skip
    assert kofn(*shlex.split(command)[1:]).exit_code == 0
    done = kofn("data", "get", "digits", "--bag-size", "100", "-o", "my digits.csv")
    assert "next       kofn fit llp 'my digits.csv' --bag bag" in done.stdout


def test_names_with_escape_bytes_do_not_reach_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    frame = table_data.make_table().rename(columns={"bag": f"bag{ESCAPE}", "x": f"x{ESCAPE}", "count": f"n{ESCAPE}"})
    data, model = table_data.write(frame, tmp_path / f"t{ESCAPE}.csv"), tmp_path / f"m{ESCAPE}"
    columns = ["--bag", f"bag{ESCAPE}", "--label", f"n{ESCAPE}", "--features", f"x{ESCAPE}"]
    runs = {
        "fit": kofn("fit", "llp", data, *columns, "--set", "rounds=2", "-o", model),
        "info": kofn("info", model),
        "evaluate": kofn("evaluate", model, data),
        "predict": kofn("predict", model, data, "-o", tmp_path / f"out{ESCAPE}.csv"),
        "report": kofn("report", model, data, "-o", tmp_path / f"page{ESCAPE}.html"),
    }
    bad = [
        kofn("fit", "llp", data, *columns, "--drop", f"z{ESCAPE}", "-o", "m"),
        kofn("info", f"nowhere{ESCAPE}"),
        kofn(f"info{ESCAPE}"),
        kofn("info", f"--{ESCAPE}"),
        kofn("data", "get", ESCAPE),
        kofn("fit", "llp", data, *columns, "--set", f"{ESCAPE}=1", "-o", "m"),
    ]
    for name, found in runs.items():
        assert found.exit_code == 0, (name, found.output)
    assert {found.exit_code for found in bad} == {2}
    for found in (*runs.values(), *bad):
        assert all(sign == "\n" or sign.isprintable() for sign in found.output)
    told = kofn("info", model, "--json")
    assert all(sign == "\n" or sign.isprintable() for sign in told.stdout)
    assert json.loads(told.stdout)["bag"] == f"bag{ESCAPE}"


def run(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*KOFN, *map(str, words)],
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        **({"stdout": subprocess.PIPE} | options),
    )


@pytest.mark.slow
@pytest.mark.slow
@posix
def test_a_full_or_closed_stdout() -> None:
    with open("/dev/full", "w") as full:
        found = run("data", "list", stdout=full)
    assert (found.returncode, found.stderr) == (2, "kofn: No space left on device\n")
    reader, writer = os.pipe()
    os.close(reader)
    found = run("data", "list", stdout=writer)
    os.close(writer)
    assert (found.returncode, found.stderr) == (141, "")


@pytest.mark.slow
@pytest.mark.slow
def test_a_terminal_of_few_characters(tmp_path: Path) -> None:
    found = run("info", tmp_path / "Städte", env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert found.returncode == 2
    assert "St\\xe4dte" in found.stderr


@pytest.mark.slow
@pytest.mark.slow
@posix
def test_a_command_that_is_terminated_while_it_writes_leaves_nothing(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; import kofn.cli, kofn.tables, kofn.tables._table_model as t\n"
        "from kofn._io.atomic_write import atomic_write\n"
        "def load(path):\n"
        "    with atomic_write(path + 's') as part: os.kill(os.getpid(), signal.SIGTERM)\n"
        "kofn.tables.TableModel.load = lambda path: load(str(path))\n"
        "sys.argv = ['kofn', 'info', sys.argv[1]]; kofn.cli.main()\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "m")], capture_output=True, text=True, timeout=120
    )
    assert (found.returncode, found.stderr) == (128 + signal.SIGTERM, "kofn: terminated.\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@posix
def test_commands_in_errors_are_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is run by a shell as it is told, and must do no more than it says."""
    monkeypatch.chdir(tmp_path)
    name = "a b;touch PWNED;'$(touch PWNED)\".csv"
    frame = table_data.make_table()[["bag", "x", "count"]]
    said = ["--bag", "bag", "--label", "count", "--set", "rounds=2", "-o", "m"]
    for content, start, end in (
        (frame.to_csv(index=False, sep=";", decimal=","), "python -c ", " (leave decimal"),
        (frame.to_csv(index=False).replace("b000", "b\udce400"), "iconv ", "\n"),
    ):
        Path(name).write_bytes(content.encode(errors="surrogateescape"))
        found = kofn("fit", "llp", name, *said)
        assert found.exit_code == 2
        at = found.stderr.index(start)
        command = found.stderr[at : found.stderr.index(end, at)].replace("python -c", f"{sys.executable} -c")
        subprocess.run(["bash", "-c", command], check=True, timeout=120)
        assert kofn("fit", "llp", "converted.csv", *said).exit_code == 0
        assert sorted(os.listdir()) == [name, "converted.csv", "m"]
        os.unlink("converted.csv")
        os.unlink("m")
