"""The book's figures are what their scripts draw today."""

from __future__ import annotations

import dataclasses
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from nearly_same import same_picture
from svg_contrast import PAPER, pale

FOLDER = Path(__file__).parents[1] / "figures"
SHADES = ("light", "dark")


@pytest.fixture(scope="module")
def book() -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        return runpy.run_path(str(FOLDER / "make.py"))


NAMES = sorted({path.stem.rsplit("-", 1)[0] for path in FOLDER.glob("*.svg")})


def test_every_figure_is_there(book: dict[str, Any]) -> None:
    assert sorted(book["FIGURES"]) == NAMES
    assert {path.name for path in FOLDER.glob("*.svg")} == {f"{name}-{shade}.svg" for name in NAMES for shade in SHADES}


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_is_drawn_as_committed(name: str, book: dict[str, Any], tmp_path: Path) -> None:
    save: Callable[..., Path] = book["save"]
    drawn = save(name, book["FIGURES"][name], "light", tmp_path)
    committed = (FOLDER / f"{name}-light.svg").read_text()
    if "Matplotlib v" in committed and f"Matplotlib v{mpl.__version__}," not in committed:
        pytest.skip("drawn by another release of matplotlib: `make figures` and look")
    assert same_picture(drawn.read_text(), committed), "stale: run `make figures`"


@pytest.mark.parametrize("name", NAMES)
def test_looks_differ_in_colours_only(name: str, book: dict[str, Any]) -> None:
    light, dark = ((FOLDER / f"{name}-{shade}.svg").read_text() for shade in SHADES)
    assert light != dark
    looks = [dataclasses.asdict(book["LOOKS"][shade]) for shade in SHADES]
    for role, colour in looks[0].items():
        light = light.replace(colour, looks[1][role])
    assert same_picture(light, dark)


@pytest.mark.parametrize("shade", SHADES)
def test_pages_show_every_figure(shade: str) -> None:
    pages = "".join(page.read_text() for page in FOLDER.parent.rglob("*.md"))
    assert [name for name in NAMES if f"figures/{name}-{shade}.svg" not in pages] == []


def test_another_picture_is_told_apart() -> None:
    assert same_picture('<path d="M 1.0 2.0"/>', '<path d="M 1.01 2.0"/>')
    assert not same_picture('<path d="M 1.0 2.0"/>', '<path d="M 1.5 2.0"/>')
    assert not same_picture('<path d="M 1.0 2.0"/>', '<path d="L 1.0 2.0"/>')


def test_a_pale_colour_is_told() -> None:
    """On white: black words are well, grey ones below 4.5; a grey line is well, a light one below 3."""
    svg = '<svg xmlns="http://www.w3.org/2000/svg"><g style="fill: {}"><text>a</text></g><path stroke="{}" fill="none"/></svg>'
    assert pale(svg.format("#000000", "#868f9a"), PAPER["light"]) == []
    assert pale(svg.format("#868f9a", "#868f9a"), PAPER["light"]) == ["text #868f9a: 3.28"]
    assert pale(svg.format("#000000", "#b4bcc6"), PAPER["light"]) == ["path #b4bcc6: 1.92"]
