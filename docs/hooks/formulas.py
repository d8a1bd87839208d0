"""Formulas between dollar signs become MathML when the site is built: they are read offline, without JavaScript.

`pymdownx.arithmatex` finds them in the Markdown, `latex2mathml` turns LaTeX into MathML.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert

FOUND = re.compile(r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', flags=re.S)
# What latex2mathml leaves to be wished: a name is one identifier with thin spaces around it, ~ is a relation.
REPAIRS = (
    (r"<mo>([A-Za-z]{2,})</mo>", r"<mi>\1</mi>"),
    (r"<mi>&#x0007E;</mi>", "<mo>&#x0223C;</mo>"),
    (r"(<mi>[A-Za-z]{2,}</mi>)(?=<m(?!o[> ]))", r'\1<mspace width="0.17em" />'),
    (r"(</m(?:i|n|sub|sup|row|frac|over)>)(?=<mi>[A-Za-z]{2,}</mi>)", r'\1<mspace width="0.17em" />'),
)


def mathml(latex: str, *, display: bool) -> str:
    """A formula as an element `math`: inside a line, or on lines of its own."""
    made = convert(latex.strip(), display="block" if display else "inline")
    for pattern, becomes in REPAIRS:
        made = re.sub(pattern, becomes, made)
    return f'<div class="formula">{made}</div>' if display else made


def on_page_content(html: str, **_: Any) -> str:
    """Replace what arithmatex found."""
    return FOUND.sub(lambda found: mathml(unescape(found["latex"]), display=found["tag"] == "div"), html)
