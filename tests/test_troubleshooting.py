"""Every heading of the page Troubleshooting is a message that the code still has."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/guides/troubleshooting.md").read_text()
HEADINGS = re.findall(r"^### (.+)$", PAGE, flags=re.M)


def strings(source: str) -> list[str]:
    """The string literals of a module; what is filled into an f-string is cut out."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            parts = (str(part.value) if isinstance(part, ast.Constant) else "\0" for part in node.values)
            found.append("".join(parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
    return found


MESSAGES = [text for path in (ROOT / "src/kofn").rglob("*.py") for text in strings(path.read_text())]


def test_the_page_has_headings() -> None:
    assert len(HEADINGS) > 20
    assert len(set(HEADINGS)) == len(HEADINGS)


@pytest.mark.parametrize("heading", HEADINGS)
def test_a_heading_is_a_message(heading: str) -> None:
    assert any(heading in message for message in MESSAGES), "no message says this any more: bring the page up to date"


def test_a_lost_message_would_be_seen() -> None:
    assert strings('f"a {b} c" "d"') == ["a \0 cd", "a ", " cd"]
    assert not any("a message that nobody wrote" in message for message in MESSAGES)
