"""The grid: skipping, going on after a kill, damaged records, failures, processes, a cluster."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import child_processes
import pytest
from paper_cases import lines, made_up, record
from typer.testing import CliRunner

from paper import llp_runs, one_run, records
from paper.__main__ import app
from paper.cells import Run, runs
from paper.grid import run_grid
from paper.outcome import Outcome
from paper.records import collect, load_records
from paper.reproduce import reproduce
from paper.rerun import choose, rerun
from paper.whole_recipe import state

ONLY = ["data=adult", "setting=[0,1]", "bag_size=8"]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Which methods and seeds were run; nothing is trained."""
    seen = []

    def runner(cell: Any, method: str, recipe: Any, seed: int) -> Outcome:
        seen.append((method, seed))
        return made_up(cell, method, recipe, seed)

    for table in ("llp", "mil", "mil-instance"):
        monkeypatch.setitem(one_run.RUNNERS, table, runner)
    return seen


def test_a_record_each_then_nothing(tmp_path: Path, calls: list[Any]) -> None:
    wanted = runs("llp", only=ONLY, seeds=2)
    written = run_grid(wanted, results=tmp_path, progress=False)
    assert sorted(calls) == sorted((run.method, run.seed) for run in wanted)
    assert sorted(path.name for path in written) == sorted(f"{run.name}.json" for run in wanted)
    assert run_grid(wanted, results=tmp_path, progress=False) == []
    assert len(calls) == 8
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".")]


def test_a_deleted_or_damaged_or_foreign_record_is_run_again(tmp_path: Path, calls: list[Any]) -> None:
    wanted = runs("llp", only=[*ONLY, "method=CL"], seeds=4)
    paths = [records.record_path(tmp_path, run) for run in wanted]
    run_grid(wanted, results=tmp_path, progress=False)
    whole = [path.read_bytes() for path in paths]
    calls.clear()
    paths[0].unlink()
    paths[1].write_bytes(whole[1][:50])
    paths[2].write_bytes(whole[3])  # of another seed
    run_grid(wanted, results=tmp_path, progress=False)
    assert calls == [("CL", 0), ("CL", 1), ("CL", 2)]
    for path, before in zip(paths, whole, strict=True):
        assert plain(path.read_text()) == plain(before.decode())


def plain(text: str) -> Any:
    """A record without what differs from time to time."""
    found = json.loads(text)
    return {name: value for name, value in found.items() if name not in ("seconds", "cpu_seconds")}


def test_a_record_of_another_recipe_is_run_again(tmp_path: Path, calls: list[Any]) -> None:
    (run,) = runs("llp", only=[*ONLY, "method=CL"], seeds=1)
    old = record(run, auc=0.5)
    old["recipe"]["lr"] = 123.0
    records.write(tmp_path, run, old)
    run_grid([run], results=tmp_path, progress=False)
    assert calls == [("CL", 0)]


def test_a_checkout_knows_what_is_stale(tmp_path: Path, calls: list[Any]) -> None:
    """The committed file has the recipes: what was changed is run again, what has no hash is kept."""
    wanted = runs("llp", only=[*ONLY, "method=CL", "method=PL", "method=LMMCM"], seeds=1)
    for run in wanted:
        old = record(run, auc=0.5)
        if run.method == "CL":
            old["recipe"]["epochs"] = 3
        if run.method == "PL":  # of the loop before
            old["recipe_hash"] = None
        records.write(tmp_path / "a", run, old)
    (path,) = collect(tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "llp.jsonl").write_bytes(path.read_bytes())
    run_grid(wanted, results=tmp_path / "b", progress=False)
    assert calls == [("CL", 0)]


def test_what_the_data_are_drawn_by_is_part_of_the_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    (run,) = runs("llp", only=[*ONLY, "method=CL"], seeds=1)
    kept = record(run, auc=0.5)
    assert state(kept) == "current"
    monkeypatch.setitem(llp_runs.INSTANCES, "adult", 4096)
    assert state(kept) == "stale"


@pytest.mark.slow
def test_a_killed_grid_goes_on(tmp_path: Path) -> None:
    script = "import paper_cases; paper_cases.slow_grid(sys.argv[1])"
    process = child_processes.start(script, tmp_path)
    deadline = time.monotonic() + 60
    folder = tmp_path / "records" / "llp"
    while time.monotonic() < deadline and (not folder.is_dir() or len(list(folder.glob("[!.]*.json"))) < 3):
        time.sleep(0.01)
    process.kill()
    process.communicate()
    before = sorted(path.name for path in folder.glob("[!.]*.json"))
    assert 3 <= len(before) < 12
    assert all(records.read(folder / name) for name in before)
    (tmp_path / "started").unlink()
    child_processes.finish(child_processes.start(script, tmp_path))
    assert len((tmp_path / "started").read_text()) == 12 - len(before)
    assert len(list(folder.glob("[!.]*.json"))) == 12


def test_one_failure_does_not_end_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def runner(cell: Any, method: str, recipe: Any, seed: int) -> Outcome:
        if method == "PL":
            raise FileNotFoundError("no such data")
        return made_up(cell, method, recipe, seed)

    monkeypatch.setitem(one_run.RUNNERS, "llp", runner)
    with pytest.raises(RuntimeError, match=r"1 of 4 runs failed.*adult_0-1_8_PL_fast_0: FileNotFoundError: no such"):
        reproduce("llp", only=ONLY, seeds=1, results=tmp_path, progress=False)
    assert [line["method"] for line in lines(tmp_path / "llp.jsonl")] == ["CL", "CL-trees", "LMMCM"]


def test_tables_that_share_a_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def runner(cell: Any, method: str, recipe: Any, seed: int) -> Outcome:
        seen.append(method)
        return Outcome({"auc": 0.9, "instance_auc": 0.8})

    for table in ("mil", "mil-instance"):
        monkeypatch.setitem(one_run.RUNNERS, table, runner)
    only = ["setting=N(10,2)", "bags=50"]
    reproduce("mil", only=[*only, "method=CL"], seeds=1, results=tmp_path, progress=False)
    reproduce("mil-instance", only=only, seeds=1, results=tmp_path, progress=False)
    assert seen == ["CL", "Instance-Max"]
    assert lines(tmp_path / "mil.jsonl")[0]["metrics"] == {"auc": 0.9, "instance_auc": 0.8}
    (ours, _) = lines(tmp_path / "mil-instance.jsonl")
    assert ours["metrics"] == {"bag_auc": 0.9, "auc": 0.8}
    assert ours["table"] == "mil-instance"
    # And back: the other way round nothing is trained either.
    (tmp_path / "mil.jsonl").unlink()
    for path in (tmp_path / "records" / "mil").iterdir():
        path.unlink()
    reproduce("mil", only=[*only, "method=CL"], seeds=1, results=tmp_path, progress=False)
    assert seen == ["CL", "Instance-Max"]
    assert lines(tmp_path / "mil.jsonl")[0]["metrics"] == {"auc": 0.9, "instance_auc": 0.8}


def test_collect_is_sorted_and_has_these_keys(tmp_path: Path, calls: list[Any]) -> None:
    wanted = runs("llp", only=["method=CL", "data=adult"], seeds=1)
    run_grid(wanted[::-1], results=tmp_path, progress=False)
    (path,) = collect(tmp_path)
    found = lines(path)
    assert [list(line) for line in found] == [list(records.KEYS + records.LATER)] * 12
    assert [line["cell"]["bag_size"] for line in found] == [8, 32, 128, 512] * 3  # as numbers
    before = path.read_bytes()
    collect(tmp_path)
    assert path.read_bytes() == before
    (tmp_path / "records" / "llp" / "broken.json").write_text("{")
    collect(tmp_path)
    assert path.read_bytes() == before


def test_a_checkout_has_no_folder_of_records(tmp_path: Path, calls: list[Any]) -> None:
    """The committed file alone is enough to go on from, and what it has is not lost."""
    reproduce("llp", only=ONLY, seeds=1, results=tmp_path / "a", progress=False)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "llp.jsonl").write_bytes((tmp_path / "a" / "llp.jsonl").read_bytes())
    calls.clear()
    reproduce("llp", only=ONLY, seeds=2, results=tmp_path / "b", progress=False)
    assert sorted(calls) == [("CL", 1), ("CL-trees", 1), ("LMMCM", 1), ("PL", 1)]
    assert len(load_records(tmp_path / "b", "llp")) == 8


def test_what_a_pull_brings_is_not_lost(tmp_path: Path, calls: list[Any]) -> None:
    """Lines that came from elsewhere while there is a folder of records: new ones, and newer ones of a stale run."""
    old, new, mine = runs("llp", only=[*ONLY, "method=CL"], seeds=3)
    stale = record(old, auc=0.5)
    stale["recipe"]["lr"] = 123.0
    records.write(tmp_path, old, stale)
    records.write(tmp_path, mine, record(mine, auc=0.7))
    pulled = [record(old, auc=0.8), record(new, auc=0.9), record(mine, auc=0.1)]
    (tmp_path / "llp.jsonl").write_text("".join(json.dumps(line) + "\n" for line in pulled))
    reproduce("llp", only=[*ONLY, "method=CL"], seeds=3, results=tmp_path, progress=False)
    assert calls == []
    assert [line["metrics"]["auc"] for line in lines(tmp_path / "llp.jsonl")] == [0.8, 0.9, 0.7]


def test_records_run_again_are_equal_or_named(tmp_path: Path, calls: list[Any]) -> None:
    wanted = runs("llp", only=[*ONLY, "method=CL", "method=PL"], seeds=2)
    run_grid(wanted, results=tmp_path, progress=False)
    stale, earlier = (record(run, auc=0.5) for run in wanted[:2])
    stale["recipe"]["lr"] = 1.0
    for run, old in zip(wanted, (stale, earlier | {"recipe_hash": None}), strict=False):
        records.write(tmp_path, run, old)
    collect(tmp_path)
    assert len(choose(12, results=tmp_path)) == 2  # what has another recipe or loop cannot come again
    assert [each.equal for each in rerun(12, results=tmp_path)] == [True, True]
    other = record(wanted[2], auc=0.123)
    records.write(tmp_path, wanted[2], other)
    collect(tmp_path)
    (found,) = [each for each in rerun(12, results=tmp_path) if not each.equal]
    assert (found.run, found.recorded["auc"]) == (wanted[2], 0.123)
    said = CliRunner().invoke(app, ["llp", "--again", "12", "--results", str(tmp_path)])
    assert said.exit_code == 1
    assert f"llp {wanted[2].name}: differs: recorded {{'auc': 0.123}}, now" in said.output
    assert f"llp {wanted[3].name}: equal" in said.output


def test_progress_names_runs_and_numbers(tmp_path: Path, calls: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    run_grid(runs("llp", only=ONLY, seeds=1), results=tmp_path)
    said = capsys.readouterr().out
    assert "llp adult_0-1_8_CL_fast_0: auc 0.9000" in said
    assert "4/4" in said


def test_all_leaves_out_tables_that_do_not_fit(tmp_path: Path, calls: list[Any]) -> None:
    reproduce("all", only=[*ONLY, "method=PL"], seeds=1, results=tmp_path, progress=False)
    assert calls == [("PL", 0)]
    with pytest.raises(ValueError, match="`only` must fit a table; no table has data=iris"):
        reproduce("all", only="data=iris", results=tmp_path)


def test_a_line_that_is_no_record_is_named(tmp_path: Path) -> None:
    (tmp_path / "llp.jsonl").write_text('{"table": "llp"}\n')
    with pytest.raises(ValueError, match=r"llp\.jsonl, line 1, lacks cell, method"):
        load_records(tmp_path, "llp")
    (tmp_path / "llp.jsonl").write_text("nonsense\n")
    with pytest.raises(ValueError, match=r"llp\.jsonl, line 1, is no record"):
        load_records(tmp_path, "llp")


def test_jobs_must_be_some(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`jobs`"):
        run_grid([], results=tmp_path, jobs=0)


FIGURE = Run("figures", {"figure": "dynamic-programming"}, "CL", "fast", 0)


@pytest.mark.slow
def test_processes(tmp_path: Path) -> None:
    """Two processes give what one gives."""
    wanted = [Run("figures", FIGURE.cell, "CL", "fast", seed) for seed in range(3)]
    run_grid(wanted, results=tmp_path / "one", progress=False)
    script = """
from paper.cells import Run
from paper.grid import run_grid
if __name__ == "__main__":
    cell = {"figure": "dynamic-programming"}
    wanted = [Run("figures", cell, "CL", "fast", seed) for seed in range(3)]
    run_grid(wanted, results=sys.argv[1], jobs=2, progress=False)
"""
    child_processes.finish(child_processes.start(script, tmp_path / "two"))
    for run in wanted:
        one, two = (records.record_path(tmp_path / name, run).read_text() for name in ("one", "two"))
        assert plain(one) == plain(two)


@pytest.mark.slow
def test_cluster(tmp_path: Path) -> None:
    """The same grid on a scheduler's workers, here two processes of this machine."""
    pytest.importorskip("distributed")
    script = tmp_path / "cluster.py"
    script.write_text(
        """
import sys
from paper.cells import Run
from paper.grid import run_grid
if __name__ == "__main__":
    from distributed import LocalCluster
    cell = {"figure": "dynamic-programming"}
    wanted = [Run("figures", cell, "CL", "fast", seed) for seed in range(3)]
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        run_grid(wanted, results=sys.argv[1], scheduler=cluster.scheduler_address, progress=False)
"""
    )
    runner = "import runpy; sys.argv = sys.argv[1:]; warnings.simplefilter('default'); "
    child_processes.finish(
        child_processes.start(runner + "runpy.run_path(sys.argv[0], run_name='__main__')", script, tmp_path / "out")
    )
    assert len(list((tmp_path / "out" / "records" / "figures").glob("*.json"))) == 3
