"""The playground computes what the library computes; both see the same bags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from playground_cases import NOISES, TARGETS, Browser, of_the_library

pytestmark = pytest.mark.browser
# Numbers as text: JSON has no infinity.
ANSWER = """
const [bags, statements] = arguments;
return bags.map((p, i) => {
  const found = countMath.answer(p.map(countMath.logit), statements[i]);
  return [found.probabilities, [found.loss], found.gradient, found.posteriors].map((list) => list.map(String));
});
"""


def bags() -> list[list[float]]:
    """Random ones of 8 to 40, and extreme ones: certain, nearly certain, far from any label."""
    generator = torch.Generator().manual_seed(0)
    drawn = [torch.rand(n, generator=generator, dtype=torch.float64) for n in (8, 13, 27, 40)]
    steep = torch.sigmoid(8 * torch.randn(40, generator=generator, dtype=torch.float64))
    return [
        *(one.tolist() for one in [*drawn, steep]),
        [0.0, 1.0, 1e-9, 0.5, 1 - 1e-9, 0.0, 1.0, 0.25, 0.7],
        [1e-9] * 40,
        [1 - 1e-12] * 20,
        [1e-300, 1e-9, 1e-3, 0.5] * 3,
        [0.0] * 8,
        [0.0, 1.0] * 5,
    ]


def statements(n: int) -> list[dict[str, Any]]:
    noisy = [(n / 3, "Laplace", 1.5), (-4.25, "Normal", 0.8), (n + 3, "DiscreteLaplace", 2.0), (6.0, "Laplace", 0.1)]
    return [
        *({"name": "Exactly", "counts": count} for count in (0, 1, n // 2, n)),
        *({"name": "AtLeast", "low": low} for low in (0, 1, n - 2)),
        *(
            {"name": "Between", "low": low, "high": high}
            for low, high in ((1, 4), (0, n), (n // 2, n // 2), (n - 1, n + 5))
        ),
        *({"name": "OneOf", "allowed": allowed} for allowed in ([0, n], [1, 3, 5], [n, n + 4])),
        *({"name": "Noisy", "observed": a, "noise": noise, "scale": scale} for a, noise, scale in noisy),
    ]


CASES = [(bag, statement) for bag in bags() for statement in statements(len(bag))]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser.opened() as opened:
        yield opened


def test_numbers_are_those_of_the_library(browser: Browser) -> None:
    browser.show()
    answers = browser.run(ANSWER, [bag for bag, _ in CASES], [statement for _, statement in CASES])
    kinds: set[tuple[str, bool]] = set()
    for (bag, statement), answer in zip(CASES, answers, strict=True):
        *found, posteriors = (torch.tensor([float(value) for value in part], dtype=torch.float64) for part in answer)
        expected = of_the_library(bag, statement)
        for ours, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9, msg=f"{bag} {statement}")
        if possible := bool(expected[1].isfinite()):
            torch.testing.assert_close(
                torch.tensor(bag, dtype=torch.float64) - posteriors, expected[2], rtol=0, atol=1e-9
            )
        kinds.add((statement["name"], possible))
    assert {name for name, possible in kinds if possible} == set(TARGETS)
    assert {name for name, possible in kinds if not possible} >= {"Exactly", "OneOf", "Between"}


def test_statements_are_targets_of_the_library(browser: Browser) -> None:
    browser.show()
    assert browser.run("return countMath.statements") == list(TARGETS)
    assert browser.run("return countMath.noises") == list(NOISES)


def test_what_is_shown_is_what_was_computed(browser: Browser) -> None:
    browser.show()
    browser.one("summary").click()
    titles = [button.text for button in browser.driver.find_elements("css selector", ".pg-presets button")]
    assert len(titles) == 7
    seen = set()
    for title in titles:
        browser.preset(title)
        bag, statement = browser.run(
            "const one = countWords.PRESETS.find((preset) => preset.title === arguments[0]);"
            "return [one.probabilities, one.statement]",
            title,
        )
        probabilities, loss, gradient = of_the_library(bag, statement)
        assert float(browser.text(".pg-loss")) == pytest.approx(float(loss), abs=5.1e-5)
        assert float(browser.text(".pg-mean")) == pytest.approx(sum(bag), abs=5.1e-3)
        rows = browser.run(
            "return ['instance', 'count'].map((name) => [...document.querySelector(`.pg-${name}-rows`).rows]"
            ".map((row) => [...row.cells].map((cell) => Number(cell.textContent.replace('\\u2212', '-')))))"
        )
        instances, counts = (torch.tensor(part, dtype=torch.float64) for part in rows)
        torch.testing.assert_close(instances[:, 1], torch.tensor(bag, dtype=torch.float64), rtol=1e-6, atol=1e-9)
        torch.testing.assert_close(instances[:, 3], gradient, rtol=1e-6, atol=1e-9)
        torch.testing.assert_close(counts[:, 1], probabilities, rtol=1e-6, atol=1e-9)
        assert counts[:, 2].sum() == pytest.approx(1, abs=1e-6)
        scope: dict[str, Any] = {}
        code, result = browser.one(".pg-python").get_property("textContent").rsplit("\n", 1)
        exec(code, scope)  # what is shown as Python is Python, and says the same
        assert float(eval(result, scope)) == pytest.approx(float(loss), abs=1e-5)
        seen.add(statement["name"])
    assert seen == set(TARGETS)
    assert browser.log("browser") == []
    assert [url for url in browser.requested() if not url.startswith("data:")] == [
        (browser.folder / "playground.html").as_uri()
    ]


def test_one_step_is_that_of_the_library(browser: Browser) -> None:
    browser.show()
    bag = browser.values()
    browser.one(".pg-step").click()
    gradient = of_the_library(bag, {"name": "Exactly", "counts": 1})[2]
    expected = (torch.tensor(bag, dtype=torch.float64).logit() - gradient).sigmoid()
    assert browser.values() == pytest.approx(expected.tolist(), abs=1e-4)
