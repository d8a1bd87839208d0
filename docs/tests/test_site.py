"""The built site in headless Chromium, opened from disk: what a reader without a network sees."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from headless_chromium import LUMINANCE, Chromium
from svg_contrast import PAPER, pale

ROOT = Path(__file__).parents[2]
mkdocs = pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install -e '.[docs]'")
# Contrast as WCAG defines it, of every text that is seen, against the first opaque background behind it.
CONTRAST = (
    LUMINANCE
    + """
const paper = (node) => {
  for (; node; node = node.parentElement) {
    const colour = channels(getComputedStyle(node).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
};
const found = [];
for (const node of document.querySelectorAll(".md-content *")) {
  const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
  const box = node.getBoundingClientRect(), style = getComputedStyle(node);
  if (!own || !box.width || style.opacity === "0" || node.closest("title, button, .headerlink, .md-clipboard")) continue;
  const behind = paper(node), ink = channels(node instanceof SVGElement ? style.fill : style.color);
  const part = ink.length === 4 ? ink[3] : 1;
  const mixed = [0, 1, 2].map((i) => part * ink[i] + (1 - part) * behind[i]);
  const [a, b] = [light(mixed), light(behind)];
  const large = parseFloat(style.fontSize) >= 24;
  found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) * (large ? 1.5 : 1), node.tagName, node.textContent.slice(0, 40)]);
}
return found.sort((a, b) => a[0] - b[0]).slice(0, 5);
"""
)

# What does not fit and would have to be scrolled: code and results never, other tables where there is room for them. On a
# phone a table of four columns may, and so may a formula.
CUT = """
const phone = innerWidth < 500;
return [...document.querySelectorAll(".md-content :is(pre > code, .wide, .md-typeset__scrollwrap, .formula)")]
  .filter((e) => e.clientWidth && e.scrollWidth > e.clientWidth + 1 && !e.closest(".playground"))
  .filter((e) => !(phone && (e.matches(".formula") || e.querySelector("tr > :nth-child(4)"))))
  .map((e) => e.textContent.trim().slice(0, 60));
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site that `make docs` built, or built here as it does."""
    folder: Path = tmp_path_factory.mktemp("site") / "built"
    if ready := os.environ.get("KOFN_SITE"):
        return Path(ready).resolve()
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")},
        check=True,
    )
    return folder


def pages(site: Path) -> list[Path]:
    """All but the page for what is not there, which only a server shows."""
    return sorted(path for path in site.rglob("*.html") if path.name != "404.html")


class Links(HTMLParser):
    """What a page points to, and where it can be pointed to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value is not None:
                self.targets.append(unescape(value))
            elif name == "srcset" and value:
                self.targets += [one.split()[0] for one in unescape(value).split(",")]
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def test_links_lead_somewhere_and_nothing_is_fetched(site: Path) -> None:
    read = {page: Links(page) for page in pages(site)}
    assert len(read) > 20
    broken, fetched = [], []
    for page, links in read.items():
        for target in links.targets:
            address, anchor = urldefrag(target)
            if urlsplit(target).scheme:
                continue
            path = (page.parent / unquote(address)).resolve() if address else page
            path = path / "index.html" if path.is_dir() else path
            if not path.exists() or (anchor and path in read and unquote(anchor) not in read[path].anchors):
                broken.append(f"{page.relative_to(site)}: {target}")
        fetched += re.findall(r'<(?:script|img|iframe)[^>]+src="https?:[^"]*"', page.read_text())
        fetched += re.findall(r'<link rel="stylesheet"[^>]+href="https?:[^"]*"', page.read_text())
    assert broken == []
    assert fetched == []


def test_words_and_marks_of_figures_stand_out_from_the_page(site: Path) -> None:
    """Figures in two looks, each on its page; the others are drawn on white."""
    drawn = list(site.rglob("*.svg"))
    found = {
        path.name: told
        for path in drawn
        if "assets/" not in path.relative_to(site).as_posix()
        if (told := pale(path.read_text(), PAPER["dark" if path.stem.endswith("-dark") else "light"]))
    }
    assert len(drawn) > 60
    assert found == {}


def test_formulas_are_typeset(site: Path) -> None:
    """None is left as LaTeX, and the pages that teach have them."""
    left = [page.name for page in pages(site) if "arithmatex" in page.read_text()]
    assert left == []
    for page in ("ideas/counts", "ideas/distribution", "ideas/consistency", "guides/losses"):
        assert (site / f"{page}.html").read_text().count("<math ") > 3, page


def test_code_that_makes_the_site_is_not_part_of_it(site: Path) -> None:
    assert list(site.rglob("*.py")) == []
    assert "This page is not here" in (site / "404.html").read_text()


class Browser(Chromium):
    """A page of the site at a time."""

    scheme = ""

    def show(self, page: Path, *, width: int, scheme: str) -> None:
        self.open(page.as_uri(), width=width, scheme=scheme)
        if scheme != self.scheme:  # the theme remembers which it showed last
            self.run("localStorage.clear()")
            self.open(page.as_uri(), width=width, scheme=scheme)
            self.scheme = scheme


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser.opened() as opened:
        yield opened


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280], ids=str)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_fits_says_nothing_and_asks_for_nothing(
    browser: Browser, site: Path, scheme: str, width: int
) -> None:
    browser.log("browser")
    browser.requested()
    wide: dict[str, object] = {}
    pale: dict[str, object] = {}
    for page in pages(site):
        browser.show(page, width=width, scheme=scheme)
        if (needed := browser.run("return document.documentElement.scrollWidth")) > width:
            wide[page.name] = needed
        if cut := browser.run(CUT):
            wide[page.name] = cut
        if (worst := browser.run(CONTRAST)) and worst[0][0] < 4.5:
            pale[page.name] = worst
    red, green, blue = browser.run("return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (max(red, green, blue) < 60) if scheme == "dark" else (min(red, green, blue) > 200)
    assert wide == {}
    assert pale == {}
    assert browser.log("browser") == []
    assert [url for url in browser.requested() if url.startswith(("http:", "https:", "ws:", "wss:"))] == []


@pytest.mark.browser
@pytest.mark.parametrize("words", ["PoissonBinomial", "kofn fit llp", "log_count_between", "kofn.Trees"])
def test_search_finds_without_a_server(browser: Browser, site: Path, words: str) -> None:
    browser.show(site / "index.html", width=1280, scheme="light")
    browser.driver.find_element("css selector", "input.md-search__input").send_keys(words)
    deadline = time.monotonic() + 30
    found: list[str] = []
    while not found and time.monotonic() < deadline:
        time.sleep(0.2)
        found = browser.run("return [...document.querySelectorAll('.md-search-result__link')].map((node) => node.href)")
    assert any("/reference/" in address for address in found), found


@pytest.mark.browser
def test_the_picture_of_the_layers_can_be_read(browser: Browser, site: Path) -> None:
    for width, shown in ((390, "phone"), (1280, "desktop")):
        browser.show(site / "architecture.html", width=width, scheme="light")
        sizes = browser.until(
            "return [...document.querySelectorAll('svg.layers')].filter((svg) => svg.getBoundingClientRect().width)"
            ".map((svg) => [svg.parentElement.className, svg.getScreenCTM().a * 11.5])"
        )
        assert [name for name, _ in sizes] == [f"layers-{shown}"]
        assert sizes[0][1] > 10  # pixels of its smallest letters
        outside = browser.run(
            "return [...document.querySelectorAll('svg.layers .package')].filter((box) => box.getBoundingClientRect()"
            ".width).flatMap((box) => { const frame = box.querySelector('rect').getBoundingClientRect();"
            "return [...box.querySelectorAll('text')].filter((text) => text.getBoundingClientRect().right > frame.right)"
            ".map((text) => text.textContent); })"
        )
        assert outside == []


@pytest.mark.browser
def test_the_playground_computes_under_its_policy(browser: Browser, site: Path) -> None:
    """Its own page loads nothing, not even the theme; on the home page it follows the theme's palette."""
    browser.requested()
    browser.show(site / "playground.html", width=1280, scheme="light")
    asked = {url for url in browser.requested() if url.startswith(("file:", "http"))}
    assert asked == {(site / "playground.html").as_uri()}
    policy = browser.run("return document.querySelector('meta[http-equiv]').content")
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for page in ("playground.html", "index.html"):
        browser.show(site / page, width=390, scheme="dark")
        loss = "return Number(document.querySelector('.pg-loss').textContent)"
        before = browser.run(loss)
        bar = browser.driver.find_elements("css selector", "[role=slider]")[3]
        browser.run("arguments[0].focus()", bar)
        for _ in range(5):
            browser.driver.switch_to.active_element.send_keys(
                "\ue013"
            )  # the strongest of eight, one of which is positive
        assert 0 < browser.run(loss) < before
    assert browser.run("return getComputedStyle(document.querySelector('.playground')).colorScheme") == "dark"
    assert browser.log("browser") == []
