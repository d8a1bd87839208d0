"""What the README says of evidence is what the records say today."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from records import told  # of docs/hooks

from paper.summary import summary

ROOT = Path(__file__).parents[1]
README = " ".join((ROOT / "README.md").read_text().split())


def record(name: str) -> Any:
    return json.loads((ROOT / "bench" / name).read_text())


def test_label_proportions() -> None:
    assert "CL-trees is at or above the published CL in 24 of 24 cells" in told("llp")
    assert "at or above the published count loss in 24 of 24 cells" in README


def test_exact() -> None:
    fuzz = record("fuzz.json")
    float64_to_float16 = sum(many for name, many in fuzz["numbers"].items() if name.endswith("native"))
    assert sum(fuzz["wrong"].values()) == 0
    assert f"of {float64_to_float16:,} numbers none is wrong" in README


def test_fast() -> None:
    large = record("scaling.json")["milliseconds"]["one count"]["kofn"]["100000"]
    batch = record("latest.json")["milliseconds"]["128 bags x 32, one count"]
    assert f"with its gradient: {large:.2f} ms" in README
    assert f"the loss takes {batch['kofn'] / batch['floor']:.1f} times as long as the bare autograd call" in README
    assert f"the paper's algorithm {batch['algorithm 1'] / batch['kofn']:.0f} times as long" in README


def test_honest_about_doubt() -> None:
    rows = [line.split("|") for line in (ROOT / "bench/bag_effect.md").read_text().splitlines()]
    held = sorted(float(row[6].strip(" %")) for row in rows if row[1:2] and "features that vary," in row[1])
    assert len(held) == 4
    assert f"hold {held[0]} to {held[-1]} %" in README


def test_where_it_does_not_win() -> None:
    found = re.search(r"CL is no lower than the best published baseline in (\d+) of (\d+) cells", told("mil"))
    assert found is not None
    below, cells = int(found[2]) - int(found[1]), int(found[2])
    colon = {row.entry.method: row.mean for row in summary("colon") if row.metric == "accuracy"}
    assert colon["CL"] < colon["Gated Attention"]
    assert f"attention pooling is ahead in {below} of {cells} multiple instance cells and on images of colon" in README
