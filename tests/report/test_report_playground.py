"""The playground in the footer of a report: folded, and beginning with a bag of the model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from typing import Any

import numpy as np
import pytest
import torch
from headless_chromium import Chromium
from report_cases import EVIL, full

import kofn
from kofn.report import BagDistribution, ExampleBag, Instance, Report, render, write

PROBABILITIES = [0.9, 0.7, 0.4, 0.2, 0.05]


def whole_bag(name: str = "bag 3", *, known: int | None = 2, size: int = 5) -> ExampleBag:
    distribution = BagDistribution(name, np.full(6, 1 / 6), known=known)
    return ExampleBag(name, size, [Instance(p) for p in PROBABILITIES], "2 positives", distribution=distribution)


def seed(report: Report) -> Any:
    """The bag that the playground of a report begins with; None for one of its own."""
    found = re.search(r'data-seed="([^"]*)"', render(report))
    return None if found is None else json.loads(unescape(found[1]))


def test_it_begins_with_the_typical_bag_and_its_label() -> None:
    bag = seed(Report("Votes", "llp", typical_bag=whole_bag()))
    assert bag["title"] == "Bag bag 3"
    assert bag["probabilities"] == PROBABILITIES
    assert bag["statement"] == {"name": "Exactly", "counts": 2}
    assert seed(Report("All", parts=[Report("Votes", "llp", typical_bag=whole_bag())])) == bag


@pytest.mark.parametrize(
    ("positive", "statement"), [(True, {"name": "AtLeast", "low": 1}), (False, {"name": "Exactly", "counts": 0})]
)
def test_a_bag_label_is_a_statement(positive: bool, statement: dict[str, Any]) -> None:
    table = full().bags
    assert table is not None
    slides = replace(table, positive=np.full(len(table), positive))
    assert seed(Report("Slides", "mil", bags=slides, typical_bag=whole_bag()))["statement"] == statement


def test_what_is_not_a_whole_bag_with_a_count_is_not_shown() -> None:
    assert seed(Report("Nothing yet")) is None
    assert seed(Report("Noise", "llp", typical_bag=whole_bag(known=None))) is None
    assert seed(Report("A part", "llp", typical_bag=whole_bag(size=9))) is None
    assert seed(Report("No labels", "mil", typical_bag=whole_bag())) is None
    assert 'class="playground"' in render(Report("Nothing yet"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium.opened() as opened:
        yield opened


@pytest.mark.browser
@pytest.mark.parametrize("name", ["bag 3", "W" * 90, EVIL], ids=["short", "long", "evil"])
def test_it_unfolds_and_computes(browser: Chromium, name: str) -> None:
    path = browser.folder / "report.html"
    write(Report("Votes", "llp", typical_bag=whole_bag(name)), path)
    browser.log("browser")
    browser.log("performance")
    browser.open(path.as_uri(), width=390, scheme="dark")
    assert browser.run("return document.querySelectorAll('.playground svg').length") == 0  # nothing is drawn unseen
    browser.driver.find_element("css selector", "footer summary").click()
    shown = browser.driver.execute_async_script(
        "const done = arguments[0], look = () => document.querySelector('[role=slider]')"
        " ? done([...document.querySelectorAll('[role=slider]')].map((bar) => Number(bar.ariaValueNow))) : setTimeout(look, 20);"
        "look()"
    )
    assert shown == PROBABILITIES
    loss = kofn.count_loss(torch.tensor(PROBABILITIES, dtype=torch.float64).logit(), kofn.Exactly(2))
    assert float(browser.run("return document.querySelector('.pg-loss').textContent")) == pytest.approx(
        float(loss), abs=5.1e-5
    )
    assert browser.run("return document.querySelector('.pg-presets button').textContent") == f"Bag {name}"
    assert browser.run("return document.documentElement.scrollWidth") <= 390
    assert browser.log("browser") == []
    assert [url for url in browser.requested() if not url.startswith("data:")] == [path.as_uri()]


@pytest.mark.browser
def test_it_may_be_opened_before_the_page_has_been_laid_out(browser: Chromium) -> None:
    path = browser.folder / "early.html"
    write(Report("Votes", "llp", typical_bag=whole_bag()), path)
    path.write_text(path.read_text().replace('<details class="pg-folded">', '<details class="pg-folded" open>'))
    for width in (390, 1280):
        browser.log("browser")
        browser.open(path.as_uri(), width=width, scheme="light")
        browser.run("const fold = document.querySelector('footer details'); fold.open = false; fold.open = true;")
        drawn = (
            "return [...document.querySelectorAll('.playground svg')].map((svg) => svg.getBoundingClientRect().width)"
        )
        browser.run("return new Promise((done) => setTimeout(done, 300))")
        assert len(browser.run(drawn)) == 2
        assert min(browser.run(drawn)) > 200
        assert browser.log("browser") == []
