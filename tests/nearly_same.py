"""Figures that are the same but for what another machine may round otherwise."""

from __future__ import annotations

import re

NAME_OF_A_PATH = re.compile(r"\b(?:[mpC]|image)[0-9a-f]{10}\b")  # a hash of its coordinates, or of its pixels
NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")
IMAGE = re.compile(r"base64,[\w+/=\s]*")  # pixels inside a figure


def same_picture(one: str, other: str, *, most: float = 0.02) -> bool:
    """Whether two SVG files are equal but for coordinates, which may differ by `most`, and for pixels inside them."""
    one, other = (IMAGE.sub("", NAME_OF_A_PATH.sub("", text)) for text in (one, other))
    if NUMBER.sub("", one) != NUMBER.sub("", other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(abs(float(a) - float(b)) < most for a, b in pairs)
