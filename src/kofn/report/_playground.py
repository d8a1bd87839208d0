"""The playground: a bag whose probabilities are dragged, in the documentation and in reports, offline."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup


def _text(name: str) -> str:
    return (files("kofn.report") / name).read_text("utf-8")


def style() -> str:
    """The style of its elements; it keeps to them, so that it may stand on any page."""
    return _text("playground.css")


def script() -> str:
    """The mathematics, the words and the drawing: one script, to stand after the elements."""
    return "".join(_text(f"playground{part}.js") for part in ("_math", "_words", ""))


def elements(
    probabilities: Sequence[float] = (), statement: Mapping[str, Any] | None = None, *, name: str = "", lesson: str = ""
) -> Markup:
    """Its elements, once on a page.

    Args:
        probabilities: of a bag to begin with, eight to forty; none for the first of its own examples.
        statement: what is known of that bag, such as {"name": "Exactly", "counts": 3}.
        name: of that bag, a few words.
        lesson: what is to be seen in it, a sentence.
    """
    bag = {"title": name, "lesson": lesson, "probabilities": list(probabilities), "statement": statement}
    template = jinja2.Environment(autoescape=True, trim_blocks=True).from_string(_text("playground.html"))
    return Markup(template.render(seed=json.dumps(bag) if len(probabilities) else ""))
