"""From a report to one page of HTML."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import jinja2
from markupsafe import Markup

from kofn._io.atomic_write import atomic_write
from kofn.estimators._verdict_words import score_text
from kofn.report import _distribution_figures as distributions
from kofn.report import _figures as figures
from kofn.report import _row_figures as rows
from kofn.report._bag_rows import Rows, bag_rows
from kofn.report._column_marks import Marks, effect_marks, effect_scale, importance_marks
from kofn.report._comparison import Dots, comparison_dots
from kofn.report._contents import ExampleBag, Metric, Report
from kofn.report._detail_json import bag_address, details_json
from kofn.report._images import png_address
from kofn.report._paired_figures import difference_bars, paired_rows
from kofn.report._playground import SCRIPTS as PLAYGROUND_SCRIPTS
from kofn.report._playground import elements_of
from kofn.report._plot import WIDE, number, percent

TAGLINES = {
    "llp": "Instances classified by a model that was told only how many of each bag are positive.",
    "mil": "Instances classified by a model that was told only which bags have a positive one.",
    "pu": "Instances classified by a model that was told some positives, and what share of the rest is positive.",
    None: "Instances classified by models that were told only counts.",
}
TAGLINE_OF_CLASSES = "Instances classified by a model that was told only how many of each bag are of each class."
STYLES = "page.css", "details.css", "columns.css", "playground.css"
SCRIPTS = "page.js", "count_plot.js", "bag_details.js", *PLAYGROUND_SCRIPTS
# A word and a sign for each, since colour alone says nothing to some readers and to most printers.
MARKS = {
    "good": ("Good", "\u2713"),
    "doubtful": ("Doubtful", "~"),
    "bad": ("Bad", "\u2717"),
    "unknown": ("Not known", "?"),
}
MARKS_OF_TWO = {"good": ("Clear", "\u2713"), "doubtful": ("Not clear", "~"), "unknown": ("Not known", "?")}
BADGES = {"held-out": "held-out", "new": "new data", "training": "training data"}
KICKERS = {"llp": "label proportions", "mil": "multiple instances", "pu": "positive and unlabelled", None: ""}


@dataclass(frozen=True)
class Section:
    """A section of the page that has something to show; its badge says which data it is about."""

    name: str
    heading: str
    figures: Sequence[figures.Figure] = ()
    badge: str = ""
    table: Rows | None = None
    dots: Dots | None = None
    marks: Sequence[Marks] = ()


@dataclass(frozen=True)
class Chapter:
    """A report, its sections, whether its counts are "known" or "true" (the model was told less), how its ids begin."""

    report: Report
    sections: Sequence[Section]
    word: str
    prefix: str


def render(report: Report) -> str:
    """One self-contained page: no network, light and dark, from a phone to paper.

    Whatever the report's strings hold is shown as text, never run.

    Args:
        report: as `report_of` makes it, or your own.

    Returns:
        HTML.

    Examples:
        >>> from kofn.report import Metric, Report, render
        >>> page = render(Report("A & B", metrics=[Metric("Accuracy", 0.875, "Share that is right.", form="percent")]))
        >>> "<h1>A &amp; B</h1>" in page, "87.5" in page, "http:" in page
        (True, True, False)
    """
    style, script = _read(*STYLES), _read(*SCRIPTS)
    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(_read),
    )
    environment.filters |= {
        "png": png_address,
        "percent": percent,
        "score": score_text,
        "count_text": number,
        "metric_text": _metric_text,
        "correct_instances": _correct_instances,
    }
    page = _chapter(report)
    parts = [_chapter(part, f"part{place}-") for place, part in enumerate(report.parts, 1)]
    return environment.get_template("page.html").render(
        page=page,
        parts=parts,
        details=details_json([(one.prefix, one.word, one.report) for one in (page, *parts)]),
        kicker=KICKERS[report.task],
        tagline=_tagline(report),
        playground=elements_of(report),
        marks=MARKS,
        marks_of_two=MARKS_OF_TWO,
        badges=BADGES,
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


def write(report: Report, path: str | Path) -> None:
    """Write the page to a file, whole or not at all; folders above it are made.

    Raises:
        OSError: the system refused.

    Examples:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from kofn.report import Report, write
        >>> with TemporaryDirectory() as folder:
        ...     write(Report("First look"), Path(folder) / "report.html")
        ...     "First look" in (Path(folder) / "report.html").read_text()
        True
    """
    data = render(report).encode("utf-8", "replace")
    with atomic_write(path) as part:
        part.write_bytes(data)


def _chapter(report: Report, prefix: str = "") -> Chapter:
    """The sections of a report, in the order of the page."""
    word = "known" if report.task == "llp" and (report.bags is None or report.bags.told) else "true"
    badge = BADGES.get(str(report.source), "")
    bags, typical_bag = report.bags, report.typical_bag
    sections = []

    def add(name: str, heading: str, *drawn: figures.Figure | None) -> None:
        """Of figures that can be drawn."""
        there = [figure for figure in drawn if figure is not None]
        if there:
            sections.append(Section(name, heading, there, badge))

    if report.comparison is not None:
        sections.append(Section("comparison", "How close counts come", dots=comparison_dots(report.comparison)))
    if report.paired is not None:
        add("differences", "Which bags differ", difference_bars(report.paired))
        curves_of_two = [distributions.coverage_curve(one) for one in report.paired_calibration]
        add("calibrations", "Calibration side by side", *curves_of_two)
        rows = paired_rows(report.paired)
        sections.append(Section("paired", "Both models, bag by bag", badge=badge, table=rows))
    if typical_bag is not None:
        shown = [] if typical_bag.distribution is None else [typical_bag.distribution]
        drawn = [distributions.before_and_after(one, word, width=WIDE) for one in shown]
        sections.append(Section("typical-bag", "Why counts are enough", drawn, badge))
    if report.binomial is not None:
        add("binomial", "Why counts are enough", distributions.against_binomial(report.binomial))
        add("instances", "Labelled and unlabelled", figures.instance_probabilities(report.binomial))
    if report.sensitivity:
        sections.append(Section("sensitivity", "If the mixture were another", badge=BADGES["training"]))
    if bags is not None:
        add("counts", f"Expected and {word} counts", figures.count_scatter(bags, word))
        add("separation", "Bags with and without", figures.bag_probabilities(bags))
    if report.confusion is not None:
        sections.append(Section("confusion", "True and predicted classes", badge=badge))
    if report.examples:
        sections.append(Section("examples", "The most positive instances", badge=badge))
    compared = [distributions.before_and_after(one, word) for one in report.distributions]
    add("distributions", "Before and after training", *compared)
    if report.calibration is not None:
        coverage, pit = (
            distributions.coverage_curve(report.calibration),
            distributions.pit_histogram(report.calibration, word),
        )
        add("calibration", "Are the counts calibrated?", coverage, pit)
    sections += _column_sections(report, badge)
    curves = figures.loss_curves(report.history, report.best_step)
    if curves is not None:
        judged = f"{BADGES['training']} and {BADGES['held-out']}" if report.has_validation else BADGES["training"]
        sections.append(Section("training", "Training", [curves], judged))
    if bags is not None:
        opened = [] if report.details is None else [one.bag for one in report.details.bags]
        links = {place: f"#{bag_address(prefix, bags.names[place])}" for place in opened}
        sections.append(Section("bags", "Every bag", badge=badge, table=bag_rows(bags, links, word)))
    if report.facts:
        sections.append(Section("facts", "Data and settings"))
    return Chapter(report, sections, word, prefix)


def _column_sections(report: Report, badge: str) -> list[Section]:
    """What is said of rows with a known truth, and of columns."""
    found = []
    if report.row_curves is not None:
        curves = report.row_curves
        drawn = [rows.reliability_curve(curves), rows.lift_curve(curves), rows.precision_recall_curve(curves)]
        found.append(Section("rows", "Rows against the truth", drawn, badge))
    if report.importance is not None:
        shuffled = BADGES["training"] if report.importance.seen else badge
        marks = [importance_marks(report.importance)]
        found.append(Section("importance", "Which columns matter", badge=shuffled, marks=marks))
    if report.effects:
        top = effect_scale(report.effects)
        marks = [effect_marks(one, top) for one in report.effects]
        found.append(Section("effects", "What goes with a column", badge=badge, marks=marks))
    return found


def _tagline(report: Report) -> str:
    if report.paired is not None or (report.verdicts and report.verdicts[0].about == "comparison"):
        return "Two models compared on the same data, bag by bag."
    return TAGLINE_OF_CLASSES if report.task == "llp" and report.parts else TAGLINES[report.task]


def _read(*names: str) -> str:
    """Files of this package, one after the other."""
    return "".join((files("kofn.report") / name).read_text("utf-8") for name in names)


def _metric_text(metric: Metric) -> str:
    if isinstance(metric.value, str):
        return metric.value
    return {"number": number, "percent": percent, "score": score_text}[metric.form](metric.value)


def _correct_instances(bag: ExampleBag) -> str:
    """How many of a bag's instances are on the right side, if their truth is known."""
    known = [one for one in bag.instances if one.truth is not None]
    if not known:
        return ""
    right = sum(one.truth == (one.probability > 0.5) for one in known)
    return f"{right} of {len(known)} instances are on the right side of 50\u00a0%"


def _hash(text: str) -> str:
    """What a page's policy must name for a style or script to be let in."""
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()
