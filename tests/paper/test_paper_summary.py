"""From records to tables and figures: ours beside the paper's, "not run" where there is nothing."""

from __future__ import annotations

import base64
import math
import zlib
from pathlib import Path

import pytest
from paper_cases import record

from paper import records
from paper.cells import BAGS, Run
from paper.findings import findings
from paper.missing import missing, missing_markdown
from paper.one_run import run_cell
from paper.presets import presets_markdown
from paper.recipes import recipe
from paper.records import collect
from paper.report import report, tables_markdown
from paper.reproduce import reproduce
from paper.summary import best, markdown, summary
from paper.training_time import times, times_markdown

ADULT = {"data": "adult", "setting": "[0,1]", "bag_size": 8}  # CL: 0.8985 ± 0.0010


def put(results: Path, table: str, cell: dict[str, object], method: str, *values: float, metric: str = "auc") -> None:
    for seed, value in enumerate(values):
        run = Run(table, cell, method, "fast", seed)
        records.write(results, run, record(run, **{metric: value}))
    collect(results)


def line_of(text: str, *words: object) -> str:
    (found,) = [line for line in text.splitlines() if line.startswith("| " + " | ".join(map(str, words)) + " |")]
    return found


@pytest.mark.parametrize(
    ("values", "mark"),
    [
        ((0.8985, 0.8986, 0.8984), "="),
        ((0.8996,), "+"),  # one seed: no test
        ((0.8995,), "="),  # exactly one spread apart
        ((0.9100, 0.9101, 0.9102), "+*"),
        ((0.8700, 0.8701, 0.8702), "-*"),
        ((0.7, 0.99, 0.9), "-"),  # far, but ours spread so much that it says nothing
        ((0.9, 0.9, 0.9), "+*"),
    ],
    ids=["same", "one seed above", "one spread", "above", "below", "noise", "no spread"],
)
def test_marks(tmp_path: Path, values: tuple[float, ...], mark: str) -> None:
    put(tmp_path, "llp", ADULT, "CL", *values)
    (row,) = [row for row in summary("llp", results=tmp_path) if row.values]
    assert row.mark == mark
    assert row.difference == pytest.approx(sum(values) / len(values) - 0.8985)


def test_welch_by_hand(tmp_path: Path) -> None:
    put(tmp_path, "llp", ADULT, "CL", 0.9000, 0.9010)
    (row,) = [row for row in summary("llp", results=tmp_path) if row.values]
    variance = row.sd**2 / 2 + 0.0010**2 / 5
    freedom = variance**2 / ((row.sd**2 / 2) ** 2 / 1 + (0.0010**2 / 5) ** 2 / 4)
    stats = pytest.importorskip("scipy.stats")
    assert row.p_value == pytest.approx(2 * stats.t.sf(0.0020 / math.sqrt(variance), freedom))


def test_markdown_and_a_deleted_record(tmp_path: Path) -> None:
    put(tmp_path, "llp", ADULT, "CL", 0.8990, 0.8980)
    text = markdown("llp", results=tmp_path)
    assert len(text.splitlines()) == 96 + 2
    words = "| adult | [0,1] | 8 | CL | auc | 0.8985 ± 0.0007 | 0.8985 ± 0.0010 | +0.0000 | = | 2 | 2 |"
    assert line_of(text, "adult", "[0,1]", 8, "CL") == words
    assert "| not run |" in line_of(text, "adult", "[0,1]", 8, "PL")
    assert text.count("not run") == 95
    for path in (tmp_path / "records" / "llp").iterdir():
        path.unlink()
    collect(tmp_path)
    assert markdown("llp", results=tmp_path).count("not run") == 96


def test_the_best_of_a_cell_is_marked(tmp_path: Path) -> None:
    put(tmp_path, "llp", ADULT, "CL", 0.8990)
    assert "▲" not in markdown("llp", results=tmp_path)  # of one method nothing is said
    put(tmp_path, "llp", ADULT, "PL", 0.8991)
    text = markdown("llp", results=tmp_path)
    assert text.count("▲") == 1
    assert "0.8991 ▲" in line_of(text, "adult", "[0,1]", 8, "PL")


def test_bold_within_one_standard_error_and_with_all_seeds(tmp_path: Path) -> None:
    put(tmp_path, "llp", ADULT, "CL", 0.890, 0.892)  # 0.891 ± 0.001, a standard error
    put(tmp_path, "llp", ADULT, "PL", 0.8905, 0.8905)
    put(tmp_path, "llp", ADULT, "LMMCM", 0.8899, 0.8899)
    rows = summary("llp", results=tmp_path)
    assert {rows[place].entry.method for place in best(rows)} == {"CL", "PL"}
    put(tmp_path, "llp", ADULT, "CL-trees", 0.8912)  # one seed is ahead: it is not in bold, nor is what is behind it
    rows = summary("llp", results=tmp_path)
    assert best(rows) == set()


def test_a_changed_recipe_is_stale(tmp_path: Path) -> None:
    """It is shown as what it is, and counts for nothing; one record of today's recipe takes its place."""
    old = [Run("llp", ADULT, "CL", "fast", seed) for seed in range(3)]
    for run in old:
        changed = record(run, auc=0.95)
        changed["recipe"] |= {"epochs": 1}
        records.write(tmp_path, run, changed)
    put(tmp_path, "llp", ADULT, "PL", 0.8884)
    rows = summary("llp", results=tmp_path)
    (row,) = [row for row in rows if row.entry.method == "CL" and row.values]
    assert row.stale
    assert row.values == (0.95,) * 3
    assert best(rows) == set()
    assert not any("CL is" in sentence for sentence in findings(rows))
    assert "1 is stale" in findings(rows)[-1]
    assert "| 0.9500 ± 0.0000 stale |" in line_of(markdown("llp", results=tmp_path), "adult", "[0,1]", 8, "CL")
    put(tmp_path, "llp", ADULT, "CL", 0.9)
    (row,) = [row for row in summary("llp", results=tmp_path) if row.entry.method == "CL" and row.values]
    assert (row.values, row.stale) == ((0.9,), False)


def test_the_earlier_loop_is_marked(tmp_path: Path) -> None:
    run = Run("llp", ADULT, "CL", "fast", 0)
    records.write(tmp_path, run, record(run, auc=0.9) | {"recipe_hash": None})
    collect(tmp_path)
    assert "| 0.9000 † |" in line_of(markdown("llp", results=tmp_path), "adult", "[0,1]", 8, "CL")


def test_seconds_beside_quality(tmp_path: Path) -> None:
    """Only of cells that all methods have; by the clock as soon as one record has no time of the processor."""
    put(tmp_path, "llp", ADULT, "CL", 0.9, 0.92)
    assert times("llp", results=tmp_path) == []
    put(tmp_path, "llp", ADULT, "PL", 0.8)
    put(tmp_path, "llp", ADULT | {"bag_size": 32}, "CL", 0.5)  # PL has no such cell
    assert times("llp", results=tmp_path) == [
        ("llp: adult", "CL", 1, pytest.approx(0.91), 2.0, "wall"),
        ("llp: adult", "PL", 1, 0.8, 2.0, "wall"),
    ]
    run = Run("llp", ADULT, "PL", "fast", 0)
    records.write(tmp_path, run, record(run, auc=0.8) | {"cpu_seconds": 1.5})
    collect(tmp_path)
    assert times("llp", results=tmp_path)[1][4:] == (1.5, "CPU")
    assert "| llp: adult | PL | 1 | `auc` | 0.8000 | 2 CPU |" in times_markdown(results=tmp_path)


def test_what_is_missing_and_its_hours(tmp_path: Path) -> None:
    """Hours grow with the work: epochs times digits in bags, and a third of that for the digits that are scored."""
    cell = {"data": "mnist", "setting": "N(10,2)", "bags": 50}
    for method in ("CL", "Attention"):
        put(tmp_path, "mil", cell, method, 0.9, 0.9, 0.9, metric="auc_rounded")  # two seconds each
    found = {each.command: each for each in missing("mil", results=tmp_path)}
    command = "python -m paper mil --only 'setting=N(10,2)' --only method=CL"
    epochs = {bags: recipe("mil", cell | {"bags": bags}, "CL", "fast")["epochs"] for bags in BAGS}
    work = {bags: 10 * (epochs[bags] * bags + 1000 / 3) for bags in BAGS}
    hours = 3 * sum(2 * work[bags] / work[50] for bags in BAGS if bags != 50) / 3600
    assert found[command][:3] == (command, 3 * 6, 0)
    assert found[command].hours == pytest.approx(hours)
    assert len(found) == 9
    assert "| all of it | " in missing_markdown(results=tmp_path)
    assert not [
        each for each in missing("mil-instance", results=tmp_path) if "method=CL" in each.command
    ]  # trained once
    run = Run("mil", cell, "CL", "fast", 0)
    changed = record(run, auc_rounded=0.9)
    changed["recipe"] |= {"lr": 1.0}
    records.write(tmp_path, run, changed)
    collect(tmp_path)
    assert {each.command: each for each in missing("mil", results=tmp_path)}[command][1:3] == (3 * 6 + 1, 1)


def test_cells_of_both_presets(tmp_path: Path) -> None:
    put(tmp_path, "llp", ADULT, "CL", 0.90, 0.92)
    assert presets_markdown(results=tmp_path) == "No cell was run with `paper`."
    run = Run("llp", ADULT, "CL", "paper", 0)
    records.write(tmp_path, run, record(run, auc=0.89))
    collect(tmp_path)
    assert presets_markdown(results=tmp_path).splitlines()[2:] == [
        "| `llp` | adult [0,1] 8 | CL | `auc` | 0.9100 ± 0.0141 (2 seeds) | 0.8900 (1 seed) | 0.8985 ± 0.0010 |"
    ]
    records.write(tmp_path, run, record(run, auc=0.89) | {"recipe": {"lr": 1.0}})  # a recipe that is no more
    collect(tmp_path)
    assert presets_markdown(results=tmp_path) == "No cell was run with `paper`."


def test_standard_errors_and_percent(tmp_path: Path) -> None:
    put(tmp_path, "mil", {"data": "mnist", "setting": "N(10,2)", "bags": 50}, "CL", 0.8, 0.9, metric="auc_rounded")
    assert "0.8500 ± 0.0500" in line_of(markdown("mil", results=tmp_path), "mnist", "N(10,2)", 50, "CL")
    put(tmp_path, "pu", {"data": "mnist17", "setting": "mixture 0.5"}, "CL", 0.99, metric="accuracy")
    found = line_of(markdown("pu", results=tmp_path), "mnist17", "mixture 0.5", "CL")
    assert found == "| mnist17 | mixture 0.5 | CL | accuracy | 99.00 | 99.00 ± 0.19 | +0.00 | = | 1 | 2 |"


def test_folds_are_averaged_within_a_seed(tmp_path: Path) -> None:
    for seed, fold, value in [(0, 0, 0.8), (0, 1, 1.0), (1, 0, 0.7)]:
        run = Run("colon", {"data": "colon", "setting": "10-fold", "fold": fold}, "CL", "fast", seed)
        records.write(tmp_path, run, record(run, accuracy=value))
    collect(tmp_path)
    (row,) = [row for row in summary("colon", results=tmp_path) if row.values]
    assert (row.values, row.folds) == ((0.9, 0.7), 3)
    assert "2 (3 folds)" in markdown("colon", results=tmp_path)
    assert findings([row]) == ["CL over 3 folds: accuracy 0.800; 0 of 1 are within one published spread or above."]


def test_the_other_preset_is_another_table(tmp_path: Path) -> None:
    put(tmp_path, "llp", ADULT, "CL", 0.9)
    assert markdown("llp", results=tmp_path, preset="paper").count("not run") == 96


def test_report(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    put(tmp_path, "llp", ADULT, "CL", 0.8990, 0.8980)
    reproduce("figures", only="figure=dynamic-programming", results=tmp_path, progress=False)
    pmf = Run("figures", {"figure": "count-distribution"}, "CL", "fast", 0)
    records.write(tmp_path, pmf, record(pmf) | {"metrics": {"pmf": [0.01] * 101, "positives": [50] * 5}})
    bag = Run("figures", {"figure": "test-bag"}, "CL", "fast", 0)
    pixels = base64.b64encode(zlib.compress(bytes(784 * 2))).decode()
    shown = {"images": pixels, "digits": [9, 1], "probabilities": [0.99, 1e-7]}
    records.write(tmp_path, bag, record(bag) | {"metrics": shown})
    put(tmp_path, "mil-small", {"data": "mnist", "setting": "N(5,1)", "bags": 10}, "CL", 0.6, 0.7, metric="auc_rounded")
    files = report(tmp_path, tmp_path / "report")
    assert {path.name for path in files} == {
        "tables.md",
        "reproduction.html",
        "dynamic-programming.svg",
        "small-data.svg",
        "test-bag.svg",
        "count-distribution.svg",
    }
    text, page = files[0].read_text(), files[1].read_text()
    assert "0.8985 ± 0.0007" in text
    assert "0.8985 ± 0.0007" in page
    assert "1 of 96 rows have records" in text
    assert page.count("data:image/svg+xml;base64,") == 4
    assert "hyperparameters of <code>fast</code> were chosen" in page
    assert "`" not in page
    assert "The distribution of the count of three instances" in page
    assert "The distribution of the count of three instances" not in text  # figures are on the page
    before = [path.read_bytes() for path in files]
    assert [path.read_bytes() for path in report(tmp_path, tmp_path / "report")] == before


def test_report_of_nothing(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    files = report(tmp_path, tmp_path / "report")
    assert [path.name for path in files] == ["tables.md", "reproduction.html"]
    assert files[0].parent == tmp_path
    assert files[1].read_text().count('<p class="not-run">not run</p>') == 4  # the figures
    assert report(tmp_path, tmp_path / "report", preset="paper")[0].name == "tables-paper.md"


def test_the_tables_that_are_committed_are_those_of_the_records() -> None:
    assert (records.RESULTS / "tables.md").read_text() == tables_markdown(), "run `python -m paper all --report`"


def test_a_damaged_file_is_told_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "pu.jsonl").write_text("[]\n")
    with pytest.raises(ValueError, match=r"pu\.jsonl, line 1, lacks"):
        report(tmp_path, tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_the_papers_example() -> None:
    pmfs = run_cell(Run("figures", {"figure": "dynamic-programming"}, "CL", "fast", 0))["metrics"]["pmfs"]
    expected = [[1.0], [0.9, 0.1], [0.72, 0.26, 0.02], [0.504, 0.398, 0.092, 0.006]]
    for pmf, wanted in zip(pmfs, expected, strict=True):
        assert pmf == pytest.approx(wanted, rel=1e-12)
