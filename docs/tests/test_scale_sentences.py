"""What the page about scale says follows its records."""

from __future__ import annotations

import pytest
import scale

SCALE = {
    "costs": [
        {"size": 1, "bags": 1000, "instances": 1000, "seconds": 50e-6},
        {"size": 10, "bags": 100, "instances": 1000, "seconds": 7e-6},
        {"size": 100, "bags": 10, "instances": 1000, "seconds": 9e-6},
    ],
    "simulation": {
        "rows": 10**8,
        "bags": 10**6,
        "steps": 100,
        "seconds": {"drawing": 6.0, "loss and gradient": 0.8, "model": 0.7},
        "largest error of a weight": 0.0042,
        "peak": 5 * 10**8,
    },
}
FIT = {"peak": 2.4e9, "anonymous": 2.2e9, "seconds": 1200.0, "processor": 600.0}
LARGE = {"rows": 20_000_000, "columns": 20, "bag": 100, "bytes": 1.8e9, "files": 20, "fits": {"trees": FIT}}


def test_sentences_follow_the_records() -> None:
    assert "of 10 to 100 an instance costs 9 to 7 ns" in scale.costs(SCALE)
    assert "of one instance costs 50 ns" in scale.costs(SCALE)
    said = scale.simulation(SCALE)
    assert "**100 million instances in 1 million bags of 100**" in said
    assert "gradient 0.8 s, and the model 0.7 s" in said
    said = scale.tables(LARGE, ["trees", "network"])
    assert "- Network: not run to its end yet." in said
    assert "1.6 GB as a matrix" in said
    assert "- **Trees**: at most 2.40 GB, of which 2.20 GB" in said
    assert "20 minutes in all, 10 of them processor time" in said


def test_a_billion_is_multiplied_from_them() -> None:
    said = scale.billion(SCALE, LARGE)
    assert "| loss and gradient of all bags, once | 8 s |" in said
    assert "| an epoch of a logistic model, data at hand | 15 s |" in said
    assert "| trees, 20 columns | 8.3 h | 110 GB |" in said


@pytest.mark.parametrize("name", scale.MADE)
def test_todays_records_have_what_is_told(name: str) -> None:
    assert scale.MADE[name]()
    assert scale.on_page_markdown(f"a\n<!-- scale: {name} -->\nb") == f"a\n{scale.MADE[name]()}\nb"
