"""The check of the reference finds what is missing, and every law, target, loss and metric is tested."""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import Any

import check_reference as check
import commands
import pages
import pytest

TESTS = Path(__file__).parent


def shown(name: str = "f", example: str = "") -> Any:
    """A function with a docstring."""
    value: Any = lambda: None  # noqa: E731
    value.__doc__ = f"Does it.\n\nArgs:\n    {name}: one.\n{example}"
    return value


def test_public_names_are_those_of_the_modules() -> None:
    names = check.public()
    assert {"kofn.counts.log_count_prob", "kofn.bags.Bags", "kofn.cli.app"} <= set(names)
    assert not any("._" in name for name in names)


def test_every_public_name_has_an_example_and_its_formula() -> None:
    names = check.public()
    assert check.without_example(names) == []
    assert check.without_formula(names) == []
    assert all(len(reason) > 10 for reason in [*check.NO_EXAMPLE.values(), *check.NO_FORMULA.values()])


def test_a_missing_example_is_told() -> None:
    names = check.public()
    none = {"kofn.counts.f": shown(), "kofn.counts.g": shown(example="\nExamples:\n    f(1) is 2.\n")}
    there = {"kofn.counts.h": shown(example="\nExamples:\n    >>> 1\n    1\n")}
    told = check.without_example(names | none | there)
    assert told == [f"{name}: no example (a doctest under 'Examples:')" for name in none]


def test_lists_of_exceptions_do_not_go_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    names = check.public()
    monkeypatch.setitem(check.NO_EXAMPLE, "kofn.counts.log_count_prob", "it has one")
    monkeypatch.setitem(check.NO_EXAMPLE, "kofn.counts.gone", "it is gone")
    monkeypatch.setitem(check.SHOWN_IN, "kofn.learners.Batch", "kofn.counts.log_count_prob")
    assert check.without_example(names) == [
        "kofn.counts.gone: listed here, but not public",
        "kofn.counts.log_count_prob: has an example now; take it out of the list",
        "kofn.learners.Batch: not in the example of kofn.counts.log_count_prob",
    ]


def test_a_missing_formula_is_told() -> None:
    assert check.without_formula({"kofn.counts.f": shown(), "kofn.learners.f": shown()}) == [
        "kofn.counts.f: no formula"
    ]


def test_a_name_that_is_not_on_the_site_is_told() -> None:
    body = zlib.compress(b"kofn.counts.use py:function 1 reference/counts.html#$ -\n")
    there = check.documented(b"# Sphinx\n# Project\n# Version\n# zlib\n" + body)
    assert there == {"kofn.counts.use"}
    names = ["kofn.counts.use", "kofn.counts.backend", "kofn.cli.app"]
    assert check.missing_names(names, there) == ["kofn.counts.backend: not in the reference"]


def test_the_page_of_names_has_all_of_them() -> None:
    page = pages.names()
    assert check.missing_roots(page) == []
    assert check.missing_roots(page.replace('id="kofn.Bags"', "")) == ["kofn.Bags: not on the reference's first page"]


def test_commands_and_options_that_are_not_on_the_page_are_told() -> None:
    page = "".join(
        f'<h2 id="{commands.anchor(words)}">{words}</h2><td><code>{" ".join(commands.options(command))}</code></td>'
        for words, command in commands.commands()
    )
    assert check.missing_commands(page) == []
    assert check.missing_commands(page.replace('id="kofn-fit-pu"', "")) == [
        "kofn fit pu: not on the page of the command line"
    ]
    cut = page.replace("--truth", "--true", 1)
    assert check.missing_commands(cut) == ["kofn evaluate --truth: not on the page of the command line"]


def test_the_page_of_commands_says_what_help_says() -> None:
    page = commands.page()
    for words, _ in commands.commands():
        assert f"`{words}` {{ #{commands.anchor(words)} }}" in page
    assert (
        "| `--bag COLUMNS` | The column that names each row's bag, or several, separated by commas. *required* |"
        in page
    )
    assert "kofn fit llp DATA [OPTIONS]" in page
    assert "kofn fit llp votes.csv --bag county --label share -o model" in page
    assert "completion" not in page


def test_a_page_that_asks_for_what_nobody_makes_stops_the_build() -> None:
    assert pages.on_page_markdown("before\n<!-- made: commands -->\nafter").startswith("before\n## `kofn`")
    with pytest.raises(KeyError, match="nothing"):
        pages.on_page_markdown("<!-- made: nothing -->")


def test_names_in_the_text_become_links() -> None:
    text = "see <code>kofn.Bags</code> and <code>kofn.losses.pu_loss</code>, not <code>kofn fit</code>"
    assert pages.on_page_content(text) == (
        'see <autoref optional identifier="kofn.bags.Bags"><code>kofn.Bags</code></autoref> and '
        '<autoref optional identifier="kofn.losses.pu_loss"><code>kofn.losses.pu_loss</code></autoref>, '
        "not <code>kofn fit</code>"
    )
    assert pages.on_page_content("<a><code>kofn.Bags</code></a>") == "<a><code>kofn.Bags</code></a>"


def test_every_law_target_loss_and_metric_is_in_a_test() -> None:
    words = set()
    for path in TESTS.rglob("*.py"):
        words |= set(re.findall(r"\w+", path.read_text()))
    names = [name for name in check.public() if name.rpartition(".")[0] in check.FORMULAS]
    assert len(names) > 40
    assert [name for name in names if name.rpartition(".")[2] not in words | {"CountCalibration"}] == []
