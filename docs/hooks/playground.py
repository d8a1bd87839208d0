"""The playground in the site: its elements where a page says so, and a page of its own that holds all it needs."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from typing import Any

from kofn.report import _playground

PLACE = '<div class="playground"></div>'


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Fill the empty element of a page with the playground, its style and its script."""
    if PLACE not in html:
        return html
    whole = str(_playground.elements())
    if "template" not in page.meta:  # a page of the theme; the page with a template of its own has them in its head
        whole = f"<style>{_playground.style()}</style>{whole}<script>{_playground.script()}</script>"
    return html.replace(PLACE, whole)


def on_page_context(context: dict[str, Any], page: Any, **_: Any) -> dict[str, Any]:
    """Style and script for the template `playground.html`, with the hashes by which its policy lets them in."""
    if page.meta.get("template") == "playground.html":
        sources = {"style": _playground.style(), "script": _playground.script()}
        context |= {f"playground_{name}": text for name, text in sources.items()} | {"policy_hash": policy_hash}
    return context


def policy_hash(text: str) -> str:
    """What a page's policy must name for a style or script to be let in."""
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()
