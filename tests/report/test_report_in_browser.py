"""The page in headless Chromium, where there is one with its driver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from headless_chromium import LUMINANCE, Chromium
from report_cases import EVIL, full

from kofn.report import Instance, Report, write

pytestmark = pytest.mark.browser
# Contrast as WCAG defines it, of every text against the first opaque background behind it. Figures' texts are on cards.
CONTRAST = (
    LUMINANCE
    + """
const behind = (node) => {
  for (; node; node = node.parentElement) {
    const colour = channels(getComputedStyle(node).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour;
  }
};
const found = [];
for (const node of document.querySelectorAll("body *")) {
  const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
  const box = node.getBoundingClientRect();
  if (!own || !box.width || ["TITLE", "DESC", "SCRIPT", "title", "desc"].includes(node.tagName)) continue;
  const style = getComputedStyle(node);
  const ink = light(channels(node instanceof SVGElement ? style.fill : style.color));
  const paper = light(behind(node));
  found.push([(Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05), node.tagName, node.textContent.slice(0, 40)]);
}
return found.sort((a, b) => a[0] - b[0]);
"""
)


class Browser(Chromium):
    """A report at a time."""

    def show(self, report: Report, *, width: int = 1200, scheme: str = "light", media: str = "") -> None:
        path = self.folder / "report.html"
        write(report, path)
        self.log("browser")
        self.log("performance")
        self.open(path.as_uri(), width=width, scheme=scheme, media=media)

    def column(self, table: int, column: int) -> list[str]:
        script = (
            "return [...document.querySelectorAll('table.sortable')[arguments[0]].tBodies[0].rows]"
            ".map((row) => row.cells[arguments[1]].dataset.v)"
        )
        values: list[str] = self.run(script, table, column)
        return values


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser.opened() as opened:
        yield opened


def test_no_complaint_nothing_requested_nothing_run(browser: Browser) -> None:
    browser.show(full(EVIL))
    assert browser.log("browser") == []
    assert [url for url in browser.requested() if not url.startswith("data:")] == [
        (browser.folder / "report.html").as_uri()
    ]
    assert browser.run("return document.querySelectorAll('script:not([type])').length") == 1


def test_style_and_script_pass_their_policy(browser: Browser) -> None:
    browser.show(full())
    assert browser.run("return getComputedStyle(document.querySelector('.metrics')).display") == "grid"
    assert browser.run("return document.styleSheets.length") == 1


def test_figures_are_seen(browser: Browser) -> None:
    for width in (360, 1200):
        browser.show(full(), width=width)
        boxes = browser.run(
            "return [...document.querySelectorAll('svg[role=img], img')].map((node) => {"
            "const box = node.getBoundingClientRect(); return [node.tagName, box.width, box.height]; })"
        )
        figures = [box for box in boxes if box[0] == "svg"]
        assert len(figures) >= 10
        assert all(wide > 200 and high > 100 for _, wide, high in figures)
        assert all(wide > 20 and high > 20 for name, wide, high in boxes if name == "IMG")
        assert browser.run("return [...document.images].every((image) => image.complete && image.naturalWidth > 0)")
        sizes = browser.run(
            "return [...document.querySelectorAll('svg[role=img]')].flatMap((svg) => [...svg.querySelectorAll('text')]"
            ".map((text) => parseFloat(getComputedStyle(text).fontSize) * svg.getScreenCTM().a))"
        )
        assert min(sizes) > 9.5  # pixels on the screen
        assert max(sizes) < 18


def test_text_of_figures_stays_inside(browser: Browser) -> None:
    for width in (360, 700, 1200):
        browser.show(full(), width=width)
        outside = browser.run(
            "return [...document.querySelectorAll('svg[role=img]')].flatMap((svg) => { const frame = svg.getBoundingClientRect();"
            "return [...svg.querySelectorAll('text')].filter((text) => { const box = text.getBoundingClientRect();"
            "return box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1; })"
            ".map((text) => text.textContent); })"
        )
        assert outside == []


def test_words_of_tiles_do_not_overlap(browser: Browser) -> None:
    report = full()
    assert report.typical_bag is not None
    instances = [Instance(p, truth=bool(n % 2)) for n, p in enumerate(np.linspace(0.99, 0.01, 16))]
    browser.show(replace(report, typical_bag=replace(report.typical_bag, size=16, instances=instances)))
    crossing = browser.run(
        "const boxes = [...document.querySelectorAll('#typical-bag .tile')].map((tile) => [...tile.childNodes].filter("
        "(child) => child.nodeType === 3 || child.className === 'wrong').flatMap((child) => { const range = document"
        ".createRange(); range.selectNodeContents(child); return [...range.getClientRects()]; })); return boxes.flatMap("
        "(mine, i) => boxes.slice(i + 1).flatMap((other) => mine.filter((a) => other.some((b) => a.left < b.right - 1 &&"
        " b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)))).length"
    )
    assert crossing == 0


def test_tables_sort_by_click(browser: Browser) -> None:
    browser.show(full())
    headings = browser.driver.find_elements("css selector", "#bags thead button")
    names = [heading.text for heading in headings]
    column = names.index("Expected")
    before = browser.column(1, column)
    headings[column].click()
    ascending = browser.column(1, column)
    assert ascending == sorted(before, key=float) != before
    cell = headings[column].find_element("xpath", "..")
    assert cell.get_attribute("aria-sort") == "ascending"
    headings[column].click()
    assert browser.column(1, column) == ascending[::-1]
    assert cell.get_attribute("aria-sort") == "descending"
    headings[0].click()  # names, in which 10 comes after 9
    assert browser.column(1, 0) == [f"bag {i}" for i in range(40)]
    assert cell.get_attribute("aria-sort") is None
    assert "Sorted by Bag, ascending" in browser.run("return document.querySelector('#bags [aria-live]').textContent")


def test_tables_sort_by_keyboard_and_empty_cells_come_last(browser: Browser) -> None:
    browser.show(full())
    button = browser.driver.find_elements("css selector", "#comparison thead button")[1]
    browser.run("arguments[0].focus()", button)
    for key, expected in (("\ue007", ["0.95", "0.97", ""]), (" ", ["0.97", "0.95", ""])):
        browser.driver.switch_to.active_element.send_keys(key)
        assert browser.column(0, 1) == expected
    focused = browser.run("const s = getComputedStyle(document.activeElement); return [s.outlineStyle, s.outlineWidth]")
    assert focused == ["solid", "3px"]


@pytest.mark.parametrize("name", ["bag", "W" * 90, EVIL], ids=["short", "long", "evil"])
def test_a_phone_scrolls_in_one_direction(browser: Browser, name: str) -> None:
    browser.show(replace(full(name), parts=[full(name)]), width=360)
    assert browser.run("return document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("width", [760, 1024], ids=str)
def test_other_widths_do_too(browser: Browser, width: int) -> None:
    browser.show(full(), width=width)
    assert browser.run("return document.documentElement.scrollWidth") <= width
    browser.show(full(), width=width, media="print")
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.run("return getComputedStyle(document.querySelector('.scroll')).maxHeight") == "none"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(browser: Browser, scheme: str) -> None:
    browser.show(full(), scheme=scheme)
    red, green, blue = browser.run("return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (max(red, green, blue) < 60) if scheme == "dark" else (min(red, green, blue) > 200)
    found = browser.run(CONTRAST)
    assert len(found) > 200
    assert found[0][0] >= 4.5, found[:5]
    marks = "rect.after", ".curve.valid", ".flag", "rect.known", ".bag.held", ".bag.missed"
    browser.run("window.marks = arguments[0]", marks)
    # Marks need 3 to 1 against their card.
    script = CONTRAST.split("const found")[0] + (
        "return marks.map((mark) => { const node = document.querySelector('section ' + mark); const s = getComputedStyle(node);"
        "const colour = s.stroke === 'none' ? s.fill : s.stroke; const ink = light(channels(colour)), paper = light(behind(node));"
        "return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05); })"
    )
    assert min(browser.run(script)) >= 3


def test_paper_is_white_even_in_the_dark(browser: Browser) -> None:
    browser.show(full(), scheme="dark", media="print")
    assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
