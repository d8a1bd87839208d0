"""The page: sections, escaping, policy, size, writing."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_cases import EVIL, bag_table, full

from kofn.report import BagTable, Report, render, write
from kofn.report._bag_rows import bag_rows
from kofn.report._images import as_pixels, png_address

VOID = {"meta", "link", "img"}
SECTIONS = {
    "comparison": "comparison",
    "typical_bag": "typical-bag",
    "binomial": "binomial",
    "bags": "bags",
    "examples": "examples",
    "distributions": "distributions",
    "calibration": "calibration",
    "importance": "importance",
    "effects": "effects",
    "row_curves": "rows",
    "history": "training",
    "facts": "facts",
}


NONE = "comparison", "typical_bag", "binomial", "bags", "calibration", "importance", "row_curves"


class Page(HTMLParser):
    """Elements, attributes and text; open and close tags must match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.raw: dict[str, str] = {}
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("style", "script"):
            self.raw[self.open[-1]] = data  # of scripts the last one: the data of bags come before it
        else:
            self.text.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def test_a_full_page_has_every_section_once_and_unique_ids() -> None:
    page = Page(render(full()))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    sections = [attributes["id"] for attributes in page.named("section")]
    assert set(SECTIONS.values()) <= set(sections)
    assert {"counts", "separation", "instances"} <= set(sections)
    links = [(attributes["href"] or "")[1:] for attributes in page.named("a")]
    assert {link for link in links if not link.startswith("bag-")} - {"main"} == set(sections)
    assert sum(link.startswith("bag-") for link in links) == 2


@pytest.mark.parametrize("field", SECTIONS, ids=list(SECTIONS))
def test_a_section_goes_with_its_data(field: str) -> None:
    empty: Any = None if field in NONE else ()
    page = Page(render(replace(full(), **{field: empty})))
    assert SECTIONS[field] not in [attributes["id"] for attributes in page.named("section")]


def test_an_empty_report_is_a_page() -> None:
    page = Page(render(Report("Nothing yet")))
    assert not page.named("section")
    assert "Nothing yet" in page.text


@pytest.mark.parametrize("task", ["llp", "mil", "pu", None], ids=str)
def test_every_task_renders_with_bags_of_every_kind(task: Any) -> None:
    bags = bag_table(5)
    plain = BagTable(bags.names, bags.sizes, bags.expected, bags.low, bags.high, bags.at_least_one)
    for table in (bags, plain, replace(bags, exact=False), replace(bags, known=np.full(5, np.nan))):
        Page(render(replace(full(), task=task, bags=table)))


def test_what_users_write_is_text_everywhere() -> None:
    """The same elements and attributes as with a harmless name, and the evil one only as text."""
    harmless, evil = Page(render(full("bag"))), Page(render(full(EVIL)))
    assert [name for name, _ in harmless.elements] == [name for name, _ in evil.elements]
    assert [sorted(a) for _, a in harmless.elements] == [sorted(a) for _, a in evil.elements]
    assert not [a for _, attributes in evil.elements for a in attributes if a.startswith("on")]
    assert sum(EVIL in text for text in evil.text) > 20
    assert "49" not in "".join(evil.text).replace(EVIL, "").split()


def test_the_policy_names_the_style_and_the_script() -> None:
    page = Page(render(full()))
    (policy,) = [a["content"] or "" for a in page.named("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for name in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(page.raw[name].encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert not [a for _, a in page.elements if "style" in a]  # they would be blocked


def test_nothing_points_outside() -> None:
    text = render(full())
    named = re.sub(r"sha256-[\w+/]+=*", "", text)  # of the policy: base64 may have two slashes by chance
    assert not re.findall(r"https?:|//[a-z]", named)
    for _, attributes in Page(text).elements:
        for name in ("src", "href"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:"))


def test_pictures_and_figures_speak() -> None:
    page = Page(render(full()))
    assert all(attributes.get("alt") for attributes in page.named("img"))
    for attributes in page.named("svg"):
        assert attributes.get("role") == "img" or attributes.get("aria-hidden") == "true"


def test_nobody_is_said_to_be_unlabelled_who_was_labelled() -> None:
    claim = "though no instance was ever labelled"
    assert claim in render(full())
    assert claim not in render(replace(full(), task="pu"))
    assert "5 instances are on the right side" in render(replace(full(), task="pu"))


def test_parts_are_chapters() -> None:
    whole = Report("All", comparison=full().comparison, parts=[full("one"), full("two")])
    page = Page(render(whole))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {"part1", "part2", "part2-distributions"} <= set(ids)


def test_a_report_of_many_bags_is_small() -> None:
    table = bag_table(50_000, name="a county with quite a long name")
    text = render(replace(full(), bags=table))
    assert len(text.encode()) < 500_000
    assert "300 of 50,000 bags" in text


def test_of_many_bags_the_most_surprising_and_others_at_random_are_listed() -> None:
    surprise = np.random.default_rng(1).random(1000)
    bags = replace(bag_table(1000), surprise=surprise)
    rows = bag_rows(bags)
    kept = [bags.names.index(row.cells[0].text) for row in rows.rows]
    assert len(set(kept)) == 300
    assert kept[:100] == np.argsort(-surprise)[:100].tolist()
    assert surprise[kept].tolist() == sorted(surprise[kept], reverse=True)
    assert 0.3 < surprise[kept[100:]].mean() < 0.6  # a sample of the others, not the next best
    assert rows.note.startswith("300 of 1,000 bags: the 100 most surprising ones, and 200 of the others at random")
    unknown = bag_rows(bag_table(1000))
    assert unknown.note == "300 of 1,000 bags, chosen at random."
    assert [row.cells[0].text for row in unknown.rows] == [row.cells[0].text for row in bag_rows(bag_table(1000)).rows]


def test_rows_sort_by_numbers_and_mark_misses() -> None:
    bags = BagTable(["a", "b"], np.array([4, 4]), np.array([1.0, 3.0]), np.array([0, 2]), np.array([2, 4]),
                    np.array([0.5, 1.0]), known=np.array([3.0, np.nan]))  # fmt: skip
    rows = bag_rows(bags)
    assert list(rows.columns) == ["Bag", "Size", "Known", "Expected", "Low", "High", "At least one"]
    assert [row.missed for row in rows.rows] == [True, False]
    assert rows.rows[1].cells[2].text == ""
    assert rows.rows[0].cells[3].value == 1.0


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3), (300, 120)], ids=str)
def test_images_survive(shape: tuple[int, ...]) -> None:
    pillow = pytest.importorskip("PIL.Image")
    image = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    data = base64.b64decode(png_address(image).removeprefix("data:image/png;base64,"))
    back = np.asarray(pillow.open(io.BytesIO(data)))
    step = 4 if shape[0] == 300 else 1
    np.testing.assert_array_equal(back, image[::step, ::step])


def test_images_of_every_kind_become_pixels() -> None:
    grey = np.linspace(0, 1, 32).reshape(2, 4, 4)
    assert as_pixels(grey).dtype == np.uint8
    assert as_pixels(grey).max() == 255
    assert as_pixels(grey[:, None]).shape == (2, 4, 4)
    assert as_pixels(np.zeros((2, 3, 5, 6))).shape == (2, 5, 6, 3)
    with pytest.raises(ValueError, match="from 0 to 1; got values from 0 to 16"):
        as_pixels(grey * 16)
    with pytest.raises(ValueError, match=r"the shape \(2, 16\)"):
        as_pixels(grey.reshape(2, 16))


def test_writing_is_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "new" / "report.html"
    write(Report("First \udcff"), target)  # a file name that is no text may come from the system
    first = target.read_bytes()
    assert b"First ?" in first

    def refuse(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        write(Report("Second"), target)
    assert target.read_bytes() == first
    assert [path.name for path in target.parent.iterdir()] == ["report.html"]
