"""The playground in headless Chromium: every control works by mouse, touch and keys, and all can be read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from headless_chromium import LUMINANCE
from playground_cases import Browser, of_the_library

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser.opened() as opened:
        yield opened


def test_keys_move_a_bar_and_the_loss(browser: Browser) -> None:
    browser.show(probabilities=[0.5] * 9, statement={"name": "Exactly", "counts": 2}, name="Seed", lesson="Look.")
    assert browser.text(".pg-lesson") == "Look."
    bar = browser.driver.find_elements("css selector", "[role=slider]")[3]
    browser.run("arguments[0].focus()", bar)
    expected = 0.5
    for key, change in (("\ue013", 0.01), ("\ue014", 0.01), ("\ue015", -0.01), ("\ue012", -0.01), ("\ue00e", 0.1)):
        browser.driver.switch_to.active_element.send_keys(key)
        expected += change
        assert browser.values()[3] == pytest.approx(expected)
    now = browser.text(".pg-loss")
    assert float(now) == pytest.approx(
        float(of_the_library(browser.values(), {"name": "Exactly", "counts": 2})[1]), abs=1e-4
    )
    assert browser.text(".pg-instances .pg-readout").startswith("Instance 4: prior 0.600, posterior ")
    assert "posterior" in browser.run("return document.activeElement.ariaValueText")
    for key, value in (("\ue010", 1.0), ("\ue011", 0.0)):  # End and Home: certain
        browser.driver.switch_to.active_element.send_keys(key)
        assert browser.values()[3] == value
        assert "certain" in browser.text(".pg-instances .pg-readout")
    ring = "return getComputedStyle(document.activeElement.querySelector('.pg-hit')).strokeWidth"
    assert browser.run(ring) == "3px"
    browser.driver.switch_to.active_element.send_keys("\ue004")
    assert browser.run("return document.activeElement.ariaLabel") == "Instance 5"


@pytest.mark.parametrize("kind", ["mouse", "touch"])
def test_a_drag_draws_bars(browser: Browser, kind: str) -> None:
    browser.show(width=390 if kind == "touch" else 1280)
    box = browser.run(
        "const box = document.querySelector('.pg-instances svg').getBoundingClientRect();"
        "scrollTo(0, box.top - 100);"
        "return document.querySelector('.pg-instances svg').getBoundingClientRect().toJSON()"
    )
    before = browser.values()
    at = [(box["x"] + 30 + (box["width"] - 34) * (i + 0.5) / 8, box["y"] + 14 + 0.1 * 212) for i in (1, 2)]
    if kind == "mouse":
        for name, (x, y) in (("mousePressed", at[0]), ("mouseMoved", at[1]), ("mouseReleased", at[1])):
            event = {"type": name, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1}
            browser.driver.execute_cdp_cmd("Input.dispatchMouseEvent", event)
    else:
        for name, points in (("touchStart", at[:1]), ("touchMove", at[1:]), ("touchEnd", [])):
            event = {"type": name, "touchPoints": [{"x": x, "y": y} for x, y in points]}
            browser.driver.execute_cdp_cmd("Input.dispatchTouchEvent", event)
    after = browser.values()
    assert after[1:3] == pytest.approx([0.9, 0.9], abs=0.011)
    assert [after[i] for i in (0, 3, 4, 5, 6, 7)] == [before[i] for i in (0, 3, 4, 5, 6, 7)]


def test_descent_lowers_the_loss_and_reset_returns(browser: Browser) -> None:
    browser.show()
    for title in ("One of eight", "A noisy count", "All or none"):
        browser.preset(title)
        browser.run(
            "const rate = document.querySelector('.pg-rate'); rate.value = 8; rate.dispatchEvent(new Event('input'))"
        )
        before, losses = browser.values(), [float(browser.text(".pg-loss"))]
        for _ in range(6):
            browser.one(".pg-step").click()
            losses.append(float(browser.text(".pg-loss")))
        assert losses == sorted(losses, reverse=True)
        assert losses[-1] < losses[0] - 0.1
        assert browser.text(".pg-steps") == "6"
        browser.one(".pg-reset").click()
        assert browser.values() == before
        assert float(browser.text(".pg-loss")) == losses[0]


def test_run_goes_on_until_paused(browser: Browser) -> None:
    browser.show()
    browser.one(".pg-run").click()
    browser.driver.execute_async_script(
        "const done = arguments[0], look = () => Number(document.querySelector('.pg-steps').textContent) > 2"
        " ? done() : setTimeout(look, 20); look()"
    )
    assert browser.text(".pg-run") == "Pause"
    browser.one(".pg-run").click()
    steps = browser.text(".pg-steps")
    assert browser.text(".pg-run") == "Run"
    assert (
        browser.run(
            "return new Promise((done) => setTimeout(() => done(document.querySelector('.pg-steps').textContent), 250))"
        )
        == steps
    )
    assert browser.values()[3] > 0.5
    assert browser.values()[6] < 0.2


def test_arguments_are_typed_or_pressed(browser: Browser) -> None:
    browser.show()
    browser.run("document.querySelector('.pg-names input[value=OneOf]').click()")
    field = browser.one("input[name=allowed]")
    field.clear()
    field.send_keys("2, 5")
    bag = browser.values()
    expected = float(of_the_library(bag, {"name": "OneOf", "allowed": [2, 5]})[1])
    assert float(browser.text(".pg-loss")) == pytest.approx(expected, abs=1e-4)
    field.send_keys(", x")  # half typed: marked, and what was last understood stands
    assert field.get_attribute("aria-invalid") == "true"
    assert float(browser.text(".pg-loss")) == pytest.approx(expected, abs=1e-4)
    field.clear()
    field.send_keys("2, 5")
    browser.run("document.querySelectorAll('.pg-counts .pg-hit')[7].dispatchEvent(new MouseEvent('click'))")
    assert field.get_attribute("value") == "2, 5, 7"
    browser.run("document.querySelector('.pg-names input[value=Exactly]').click()")
    browser.run("document.querySelectorAll('.pg-counts .pg-hit')[7].dispatchEvent(new MouseEvent('click'))")
    assert browser.one("input[name=counts]").get_attribute("value") == "7"


def test_an_impossible_label_is_said_to_be_one(browser: Browser) -> None:
    browser.show(probabilities=[0.0] * 8, statement={"name": "AtLeast", "low": 1}, name="None")
    assert browser.text(".pg-loss") == "∞"
    assert "impossible" in browser.text(".pg-counts .pg-readout")
    assert not browser.one(".pg-step").is_enabled()
    assert browser.run("return [...document.querySelectorAll('.pg-arrow')].every((arrow) => !arrow.getAttribute('d'))")


def test_eight_to_forty_instances(browser: Browser) -> None:
    browser.show()
    slider = browser.one(".pg-size")
    assert (slider.get_attribute("min"), slider.get_attribute("max")) == ("8", "40")
    first = browser.values()
    browser.run("arguments[0].value = 40; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))", slider)
    assert len(browser.values()) == 40
    assert browser.values()[:8] == first
    expected = of_the_library(browser.values(), {"name": "Exactly", "counts": 1})[1]
    assert float(browser.text(".pg-loss")) == pytest.approx(float(expected), abs=5e-3)  # values are read with 4 digits
    browser.run("arguments[0].value = 8; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))", slider)
    assert browser.values() == first


def test_changes_are_spoken_when_they_rest(browser: Browser) -> None:
    browser.show()
    browser.one(".pg-step").click()
    spoken = browser.driver.execute_async_script(
        "const done = arguments[0]; setTimeout(() => done(document.querySelector('[role=status]').textContent), 800)"
    )
    assert spoken.startswith("kofn.Exactly(1) of 8 instances. Loss ")
    assert browser.text(".pg-loss") in spoken
    assert browser.run("return document.querySelector('.pg-counts svg').ariaLabel") == spoken


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280], ids=str)
def test_it_fits_and_can_be_read(browser: Browser, width: int, scheme: str) -> None:
    browser.show(width=width, scheme=scheme)
    browser.one("summary").click()
    for title in ("One of eight", "Half of forty", "A noisy count"):
        browser.preset(title)
        assert browser.run("return document.documentElement.scrollWidth") <= width
        outside = browser.run(
            "return [...document.querySelectorAll('.playground svg')].flatMap((svg) => { const box = svg.getBoundingClientRect();"
            "return [...svg.querySelectorAll('text')].filter((text) => { const own = text.getBoundingClientRect();"
            "return own.left < box.left - 1 || own.right > box.right + 1 || own.top < box.top - 1 || own.bottom > box.bottom + 1; })"
            ".map((text) => text.textContent); })"
        )
        assert outside == []
        contrasts = browser.run(
            LUMINANCE
            + """
            const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            const behind = (node) => { for (; node; node = node.parentElement) {
              const colour = channels(getComputedStyle(node).backgroundColor);
              if (colour.length === 3 || colour[3] === 1) return light(colour); } };
            const texts = [...document.querySelectorAll(".playground *")].filter((node) => node.getBoundingClientRect().width
              && [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim()));
            const fill = (name) => light(channels(getComputedStyle(document.querySelector(name)).fill));
            const shown = (node) => getComputedStyle(node)[node instanceof SVGElement ? "fill" : "color"];
            const arrows = [...document.querySelectorAll(".pg-arrow")].map((arrow) => light(channels(getComputedStyle(arrow).fill)));
            return [texts.map((node) => [ratio(light(channels(shown(node))), behind(node)), node.textContent.slice(0, 30)]),
              arrows.flatMap((ink) => [ratio(ink, fill(".pg-prior")), ratio(ink, behind(document.querySelector(".pg-drawing")))])];
            """
        )
        texts, arrows = contrasts
        assert len(texts) > 60
        assert min(texts)[0] >= 4.5, min(texts)
        assert min(arrows) >= 3
    assert browser.log("browser") == []


def test_names_are_text(browser: Browser) -> None:
    evil = "\"'><img src=x onerror=alert(1)>"
    browser.show(probabilities=[0.5] * 8, statement={"name": "AtLeast", "low": 1}, name=evil, lesson=evil)
    assert browser.text(".pg-presets button") == evil
    assert browser.text(".pg-lesson") == evil
    assert browser.run("return document.images.length") == 0
