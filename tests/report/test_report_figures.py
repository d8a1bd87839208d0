"""Scales and marks: what is drawn is where the numbers say."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_cases import EVIL, bag_table, binomial_law

from kofn.report import BagDistribution, BagTable, Binomial, Calibration, Comparison, Method
from kofn.report._comparison import comparison_dots
from kofn.report._distribution_figures import against_binomial, before_and_after, coverage_curve, pit_histogram
from kofn.report._figures import Figure, bag_probabilities, count_scatter, instance_probabilities, loss_curves
from kofn.report._plot import LEFT, RIGHT, SMALL, TOP, WIDE, Plot, Scale, number, percent, tag, ticks

FINITE = st.floats(-1e6, 1e6)


def parsed(figure: Figure | None) -> ElementTree.Element:
    assert figure is not None
    return ElementTree.fromstring(str(figure.svg))


def of_class(root: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    """Elements that have the class, as one of several or alone."""
    return [element for element in root.iter() if set(name.split()) <= set(element.get("class", "").split())]


def corners(element: ElementTree.Element) -> list[tuple[float, float]]:
    points = element.attrib["d"].lstrip("M").removesuffix(" Z").split(" L")
    return [(float(x), float(y)) for x, y in (point.split() for point in points)]


@given(low=FINITE, span=st.floats(1e-3, 1e6), about=st.integers(2, 8))
def test_ticks_are_round_even_and_inside(low: float, span: float, about: int) -> None:
    marks = ticks(low, low + span, about=about)
    slack = 1e-6 * span + 1e-9 * abs(low)
    assert all(low - slack <= mark <= low + span + slack for mark in marks)
    assert len(marks) <= about + 1
    if len(marks) > 2:
        steps = np.diff(marks)
        assert np.allclose(steps, steps[0])
        digit = steps[0] / 10 ** math.floor(math.log10(steps[0] * (1 + 1e-9)))
        assert min(abs(digit - one) for one in (1, 2, 5, 10)) < 1e-3


def test_ticks_of_counts_are_whole() -> None:
    assert ticks(0, 2, whole=True) == [0, 1, 2]
    assert ticks(-0.5, 1.5, whole=True) == [0, 1]


@given(low=FINITE, span=st.floats(1e-3, 1e6))
def test_scale_meets_its_ends(low: float, span: float) -> None:
    scale = Scale(low, low + span, 10, 110)
    assert scale(low) == pytest.approx(10)
    assert scale(low + span) == pytest.approx(110)
    assert scale(low + span / 2) == pytest.approx(60)


def test_scale_of_no_width_is_in_the_middle() -> None:
    assert Scale(3, 3, 0, 100)(3) == 50


def test_text_and_attributes_are_escaped() -> None:
    made = tag("text", EVIL, data_x=EVIL)
    element = ElementTree.fromstring(str(made))
    assert element.text == EVIL
    assert element.attrib["data-x"] == EVIL
    assert len(list(element)) == 0


def test_numbers_for_readers() -> None:
    assert number(0.00012) == "1.2e\u221204"
    assert number(math.nan) == "none"
    assert number(-math.inf) == "\u2212∞"
    assert percent(math.nan) == "none"
    assert percent(0.0) == "0\u00a0%"


def test_loss_curve_goes_through_its_losses() -> None:
    history = [{"epoch": e, "train_loss": loss, "val_loss": loss / 2} for e, loss in enumerate([4.0, 2.0, 1.0])]
    figure = loss_curves(history, 1)
    assert figure is not None
    root = parsed(figure)
    (train,), (valid,) = of_class(root, "curve train"), of_class(root, "curve valid")
    x = Scale(0, 2, LEFT, WIDE - RIGHT)
    y = Scale(0, 4 * 1.04, 235 - 48, TOP)
    for curve, factor in ((train, 1.0), (valid, 0.5)):
        for point, entry in zip(corners(curve), history, strict=True):
            assert point == pytest.approx((x(entry["epoch"]), y(entry["train_loss"] * factor)), abs=0.06)
    (best,) = of_class(root, "best")
    assert float(best.attrib["x1"]) == pytest.approx(x(1), abs=0.06)
    assert "from 4 to 2" in figure.summary  # up to the step that was selected
    assert "from 2 to 1" in figure.summary
    assert "Epoch 1 was selected" in figure.summary


@pytest.mark.parametrize("step", ["round", "epoch", "penalty"])
def test_loss_curve_names_its_steps(step: str) -> None:
    figure = loss_curves([{step: 0, "train_loss": 1.0}, {step: 1, "val_loss": 0.5}], 1)
    assert figure is not None
    assert f">{step}</text>" in figure.svg
    assert f"{step} 1 selected" in figure.svg


def test_loss_curve_without_validation_or_with_gaps() -> None:
    figure = loss_curves([{"epoch": 0, "train_loss": 1.0}, {"epoch": 1, "train_loss": math.nan}], None)
    root = parsed(figure)
    assert not of_class(root, "valid")
    assert len(of_class(root, "point train")) == 1  # a line of one point would not be seen
    assert loss_curves([], None) is None
    assert loss_curves([{"epoch": 0, "train_loss": math.inf}], None) is None


def test_scatter_marks_what_lies_outside() -> None:
    bags = BagTable(
        ["inside", "outside"],
        np.array([8, 8]),
        np.array([2.5, 6.0]),
        np.array([1, 5]),
        np.array([4, 8]),
        np.array([0.9, 0.9]),
        known=np.array([3.0, 2.0]),
    )
    figure = count_scatter(bags)
    root = parsed(figure)
    x, y = Scale(-0.5, 8.5, LEFT, WIDE - RIGHT), Scale(0, 8, 350 - 48, TOP)
    (held,), (missed,) = of_class(root, "bag held"), of_class(root, "bag missed")
    assert float(held.attrib["cx"]) == pytest.approx(x(3), abs=0.06)
    assert float(held.attrib["cy"]) == pytest.approx(y(2.5), abs=0.06)
    assert float(missed.attrib["cy"]) == pytest.approx(y(6.0), abs=0.06)
    (line,) = of_class(root, "interval missed")
    assert (float(line.attrib["y1"]), float(line.attrib["y2"])) == pytest.approx((y(5), y(8)), abs=0.06)
    assert figure is not None
    assert "50\u00a0%" not in figure.summary  # the coverage of the page is another, randomised one
    assert "2.25 away" in figure.summary


def test_noisy_counts_are_not_judged() -> None:
    bags = BagTable(
        ["a"],
        np.array([4]),
        np.array([2.0]),
        np.array([1]),
        np.array([3]),
        np.ones(1),
        known=np.array([-1.3]),
        exact=False,
    )
    figure = count_scatter(bags)
    assert not of_class(parsed(figure), "missed")
    assert figure is not None
    assert "orange" not in figure.summary


def test_scatter_needs_known_counts() -> None:
    bags = bag_table(3)
    assert (
        count_scatter(BagTable(bags.names, bags.sizes, bags.expected, bags.low, bags.high, bags.at_least_one)) is None
    )


@pytest.mark.parametrize("counts", [10, 3000])
def test_scatter_of_many_bags_is_light_and_fair(counts: int) -> None:
    rng = np.random.default_rng(0)
    b = 20_000
    known = rng.integers(0, counts + 1, b).astype(np.float64)
    low, high = np.floor(known - 1), np.ceil(known + 1)
    low[: b // 10] = high[: b // 10]  # one in ten misses
    table = BagTable(
        [str(i) for i in range(b)], np.full(b, counts + 2), known + rng.normal(size=b), low.astype(np.int64),
        high.astype(np.int64), np.ones(b), known=known,
    )  # fmt: skip
    figure = count_scatter(table)
    root = parsed(figure)
    drawn, missed = len(of_class(root, "bag")), len(of_class(root, "bag missed"))
    assert figure is not None
    assert 50 < drawn <= 400
    assert len(figure.svg) < 150_000
    assert 0.02 < missed / drawn < 0.25
    assert f"{drawn} bags" in figure.summary
    places = sorted(float(dot.attrib["cx"]) for dot in of_class(root, "bag"))
    if counts == 10:
        assert min(np.diff(places)) > 1.8  # can be told apart


def test_histograms_of_bags_count_every_bag() -> None:
    bags = bag_table(60)
    root = parsed(bag_probabilities(bags))
    assert bags.positive is not None
    hints = {
        kind: [bar[0].text or "" for bar in of_class(root, kind) if bar.tag == "rect"] for kind in ("known", "off")
    }
    for kind, which in (("known", bags.positive), ("off", ~bags.positive)):
        assert sum(int(hint.split()[0]) for hint in hints[kind]) == which.sum()
    assert "\u2212" not in "".join(element.text or "" for element in of_class(root, "tick"))


def test_instances_need_both_kinds() -> None:
    law = binomial_law(3, 0.5)
    assert instance_probabilities(Binomial(0.5, law, [law])) is None
    assert instance_probabilities(Binomial(0.5, law, [law], (), np.zeros(0), np.ones(3))) is None
    figure = instance_probabilities(Binomial(0.5, law, [law], (), np.ones(4), np.array([0.1, 0.9])))
    assert figure is not None
    assert "100\u00a0% of 4 labelled" in figure.summary
    assert "50\u00a0% of 2 unlabelled" in figure.summary


@given(size=st.integers(1, 30), share=st.floats(0.01, 0.99), known=st.integers(0, 30))
def test_bars_are_as_high_as_the_law(size: int, share: float, known: int) -> None:
    law = binomial_law(size, share)
    known = min(known, size)
    root = parsed(before_and_after(BagDistribution("a", law, law[::-1].copy(), known)))
    peak = law.max() * 1.02
    room = 215 - 48 - TOP
    bars = of_class(root, "after")
    there = np.flatnonzero(law > 1e-4)
    assert len(bars) == len(there)
    for bar, count in zip(bars, there, strict=True):
        assert float(bar.attrib["height"]) == pytest.approx(room * law[count] / peak, abs=0.11)
    (flag,) = of_class(root, "flag")
    x = Scale(-0.5, size + 0.5, LEFT, SMALL - RIGHT)
    assert float(flag.attrib["x1"]) == pytest.approx(x(known), abs=0.06)
    assert len(of_class(root, "before")) == 1


def test_a_large_bag_is_an_outline_around_its_mass() -> None:
    law = binomial_law(2000, 0.3)
    figure = before_and_after(BagDistribution("a", law, None, 700))
    root = parsed(figure)
    assert not of_class(root, "after")
    assert len(of_class(root, "after-line")) == 1
    shown = [float((tick.text or "").replace(",", "")) for tick in of_class(root, "tick mid")]
    assert min(shown) > 500
    assert max(shown) == 700  # the known count is far out, and still there
    assert "Expected: 600." in figure.summary


def test_coverage_curve_and_verdict() -> None:
    levels = [0.2, 0.5, 0.8]
    explained, beyond = "which chance explains", "more than chance explains"
    for shift, verdict in ((0.0, explained), (0.05, explained), (0.11, beyond), (-0.11, beyond)):
        figure = coverage_curve(Calibration(levels, [level + shift for level in levels], [0.1] * 10, 100))
        assert verdict in figure.summary
        x, y = Scale(0, 1, LEFT, SMALL - RIGHT), Scale(0, 1, 265 - 48, TOP)
        for dot, level in zip(of_class(parsed(figure), "point"), levels, strict=True):
            assert float(dot.attrib["cx"]) == pytest.approx(x(level), abs=0.06)
            assert float(dot.attrib["cy"]) == pytest.approx(y(level + shift), abs=0.06)


def test_pit_histogram_halves() -> None:
    figure = pit_histogram(Calibration([0.5], [0.5], [0.2, 0.1, 0.1, 0.6], 10))
    assert "30\u00a0% of" in figure.summary
    assert "70\u00a0% in the upper" in figure.summary
    assert len(of_class(parsed(figure), "after")) == 4


def test_binomial_lines() -> None:
    laws = [binomial_law(20, share) for share in (0.4, 0.6)]
    figure = against_binomial(Binomial(0.5, binomial_law(20, 0.5), laws, [binomial_law(20, 0.1)]))
    root = parsed(figure)
    assert len(of_class(root, "thin after-line")) == 2
    assert len(of_class(root, "thin before")) == 1
    assert len(corners(of_class(root, "reference")[0])) == 21
    assert "from 8 to 12" in figure.summary
    assert "Before training it expected 2." in figure.summary


def test_comparison_puts_dots_on_one_scale() -> None:
    methods = [Method("count", [0.9, 0.8], "count"), Method("base", [0.7, None]), Method("all", [0.95, 0.85], "bound")]
    dots = comparison_dots(Comparison(["a", "b"], methods, "accuracy"))
    assert dots is not None
    assert dots.low == pytest.approx(0.65)
    assert [len(block.dots) for block in dots.blocks] == [3, 2]
    assert [dot.place for dot in dots.blocks[0].dots] == pytest.approx(
        [100 * (s - 0.65) / 0.35 for s in (0.9, 0.7, 0.95)]
    )
    assert dots.blocks[1].bound == pytest.approx(100 * 0.2 / 0.35)
    assert "baseline" not in dots.blocks[1].summary
    assert comparison_dots(Comparison(["a"], [Method("x", [None])], "accuracy")) is None


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (Method("x", [0.5]), "one entry for each of the 2 tasks"),
        (Method("x", [0.5, 93.0]), "between 0 and 1; got 93"),
    ],
    ids=["too few", "percentages"],
)
def test_comparison_errors(method: Method, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        comparison_dots(Comparison(["a", "b"], [method], "accuracy"))


def test_figures_have_a_name_and_a_description() -> None:
    plot = Plot((0, 1), (0, 1), height=100)
    root = ElementTree.fromstring(str(plot.svg("A title", "What is in it.")))
    assert (root.attrib["role"], root.attrib["aria-label"]) == ("img", "A title")
    assert [(child.tag, child.text) for child in root][:2] == [("title", "A title"), ("desc", "What is in it.")]
