"""Numbers and openings of the sentences of verdicts."""

from __future__ import annotations

from kofn.estimators._verdicts import Estimate, Mark, Source

BRACKETS = "90\u00a0% intervals in brackets"


def opening(mark: Mark, source: Source, number: int) -> str:
    """The first words of a sentence: the answer, and why there is none."""
    if mark != "unknown":
        return {"good": "Yes: ", "doubtful": "Not certain: ", "bad": "No: "}[mark]
    if source == "training":
        return "Not known, for on training data a model shows what it remembers: "
    return f"Not known, {number:,} are too few to tell: "


def gain_text(gain: Estimate, over: str, *, scale: float = 1.0) -> str:
    """A gain over a baseline with its interval: "better than no features by 0.42 (0.31 to 0.53)".

    An interval that holds 0 allows both words, and has neither.

    Examples:
        >>> gain_text(Estimate(-0.2, -0.3, -0.1), "no features")
        'worse than no features by 0.2 (0.1 to 0.3)'
        >>> gain_text(Estimate(-0.2, -0.5, 0.1), "no features")
        'as good as no features within the doubt, \u22120.2 (\u22120.5 to 0.1)'
    """
    if gain.low <= 0 <= gain.high:
        ends = " to ".join(number_text(scale * end) for end in (gain.low, gain.high))
        return f"as good as {over} within the doubt, {number_text(scale * gain.mean)} ({ends})"
    word, shown = ("better", gain) if gain.mean >= 0 else ("worse", gain.turned)
    ends = " to ".join(number_text(scale * end) for end in (shown.low, shown.high))
    return f"{word} than {over} by {number_text(scale * shown.mean)} ({ends})"


def number_text(value: float) -> str:
    """Two digits that matter, with a true minus.

    Examples:
        >>> [number_text(value) for value in (0.1234, -2.0, 1234.5)]
        ['0.12', '\u22122', '1,234']
    """
    text = f"{value:.2g}" if abs(value) < 100 else f"{value:,.0f}"
    return text.replace("-", "\u2212")


def percent_text(value: float) -> str:
    r"""A share as a percentage.

    Examples:
        >>> percent_text(0.875), percent_text(0.9)
        ('87.5\xa0%', '90\xa0%')
    """
    return f"{100 * value:.1f}".removesuffix(".0") + "\u00a0%"


def score_text(value: float) -> str:
    r"""An AUC or the like with three digits, as the field writes it; one that is not 0 or 1 is never rounded to it.

    Examples:
        >>> [score_text(value) for value in (0.5, 0.98765, 0.99999, 1.0)]
        ['0.500', '0.988', '>\xa00.999', '1.000']
    """
    if 0 < value < 0.001:
        return "<\u00a00.001"
    if 0.999 < value < 1:
        return ">\u00a00.999"
    return f"{value:.3f}"
