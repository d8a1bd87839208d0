"""Hostile tables, models and options: no traceback, the right status, and no part of an output, in every case."""

from __future__ import annotations

import json
import os
from pathlib import Path

import child_processes
import hostile_grids
import hostile_models
import hostile_options
import hostile_tables
import pandas as pd
import pytest
from hostile_models import FORGED
from hostile_tables import TABLES
from typer.testing import CliRunner

from kofn.cli import app
from kofn.tables import TableModel

pytestmark = [
    pytest.mark.slow,  # all together
    pytest.mark.skipif(os.name != "posix", reason="links, pipes and devices of POSIX"),
]

LEARNERS = {
    "trees": ["--set", "rounds=2"],
    "linear": ["--set", "l2=0.1", "--bootstrap", "2", "--jobs", "1"],
    "network": ["--set", "epochs=1", "--set", "hidden=3"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, a model of each learner, and things that are neither."""
    folder = tmp_path_factory.mktemp("hostile")
    frame = hostile_tables.good()
    frame.assign(any=(frame["y"] > 0).astype(int)).to_csv(folder / "t.csv", index=False)
    pd.DataFrame({"other": [1, 2]}).to_csv(folder / "other.csv", index=False)
    for learner, options in LEARNERS.items():
        said = ["--bag", "bag", "--label", "y", "--drop", "any", "--learner", learner, *options]
        done = CliRunner().invoke(app, ["fit", "llp", str(folder / "t.csv"), *said, "-o", str(folder / learner)])
        assert done.exit_code == 0, done.output
    os.link(folder / "trees", folder / "m")
    (folder / "link").symlink_to("m")
    (folder / "there.csv").write_text("mine")
    (folder / "folder.csv").mkdir()
    (folder / "loop.csv").symlink_to("loop.csv")
    os.mkfifo(folder / "pipe.csv")
    return folder


def files(folder: Path) -> dict[str, tuple[int, int]]:
    """All that lies in a folder, with what changes when it is written."""
    found = {}
    for at, folders, names in os.walk(folder):
        for name in (*folders, *names):
            status = os.lstat(os.path.join(at, name))
            found[os.path.join(at, name)] = (
                status.st_mtime_ns if name in names else 0,
                status.st_size * (name in names),
            )
    return found


def ends(folder: Path, words: list[str], *statuses: int) -> int:
    """Run a command that must end with one of these statuses; if that is not 0, with one line and nothing written."""
    before = files(folder)
    found = CliRunner().invoke(app, words)
    assert found.exit_code in statuses, found.output
    assert "Traceback" not in found.output
    assert all(sign == "\n" or sign.isprintable() for sign in found.output)
    if found.exit_code:
        assert found.stdout == ""
        said = [line for line in found.stderr.splitlines() if not line.startswith("kofn: warning: ")]
        assert (len(said) == 1 and said[0].startswith("kofn: ")) or said[0].startswith("Usage: ")
        assert files(folder) == before
    return found.exit_code


ALL_TABLES = TABLES | hostile_grids.TABLES


@pytest.mark.parametrize("name", ALL_TABLES)
def test_table(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    table = ALL_TABLES[name]
    table.write(tmp_path / f"t{table.suffix}")
    words = ["fit", "llp", f"t{table.suffix}", "--bag", "bag", "--label", "y", "--set", "rounds=2", *table.said]
    before = set(os.listdir(tmp_path))
    if ends(tmp_path, [*words, "-o", "m"], *table.status) == 0:
        assert set(os.listdir(tmp_path)) - before == {"m"}
        model = TableModel.load("m")
        assert model.task == "llp"
        ends(tmp_path, ["predict", "m", f"t{table.suffix}", "-o", "rows.csv"], 0)
        assert len(pd.read_csv("rows.csv")) == model.data["rows"]


@pytest.fixture(scope="module")
def damaged(folder: Path) -> dict[str, bytes]:
    return hostile_models.damaged({name: (folder / name).read_bytes() for name in LEARNERS})


DAMAGED = list(hostile_models.damaged(dict.fromkeys(LEARNERS, bytes(10_000))))  # names that do not depend on bytes


def test_damaged_models_are_all_tried(damaged: dict[str, bytes]) -> None:
    assert len(damaged) == len(DAMAGED)


@pytest.mark.parametrize("number", range(len(DAMAGED)))
def test_damaged_model(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damaged: dict[str, bytes], number: int
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").write_bytes(list(damaged.values())[number])
    ends(tmp_path, ["info", "model"], 2)
    ends(tmp_path, ["predict", "model", str(folder / "t.csv"), "-o", "rows.csv"], 2)


@pytest.mark.parametrize("name", FORGED)
def test_forged_model(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    learner, changes = FORGED[name]
    hostile_models.forged(tmp_path / "model", (folder / learner).read_bytes(), changes)
    ends(tmp_path, ["info", "model"], 2)
    ends(tmp_path, ["report", "model", "-o", "page.html"], 2)
    ends(tmp_path, ["predict", "model", str(folder / "t.csv"), "-o", "rows.csv"], 2)


def words_of(command: str | list[str]) -> list[str]:
    return command.split() if isinstance(command, str) else command


@pytest.mark.parametrize(
    "command",
    [*hostile_options.BAD, *hostile_grids.OPTIONS],
    ids=lambda command: ascii(" ".join(words_of(command)))[1:90],
)
def test_options(folder: Path, monkeypatch: pytest.MonkeyPatch, command: str | list[str]) -> None:
    monkeypatch.chdir(folder)
    ends(folder, words_of(command), 2)


@pytest.mark.parametrize("words", hostile_options.FINE, ids=lambda words: ascii(" ".join(words))[1:90])
def test_odd_options_that_are_fine(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("t.csv", "m", "link", "linear"):
        (tmp_path / name).symlink_to(folder / name)
    before = set(os.listdir(tmp_path))
    ends(tmp_path, words, 0)
    output = Path(words[-1])
    assert output.is_file()
    assert output.stat().st_size > 0
    assert set(os.listdir(tmp_path)) == before | {output.parts[0]}  # nothing else, hidden or not
    if words[0] == "fit":
        assert TableModel.load(output).task == "llp"


PROCESSES = {
    "no traceback at an unforeseen error": (["info", "m"], 1),
    "a table that is damaged": (["fit", "llp", "cut.csv.gz", "--bag", "bag", "--label", "y", "-o", "new"], 2),
    "a table that is a pipe": (["fit", "llp", "pipe.csv", "--bag", "bag", "--label", "y", "-o", "new"], 2),
    "a table of zeros without end": (["fit", "llp", "zero.csv", "--bag", "bag", "--label", "y", "-o", "new"], 2),
    "a bag that is a command": ([*hostile_options.FIT.split(), "--bag", hostile_options.NASTY], 2),
    "a name that is no text": (["info", "\udcff\udcfe"], 2),
    "a device that is not there": ([*hostile_options.NETWORK.split(), "--set", "device=cuda"], 2),
    "a rate that is too high": ([*hostile_options.NETWORK.split(), "--set", "lr=1e300"], 2),
    "a network that is too wide": ([*hostile_options.NETWORK.split(), "--set", "hidden=2000000000"], 2),
    "a model that is cut off": (["predict", "cut", "t.csv", "-o", "new.csv"], 2),
    "an output that is there": (["predict", "m", "t.csv", "-o", "there.csv"], 2),
    "an option that is unknown": (["fit", "llp", "t.csv", "--hidden", "99999999999"], 2),
    "a fit that works": (hostile_options.FIT.split(), 0),
}  # fmt: skip


# Each command in a process of its own, forked from one that has imported what takes seconds to import.
FORKS = """
import json, os, sys
import kofn.cli._commands, kofn.tables, kofn.cli._fit_command, lightgbm
os.chdir(sys.argv[1])
for number, (words, status) in enumerate(json.load(open("cases.json"))):
    child = os.fork()
    if child == 0:
        for stream, name in ((sys.stdout, "out"), (sys.stderr, "err")):
            os.dup2(os.open(f"results/{number}.{name}", os.O_CREAT | os.O_WRONLY), stream.fileno())
        if status == 1:
            kofn.tables.TableModel.load = None
        os.chdir(f"places/{number}")
        sys.argv = ["kofn", *words]
        kofn.cli.main()
    with open(f"results/{number}.status", "w") as file:
        file.write(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
"""


def test_processes(folder: Path, tmp_path: Path) -> None:
    before = []
    (tmp_path / "results").mkdir()
    for number in range(len(PROCESSES)):
        place = tmp_path / "places" / str(number)
        place.mkdir(parents=True)
        for one in ("t.csv", "m", "there.csv"):
            (place / one).symlink_to(folder / one)
        os.mkfifo(place / "pipe.csv")
        (place / "zero.csv").symlink_to("/dev/zero")
        (place / "cut.csv.gz").write_bytes(hostile_tables.PACKED[:-20])
        (place / "cut").write_bytes((folder / "m").read_bytes()[:-9])
        before.append(files(place))
    (tmp_path / "cases.json").write_text(json.dumps(list(PROCESSES.values())))
    child_processes.finish(child_processes.start(FORKS, tmp_path))
    for number, (name, (_, status)) in enumerate(PROCESSES.items()):
        out, err, ended = ((tmp_path / "results" / f"{number}.{kind}").read_text() for kind in ("out", "err", "status"))
        place = tmp_path / "places" / str(number)
        assert ended == str(status), (name, err)
        assert "Traceback" not in err
        if status:
            assert (out, err.count("\n"), err[:6]) == ("", 1, "kofn: "), name
            assert files(place) == before[number]
        else:
            assert set(files(place)) - set(before[number]) == {str(place / "new")}


def test_there_are_as_many_cases_as_ever() -> None:
    counted = [ALL_TABLES, DAMAGED, FORGED, hostile_options.BAD, hostile_grids.OPTIONS, hostile_options.FINE, PROCESSES]
    assert sum(map(len, counted)) >= 1000
    assert sum(len(table.status) == 1 for table in TABLES.values()) >= 170  # the others are mutations
