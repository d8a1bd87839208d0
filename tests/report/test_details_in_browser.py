"""A bag opens by mouse, by keyboard and by its address, in headless Chromium; its numbers are the library's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from headless_chromium import Chromium

import kofn
from kofn.report import Report, report_of, write

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore:this fit is no better")]
ENTER, ESCAPE, TAB = "\ue007", "\ue00c", "\ue004"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium.opened() as opened:
        yield opened


def rows(bags: int = 12, size: int = 8) -> tuple[pd.DataFrame, Any, Any]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({f"x{place}": rng.normal(size=bags * size) for place in range(9)})
    X["colour"] = rng.choice(["red", "blue"], bags * size)
    return X, X["x0"].to_numpy() > 0.3, np.repeat([f"ward {i}/b" for i in range(bags)], size)


def llp() -> tuple[Report, Any]:
    X, truth, groups = rows()
    y = pd.Series(truth).groupby(groups).transform("sum").to_numpy()
    model = kofn.LLPClassifier(kofn.Trees(rounds=5), label="count", random_state=0).fit(X, y, groups=groups)
    return report_of(model, X, y, groups, truth=truth), (model, X, y, groups)


def classes() -> tuple[Report, Any]:
    X, truth, groups = rows()
    codes = np.where(truth, 1 + (X["colour"] == "red"), 0)
    Y = pd.DataFrame(
        {name: pd.Series(codes == code).groupby(groups).transform("sum") for code, name in enumerate("abc")}
    )
    model = kofn.LLPClassifier(kofn.Trees(rounds=5), label="count", random_state=0).fit(X, Y, groups=groups)
    return report_of(model, X, Y, groups), None


def mil() -> tuple[Report, Any]:
    X, truth, groups = rows(size=3)
    y = pd.Series(truth).groupby(groups).transform("max").to_numpy().astype(int)
    model = kofn.MILClassifier(kofn.Trees(rounds=5), random_state=0).fit(X, y, groups=groups)
    return report_of(model, X, y, groups, truth=truth), None


def pu() -> tuple[Report, Any]:
    X, truth, groups = rows()
    model = kofn.PUClassifier(kofn.Trees(rounds=5), mixture=0.3, random_state=0).fit(X, truth & (X["x1"] > 0))
    return report_of(model, X, groups=groups, truth=truth), None


def show(browser: Chromium, report: Report, address: str = "", *, width: int = 1200, scheme: str = "light") -> Path:
    path = browser.folder / "details.html"
    write(report, path)
    browser.driver.get("about:blank")
    browser.log("browser")
    browser.log("performance")
    browser.open(path.as_uri() + address, width=width, scheme=scheme)
    return path


HEADING = "const d = document.querySelector('dialog'), heading = d.open ? d.querySelector('h2').textContent : '';"


def shows(browser: Chromium, heading: str) -> None:
    """The heading of the dialog is this, or becomes it; none is open where it is empty."""
    browser.until(HEADING + "return heading === arguments[0]", heading)


def shows_another_than(browser: Chromium, heading: str) -> None:
    browser.until(HEADING + "return heading && heading !== arguments[0]", heading)


def in_cells(browser: Chromium, place: int) -> list[float]:
    script = "return [...document.querySelectorAll('.rows-of-bag tbody tr')].map((r) => Number(r.cells[arguments[0]].dataset.v))"
    found: list[float] = browser.run(script, place)
    return found


def test_by_mouse_with_the_numbers_of_the_library(browser: Chromium) -> None:
    report, (model, X, y, groups) = llp()
    path = show(browser, report)
    shows(browser, "")
    first = browser.driver.find_element("css selector", "#bags tbody tr")
    name = first.find_element("css selector", "a").text
    first.find_elements("css selector", "td")[1].click()  # anywhere in the line
    shows(browser, f"Bag {name}")
    mine = groups == name
    place = list(dict.fromkeys(groups)).index(name)
    law = browser.run(
        "return [...document.querySelectorAll('.numbers tbody tr')].map((r) => [Number(r.cells[0].textContent), Number(r.cells[1].dataset.v)])"
    )
    expected = model.predict_bag_proba(X, groups)[place]
    for count, p in law:
        assert p == pytest.approx(expected[count], abs=1e-6)
    assert sum(p for _, p in law) == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(in_cells(browser, 0), sorted(model.predict_proba(X)[mine, 1], reverse=True), atol=1e-6)
    np.testing.assert_allclose(
        sorted(in_cells(browser, 1)), sorted(model.posterior_proba(X, y, groups)[mine, 1]), atol=1e-6
    )
    assert len(browser.driver.find_elements("css selector", "dialog rect.after")) >= 1
    assert browser.driver.find_element("css selector", "dialog .flagged").text == f"true: {y[mine][0]}"
    browser.driver.find_elements("css selector", ".dialog-bar button")[-1].click()
    shows(browser, "")
    browser.until("return location.hash === '#bags'")
    assert browser.log("browser") == []
    assert {url.split("#")[0] for url in browser.requested() if not url.startswith("data:")} == {path.as_uri()}


def test_by_keyboard(browser: Chromium) -> None:
    show(browser, llp()[0])
    links = browser.driver.find_elements("css selector", "#bags a.open-bag")
    browser.run("arguments[0].focus()", links[2])
    active = browser.driver.switch_to.active_element
    name = active.text
    active.send_keys(ENTER)
    shows(browser, f"Bag {name}")
    assert browser.run("return document.activeElement.id") == "bag-detail-h"  # which a screen reader reads
    reached = []
    for _ in range(5):
        browser.driver.switch_to.active_element.send_keys(TAB)
        reached.append(browser.run("return document.activeElement.textContent"))
    assert reached[:3] == ["Previous", "Next", "Close"]
    browser.driver.switch_to.active_element.send_keys(ESCAPE)
    shows(browser, "")
    assert browser.run("return document.activeElement.textContent") == name  # back where the reader was


def test_addresses_and_the_back_button(browser: Chromium) -> None:
    report = llp()[0]
    show(browser, report, "#bag-ward%203%2Fb")
    shows(browser, "Bag ward 3/b")
    browser.driver.find_element("xpath", "//dialog//button[text()='Next']").click()
    shows_another_than(browser, "Bag ward 3/b")
    show(browser, report)
    browser.driver.find_element("css selector", "#bags a.open-bag").click()
    shows_another_than(browser, "")
    browser.driver.back()
    shows(browser, "")
    browser.driver.forward()
    shows_another_than(browser, "")
    show(browser, report, "#bag-nobody")
    shows(browser, "")
    show(browser, report, "#bag-%")  # no address at all
    shows(browser, "")
    assert browser.log("browser") == []


def test_bags_sort_by_surprise_and_rows_by_any_column(browser: Chromium) -> None:
    show(browser, llp()[0])
    column = "return [...document.querySelectorAll('#bags tbody tr')].map((r) => Number(r.cells[1].dataset.v))"
    bits = browser.run(column)
    assert bits == sorted(bits, reverse=True)
    heading = browser.driver.find_elements("css selector", "#bags thead th")[1]
    assert (heading.text.split()[0], heading.get_attribute("aria-sort")) == ("Surprise", "descending")
    button = heading.find_element("css selector", "button")
    button.click()
    assert browser.run(column) == sorted(bits)
    other = browser.driver.find_elements("css selector", "#bags thead th button")[3]
    other.click()
    button.click()
    assert browser.run(column) == sorted(bits, reverse=True)  # its first order is the descending one
    browser.driver.find_element("css selector", "#bags a.open-bag").click()
    shows_another_than(browser, "")
    headings = browser.driver.find_elements("css selector", ".rows-of-bag thead button")
    place = next(i for i, one in enumerate(headings) if one.text.startswith("x0"))
    before = in_cells(browser, place)
    headings[place].click()
    assert in_cells(browser, place) == sorted(before) != before


def test_many_columns_are_folded(browser: Chromium) -> None:
    show(browser, llp()[0], "#bag-ward%203%2Fb")
    shows(browser, "Bag ward 3/b")
    seen = "return [...document.querySelectorAll('.rows-of-bag thead th')].filter((h) => h.offsetWidth).length"
    few = browser.run(seen)
    button = browser.driver.find_element("css selector", ".rows-of-bag > button")
    assert button.text == "Show 4 more columns"
    assert button.get_attribute("aria-expanded") == "false"
    button.click()
    assert browser.run(seen) == few + 4
    assert button.get_attribute("aria-expanded") == "true"
    button.click()
    assert browser.run(seen) == few


def test_pictures_are_seen_and_missing_ones_marked(browser: Chromium, tmp_path: Path) -> None:
    pictures = pytest.importorskip("PIL.Image")
    X, truth, groups = rows(size=3)
    y = pd.Series(truth).groupby(groups).transform("max").to_numpy().astype(int)
    for row in range(0, len(X), 2):
        pictures.fromarray(np.full((30, 20, 3), 4 * row, dtype=np.uint8)).save(tmp_path / f"{row}.png")
    model = kofn.MILClassifier(kofn.Trees(rounds=5), random_state=0).fit(X, y, groups=groups)
    table = X.assign(patch=[f"{row}.png" for row in range(len(X))])
    report = report_of(model, X.assign(x1=-X["x1"]), y, groups, table=table, folder=tmp_path)
    path = show(browser, report, "#bag-ward%203%2Fb")  # rows 9, 10 and 11
    shows(browser, "Bag ward 3/b")
    images = browser.run(
        "return [...document.querySelectorAll('dialog img')].map((i) => [i.naturalWidth, i.naturalHeight, i.width, i.alt])"
    )
    assert images == [[20, 30, 56, "patch"]]
    assert browser.run("return document.querySelector('dialog .file-name').textContent") == "10.png"
    heads = browser.run("return [...document.querySelectorAll('dialog .rows-of-bag th')].map((one) => one.textContent)")
    assert "Row" in heads
    marks = browser.run("return [...document.querySelectorAll('dialog .no-picture')].map((cell) => cell.textContent)")
    assert sorted(marks) == ["file not found: 11.png", "file not found: 9.png"]
    assert browser.log("browser") == []
    assert {url.split("#")[0] for url in browser.requested() if not url.startswith("data:")} == {path.as_uri()}


@pytest.mark.parametrize("task", [llp, classes, mil, pu], ids=lambda task: task.__name__)
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")], ids=str)
def test_every_task_fits_and_complains_of_nothing(browser: Chromium, task: Any, width: int, scheme: str) -> None:
    prefix = "part2-" if task is classes else ""
    path = show(browser, task()[0], f"#{prefix}bag-ward%201%2Fb", width=width, scheme=scheme)
    shows(browser, "Bag ward 1/b")
    assert browser.run("const d = document.querySelector('dialog'); return d.scrollWidth <= d.clientWidth")
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.run(
        "const plot = document.querySelector('dialog svg.wide'), left = plot.getBoundingClientRect().left;"
        "const tick = plot.querySelector('.tick.end'); tick.textContent = '100\\u00a0%';"
        "return tick.getBoundingClientRect().left >= left"
    )
    assert browser.run(
        "const one = document.querySelector('.facts div'); one.lastChild.textContent = 'word '.repeat(50);"
        "return one.firstChild.getBoundingClientRect().width > 24"
    )
    assert browser.log("browser") == []
    assert {url.split("#")[0] for url in browser.requested() if not url.startswith("data:")} == {path.as_uri()}
