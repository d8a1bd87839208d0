"""All tables in one count: what is as published, what falls short, what was not run."""

from __future__ import annotations

from pathlib import Path

from paper_cases import record

from paper import records
from paper.cells import Run
from paper.standing import short_markdown, standing_markdown

ADULT = {"data": "adult", "setting": "[0,1]", "bag_size": 8}  # PL: 0.8884 ± 0.0030


def put(results: Path, method: str, auc: float) -> None:
    run = Run("llp", ADULT, method, "fast", 0)
    records.write(results, run, record(run, auc=auc))
    records.collect(results)


def test_cells_are_counted_and_those_that_fall_short_named(tmp_path: Path) -> None:
    put(tmp_path, "CL", 0.9)
    put(tmp_path, "PL", 0.8855)  # within one spread
    put(tmp_path, "LMMCM", 0.8779)  # 2 spreads of 0.0026 below 0.8831
    put(tmp_path, "CL-trees", 0.5)  # not the paper's
    assert "| `llp` | 1 of 1 (100 %) | 1 of 2 (50 %) | 69 |" in standing_markdown(results=tmp_path)
    assert standing_markdown(results=tmp_path).splitlines()[-1].startswith("| all | 1 of 1 (100 %) | 1 of 2 (50 %) |")
    assert short_markdown(results=tmp_path) == (
        "- adult [0,1] 8, LMMCM, auc: 0.8779, published 0.8831 ± 0.0026, 2.0 spreads below, 1 seed"
    )


def test_a_stale_record_counts_for_nothing(tmp_path: Path) -> None:
    run = Run("llp", ADULT, "PL", "fast", 0)
    stale = record(run, auc=0.8) | {"recipe": {"lr": 1.0}, "recipe_hash": "0123456789ab"}
    records.write(tmp_path, run, stale)
    records.collect(tmp_path)
    assert "| `llp` | 0 of 0 | 0 of 0 | 72 |" in standing_markdown(results=tmp_path)
    assert short_markdown(results=tmp_path) == "None."
