"""The paper's layout and the sentences: every number is counted from the rows, nothing is said of what was not run."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest
from paper_cases import record

from paper import records
from paper.cells import METHODS, TABLES, Run
from paper.differences import differences, differences_markdown
from paper.findings import findings
from paper.records import collect
from paper.summary import summary
from paper.table_layout import html_layout, layouts, markdown_layout


def put(results: Path, table: str, cell: dict[str, object], method: str, *values: float, metric: str) -> None:
    for seed, value in enumerate(values):
        run = Run(table, cell, method, "fast", seed)
        records.write(results, run, record(run, **{metric: value}))
    collect(results)


def llp(results: Path, setting: str, size: int, method: str, *values: float) -> None:
    cell = {"data": "adult", "setting": setting, "bag_size": size}
    put(results, "llp", cell, method, *values, metric="auc")


@pytest.mark.parametrize("table", [table for table in TABLES if table != "figures"])
def test_every_row_has_its_place(table: str, tmp_path: Path) -> None:
    rows = summary(table, results=tmp_path)
    found = layouts(rows)
    places = [entry for layout in found for line in layout.lines for entry in line.entries if entry is not None]
    assert len(places) == len(rows)
    assert {entry.ours for entry in places} == {"not run"}
    for layout in found:
        methods = [line.name for line in layout.lines] if table == "pu" else layout.columns
        assert sorted(methods) == sorted(METHODS[table])
        assert {len(line.entries) for line in layout.lines} == {len(layout.columns)}
    assert findings(rows) == []


def test_one_table_a_metric_and_words_that_tell(tmp_path: Path) -> None:
    accuracy, auc = layouts(summary("mil-instance", results=tmp_path))
    assert (accuracy.metric, auc.metric) == ("accuracy", "auc_rounded")
    assert accuracy.lines[0][:2] == ("N(10,2)", "50")  # all data are MNIST: not said
    (colon,) = layouts(summary("colon", results=tmp_path))
    assert [line[:2] for line in colon.lines] == [
        ("", metric) for metric in ("accuracy", "auc_rounded", "f1", "precision", "recall")
    ]
    (pu,) = layouts(summary("pu", results=tmp_path))
    assert pu.columns == ["binarized-mnist", "mnist17", "binarized-cifar", "cifar-cat-dog"]


def test_an_entry(tmp_path: Path) -> None:
    llp(tmp_path, "[0,1]", 8, "CL", 0.9100, 0.9101, 0.9102)
    llp(tmp_path, "[0,1]", 8, "PL", 0.8884)
    (layout,) = layouts(summary("llp", results=tmp_path))
    (line,) = [line for line in layout.lines if line[:2] == ("adult, [0,1]", "8")]
    ours, trees, baseline, _ = line.entries
    assert ours == ("0.9101 ± 0.0001", "0.8985 ± 0.0010", "+*", "3 of 5 seeds", True)
    assert trees == ("not run", "", "", "", False)
    assert baseline == ("0.8884", "0.8884 ± 0.0030", "=", "1 of 5 seeds", False)
    header, _, *lines = markdown_layout(layout).splitlines()
    assert header == "|  | bag size | CL | CL, published | CL-trees | PL | PL, published | LMMCM | LMMCM, published |"
    assert (
        "| adult, [0,1] | 8 | **0.9101 ± 0.0001** +\\* (3 of 5 seeds) | 0.8985 ± 0.0010 | not run "
        "| 0.8884 = (1 of 5 seeds) | 0.8884 ± 0.0030 | not run | 0.8831 ± 0.0026 |" in lines
    )


class Counted(HTMLParser):
    """How many columns each line of a table has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.lines: list[int] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.lines.append(0)
        if tag in ("td", "th"):
            self.lines[-1] += int(dict(attrs).get("colspan") or 1)


@pytest.mark.parametrize("table", [table for table in TABLES if table != "figures"])
def test_lines_of_html_have_the_same_columns(table: str, tmp_path: Path) -> None:
    for layout in layouts(summary(table, results=tmp_path)):
        text = html_layout(layout)
        lines = Counted(text).lines
        published = sum(layout.has_published(place) for place in range(len(layout.columns)))
        second = 1 if published else 0
        columns = 1 + len(layout.columns) + published
        assert lines[0] == columns
        assert set(lines[1 + second :]) == {columns}
        assert text.count("<th>published</th>") == published


def test_html_tells_what_the_entry_tells(tmp_path: Path) -> None:
    llp(tmp_path, "[0,1]", 8, "CL", 0.9100, 0.9101, 0.9102)
    llp(tmp_path, "[0,1]", 8, "PL", 0.8884, 0.8884, 0.8884)
    (layout,) = layouts(summary("llp", results=tmp_path))
    text = html_layout(layout)
    assert '<tr class="block"><th colspan="8">adult, [0,1]</th></tr>' in text
    assert (
        '<th scope="row"><span class="key">bag size </span>8</th><td data-label="CL, ours"><strong>0.9101 ± 0.0001'
        '</strong> <span class="mark">+*</span><br><small>3 of 5 seeds</small></td>'
        '<td class="published" data-label="published">0.8985 ± 0.0010</td>'
        '<td class="alone" data-label="CL-trees"><span class="not-run">not run</span></td>' in text
    )


def test_a_stale_cell_says_so_on_the_page_and_a_deleted_record_is_not_run(tmp_path: Path) -> None:
    llp(tmp_path, "[0,1]", 8, "CL", 0.9100)
    run = Run("llp", {"data": "adult", "setting": "[0,1]", "bag_size": 8}, "CL", "fast", 0)
    changed = record(run, auc=0.91)
    changed["recipe"] |= {"lr": 1.0}
    records.write(tmp_path, run, changed)
    collect(tmp_path)
    assert "<small>stale, 1 of 5 seeds</small>" in html_layout(layouts(summary("llp", results=tmp_path))[0])
    records.record_path(tmp_path, run).unlink()
    collect(tmp_path)
    text = html_layout(layouts(summary("llp", results=tmp_path))[0])
    assert text.count("not run</span>") == 96
    assert "stale" not in text


@pytest.mark.parametrize("table", [table for table in TABLES if table != "figures"])
def test_differences_are_those_of_the_recipes(table: str) -> None:
    for name, methods, papers, ours in differences(table):
        assert set(methods.split(", ")) <= set(METHODS[table])
        assert (papers, ours) != ("none", "none"), name
    assert differences_markdown(table).endswith(".")


def test_differences_in_words() -> None:
    assert ("network", "CL, CL-expect, CVIR, nnPU, uPU", "5000-5000-50 or ResNet-18") in [
        line[:3] for line in differences("pu")
    ]
    assert ("weight_decay", "CL", "0.0001", "0 or 0.0001") in differences("mil")


def test_proportions_in_sentences(tmp_path: Path) -> None:
    llp(tmp_path, "[0,1]", 8, "CL", 0.8990, 0.8980)  # as published
    llp(tmp_path, "[0,1]", 8, "PL", 0.8800)
    llp(tmp_path, "[0,1]", 32, "CL", 0.8700)  # below
    llp(tmp_path, "[0,1]", 32, "LMMCM", 0.8800)
    llp(tmp_path, "[0,1]", 128, "CL", 0.9000)  # above, but PL is ahead of it
    llp(tmp_path, "[0,1]", 128, "PL", 0.9100)
    llp(tmp_path, "[0,1]", 8, "CL-trees", 0.9100)  # no method of the paper: in no contest of its methods
    llp(tmp_path, "[0,1]", 128, "CL-trees", 0.8870)
    near, baselines, ahead, above, trees, first, coverage = findings(summary("llp", results=tmp_path))
    assert near == (
        "CL is within one published spread or above in 2 of 3 cells (1 to 2 seeds); "
        "not in adult [0,1] 32: CL 0.8700, published 0.8891."
    )
    assert baselines == (
        "Of the baselines, these are within one published spread or above: PL in 1 of 2 cells; LMMCM in 0 of 1 cells."
    )
    assert ahead == (
        "CL has the highest mean of the methods as they ran here in 1 of 3 cells; "
        "not in adult [0,1] 32: LMMCM 0.8800, published 0.8819; adult [0,1] 128: PL 0.9100, published 0.8879."
    )
    assert above == (
        "CL is no lower than the best published baseline in 2 of 3 cells; not in adult [0,1] 32: CL 0.8700, PL 0.8884."
    )
    assert trees == (
        "CL-trees is at or above the published CL in 1 of 2 cells (1 seed); not in adult [0,1] 128: CL-trees 0.8870."
    )
    assert first == (
        "CL-trees has the highest mean of the methods as they ran here in 1 of 2 cells; "
        "not in adult [0,1] 128: PL 0.9100, published 0.8879."
    )
    assert coverage == "Of 96 cells, each with one method, 88 are not run, and not counted."


def test_bags_in_sentences(tmp_path: Path) -> None:
    for bags, value in [(50, 0.818 - 0.024), (100, 0.906 - 0.010)]:  # published: ± 0.024, ± 0.009
        cell = {"data": "mnist", "setting": "N(10,2)", "bags": bags}
        put(tmp_path, "mil", cell, "CL", value, metric="auc_rounded")
    near, above, _ = findings(summary("mil", results=tmp_path))  # CL alone: no contest here
    assert near == (
        "CL is within one published spread or above in 1 of 2 cells (1 seed); "
        "not in mnist N(10,2) 100: CL 0.896, published 0.906."
    )
    assert above == (
        "CL is no lower than the best published baseline in 0 of 2 cells; not in mnist N(10,2) 50: CL 0.794, "
        "Attention 0.807; mnist N(10,2) 100: CL 0.896, Attention 0.913."
    )


def test_positive_unlabelled_in_sentences(tmp_path: Path) -> None:
    put(tmp_path, "pu", {"data": "mnist17", "setting": "mixture 0.5"}, "CL", 0.990, 0.988, metric="accuracy")
    alone = "CL on mnist17: 98.90 %, 2 seeds (lowest 98.80)."
    assert findings(summary("pu", results=tmp_path))[:2] == [
        alone,
        "CL is within one published spread or above in 1 of 1 cells (2 seeds).",
    ]
    put(tmp_path, "pu", {"data": "mnist17", "setting": "mixture 0.5"}, "CVIR", 0.991, metric="accuracy")
    assert (
        "CL has the highest mean of the methods as they ran here in 0 of 1 cells; "
        "not in mnist17 mixture 0.5: CVIR 99.10, published 98.70." in findings(summary("pu", results=tmp_path))
    )


def test_equal_means_lead_together(tmp_path: Path) -> None:
    cell = {"data": "mnist", "setting": "N(10,2)", "bags": 10}
    put(tmp_path, "mil-small", cell, "Gated Attention", 0.1, 0.2, metric="auc_rounded")
    put(tmp_path, "mil-small", cell, "Attention", 0.1, 0.1, metric="auc_rounded")
    put(tmp_path, "mil-small", cell, "CL", 0.15, 0.15, metric="auc_rounded")  # the float below
    rows = summary("mil-small", results=tmp_path)
    (layout,) = layouts(rows)
    marked = [m for line in layout.lines for m, e in zip(layout.columns, line.entries, strict=True) if e and e.best]
    assert sorted(marked) == ["CL", "Gated Attention"]
    assert findings(rows)[0] == "CL has the highest mean of the methods as they ran here in 1 of 1 cells."


def test_instances_in_sentences(tmp_path: Path) -> None:
    cell = {"data": "mnist", "setting": "N(10,2)", "bags": 50}
    for method, accuracy, auc in [("CL", 0.9551, 0.8), ("Instance-Max", 0.96, 0.7)]:
        run = Run("mil-instance", cell, method, "fast", 0)
        records.write(tmp_path, run, record(run, accuracy=accuracy, auc_rounded=auc))
    collect(tmp_path)
    assert findings(summary("mil-instance", results=tmp_path)) == [
        "CL is within one published spread or above by accuracy in 1 of 1 cells (1 seed).",
        "Of the baselines by accuracy, these are within one published spread or above: Instance-Max in 1 of 1 cells.",
        "CL has the highest mean of the methods as they ran here in 0 of 1 cells by accuracy; "
        "not in mnist N(10,2) 50: Instance-Max 0.9600, published 0.8714.",
        "CL is no lower than the best published baseline in 1 of 1 cells by accuracy.",
        "CL is within one published spread or above by auc_rounded in 0 of 1 cells (1 seed); "
        "not in mnist N(10,2) 50: CL 0.8000, published 0.8341.",
        "Of the baselines by auc_rounded, these are within one published spread or above: Instance-Max in 1 of 1 "
        "cells.",
        "CL has the highest mean of the methods as they ran here in 1 of 1 cells by auc_rounded.",
        "CL is no lower than the best published baseline in 1 of 1 cells by auc_rounded.",
        "Of 42 cells, each with one method, 40 are not run, and not counted.",
    ]
