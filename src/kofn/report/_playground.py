"""The playground: a bag whose probabilities are dragged, in the documentation and in reports, offline."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from kofn.report._contents import Report

# The mathematics, the words and the drawing, in this order.
SCRIPTS = "playground_math.js", "playground_words.js", "playground_drawing.js", "playground.js"


def _text(name: str) -> str:
    return (files("kofn.report") / name).read_text("utf-8")


def style() -> str:
    """The style of its elements; it keeps to them, so that it may stand on any page."""
    return _text("playground.css")


def script() -> str:
    """One script, to stand after the elements."""
    return "".join(map(_text, SCRIPTS))


def elements(
    probabilities: Sequence[float] = (), statement: Mapping[str, Any] | None = None, *, name: str = "", lesson: str = ""
) -> Markup:
    """Its elements, once on a page.

    Args:
        probabilities: of a bag to begin with, at most forty; none for the first of its own examples.
        statement: what is known of that bag, such as {"name": "Exactly", "counts": 3}.
        name: of that bag, a few words.
        lesson: what is to be seen in it, a sentence.
    """
    bag = {"title": name, "lesson": lesson, "probabilities": list(probabilities), "statement": statement}
    template = jinja2.Environment(autoescape=True, trim_blocks=True).from_string(_text("playground.html"))
    return Markup(template.render(seed=json.dumps(bag) if len(probabilities) else ""))


def elements_of(report: Report) -> Markup:
    """Its elements, beginning with a whole bag of the report and its label, if there is such a bag."""
    for part in (report, *report.parts):
        bag, statement = part.typical_bag, _statement(part)
        if bag is not None and statement is not None and len(bag.instances) == bag.size:
            return elements(
                [round(one.probability, 6) for one in bag.instances],
                statement,
                name=f"Bag {bag.name}",
                lesson="A bag of this model with its label, the instances taken as independent. In training the model "
                "moves, and all bags with it; here each bar moves by itself.",
            )
    return elements()


def _statement(report: Report) -> dict[str, Any] | None:
    """What the label of its typical bag says, where that is a count or whether there is a positive."""
    bag, table = report.typical_bag, report.bags
    if bag is None:
        return None
    if report.task == "mil" and table is not None and table.positive is not None and bag.name in table.names:
        positive = table.positive[list(table.names).index(bag.name)]
        return {"name": "AtLeast", "low": 1} if positive else {"name": "Exactly", "counts": 0}
    if report.task == "llp" and bag.distribution is not None and bag.distribution.known is not None:
        return {"name": "Exactly", "counts": int(bag.distribution.known)}
    return None
