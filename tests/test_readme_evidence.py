"""What the README says of evidence is what the records say today, and it says nothing else.

Each sentence is made from all rows of its record by a function of `docs/hooks`, where the site takes it from as well.
The tests of `docs/tests` show that these functions leave no row out; here the ranges are found again from raw runs.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import evidence
import pytest
import records
import speed

from paper.standing import standing_markdown

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
SENTENCES: dict[str, Callable[[], str]] = {
    "paper": lambda: records.headline(None),
    "exact": evidence.MADE["exact"],
    "fast": speed.MADE["cases"],
    "counts": evidence.MADE["counts"],
    "bootstrap": evidence.MADE["bootstrap"],
    "small bags": speed.MADE["ahead"],
    "attention": lambda: records.behind(None),
}


def told() -> str:
    """The section, on one line."""
    section = re.search(r"^## Evidence\n(.*?)^## ", README, flags=re.M | re.S)
    assert section is not None
    return " ".join(section[1].split())


@pytest.mark.parametrize("name", SENTENCES)
def test_a_sentence_is_that_of_the_records(name: str) -> None:
    assert SENTENCES[name]() in told()


def test_no_number_was_typed() -> None:
    """Without the sentences that are made from records, the section has no number."""
    rest = told()
    for sentence in SENTENCES.values():
        rest = rest.replace(sentence(), "")
    assert re.findall(r"\d+", rest) == []


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (ROOT / "bench" / name).read_text().splitlines()]


def test_intervals_of_counts_are_those_of_all_runs() -> None:
    held: dict[tuple[str, str, float], list[float]] = defaultdict(list)
    for run in lines("bag_effect.jsonl"):
        for how in ("with", "without"):
            held[how, run["design"], run["effect"]].append(run[how]["coverage"])
    for how in ("with", "without"):
        means = sorted(100 * fmean(some) for key, some in held.items() if key[0] == how)
        assert f"{means[0]:.1f} to {means[-1]:.1f} %" in evidence.MADE["counts"]()


def test_bootstrap_intervals_are_those_of_all_runs() -> None:
    held: dict[str, list[bool]] = defaultdict(list)
    for run in lines("intervals.jsonl"):
        held[run["design"]] += [each["low"] <= each["truth"] <= each["high"] for each in run["age"].values()]
    means = sorted(100 * fmean(some) for some in held.values())
    assert f"{means[0]:.1f} to {means[-1]:.1f} % of the truths" in told()
    assert f"in {len(means)} settings" in told()


def test_cells_of_the_paper_are_all_that_were_run() -> None:
    for table in records.WORDS:
        row = re.search(rf"^\| `{table}` \| (\d+ of \d+) ", standing_markdown(), flags=re.M)
        assert row is not None
        assert f"{row[1]} {records.WORDS[table]}" in told()
    total = re.search(r"^\| all \| (\d+ of \d+) ", standing_markdown(), flags=re.M)
    assert total is not None
    assert f"in {total[1]} cells: " in told()


def test_cells_in_which_attention_is_ahead_are_those_of_the_findings() -> None:
    highest, published = (
        re.search(rf"CL {words} in (\d+) of (\d+) cells", records.told("mil"))
        for words in (
            "has the highest mean of the methods as they ran here",
            "is no lower than the best published baseline",
        )
    )
    assert highest is not None
    assert published is not None
    assert f"ahead of the count loss in {int(highest[2]) - int(highest[1])} of {highest[2]} cells on bags" in told()
    assert f"as published in {int(published[2]) - int(published[1])} and" in told()


def test_the_first_example_says_that_its_groups_are_invented() -> None:
    intro = README.split("## From a file")[1].split("```")[0]
    assert "clinic" not in intro
    assert "invented" in intro


def test_links_lead_to_files_that_can_be_read_without_the_site() -> None:
    """Not to pages whose tables only the built site has."""
    links = re.findall(r"\]\(([^)#\s]+)|(?:src|srcset)=\"([^\"]+)", README)
    files = {ROOT / name for pair in links for name in pair if name and ":" not in name}
    assert len(files) > 15
    for file in files:
        assert file.exists(), file
        if file.suffix == ".md":
            assert not re.search(r'^<!-- table|^--8<-- "bench', file.read_text(), flags=re.M), file
