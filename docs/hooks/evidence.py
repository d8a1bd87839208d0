"""What the pages and the README say of errors and intervals, in sentences made from all rows of records in `bench/`.

A range begins with its worst row. In a page, on a line of its own, ``<!-- evidence: NAME -->``, with a name of `MADE`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.mixture import ASKED

BENCH = Path(__file__).parents[2] / "bench"
Record = Mapping[str, Any]


def exact(fuzz: Record) -> str:
    """How many numbers of both engines were compared with the oracle, and how many are wrong; then of special bags."""
    extreme = {kind: bound for kind, bound in fuzz["bounds"].items() if ", " in kind}
    exactly = [bound for kind, bound in extreme.items() if "limit" not in kind]
    limit = next((f"{bound:.0e}" for kind, bound in extreme.items() if "limit" in kind), "")
    bounds = [bound for kind, bound in fuzz["bounds"].items() if kind not in extreme]
    kind_of = {key: key.rsplit(", ", 1)[0] for key in [*fuzz["worst"], *fuzz["facts"]]}  # of both engines
    held = [worst <= extreme[kind_of[key]] for key, worst in fuzz["worst"].items() if kind_of[key] in extreme]
    asked = sum(many for key, many in fuzz["facts"].items() if kind_of[key] in extreme)
    refused = sum(many for key, many in fuzz["facts"].items() if key.endswith(", refused"))
    return (
        f"On {fuzz['facts']['bags']:,} awkward bags, {sum(fuzz['wrong'].values()):,} of "
        f"{sum(fuzz['numbers'].values()):,} numbers from both engines are further from an independent oracle than the "
        f"bounds allow ({min(bounds):.0e} to {max(bounds):.0e} in float64, one unit in the last place more in shorter "
        f"dtypes). On special bags (copies, known labels, sums of values, joint counts of classes, logits up to 1e300, "
        f"bag effects from 1e-6 to 1e6) the bounds, {min(exactly):.0e} to {max(exactly):.0e}, and {limit} for the "
        f"local limit of joint counts, hold in {sum(held)} of {len(held)} kinds of answers, {asked:,} numbers; "
        f"{refused:,} answers about classes were refused."
    )


def counts(bag_effect: Record) -> str:
    """How often intervals of the counts of new bags hold, with and without the effect."""
    designs = bag_effect["effects"].values()
    without = percents(design["coverage_without"] for design in designs)
    fitted = percents(design["coverage"] for design in designs)
    return (
        f"In {len(designs)} simulated settings, with and without something that the members of a bag have in common, "
        f"{100 * bag_effect['level']:.0f} % intervals of the counts of new bags hold {without} by default, which takes "
        f'labels as independent, and {fitted} with `bag_effect="fit"`.'
    )


def shifts(bag_effect: Record) -> str:
    """How often the estimate of the effect is within two standard errors."""
    designs = bag_effect["effects"]
    kinds: dict[str, list[Record]] = {}
    for name, design in designs.items():
        kinds.setdefault(name.rpartition(", ")[0], []).append(design)
    held = {kind: sum(round(each["within_two_errors"] * each["runs"]) for each in some) for kind, some in kinds.items()}
    runs = {kind: sum(each["runs"] for each in some) for kind, some in kinds.items()}
    worst_first = sorted(kinds, key=lambda kind: held[kind] / runs[kind])
    return (
        f"In {len(designs)} simulated settings the estimate is within two of its standard errors of the truth in "
        f"{percents(design['within_two_errors'] for design in designs.values())} of the runs, where 95 % are "
        f"expected: {listed(f'{held[kind]} of {runs[kind]} with {kind}' for kind in worst_first)}."
    )


def bootstrap(intervals: Record) -> str:
    """How often bootstrap intervals of the linear model hold, with the library's penalty and with others."""
    designs = intervals["designs"]
    default = {name: design for name, design in designs.items() if "penalty" not in name}

    def held(some: Mapping[str, Record]) -> str:
        by_age = percents(share for design in some.values() for share in design["by_age"].values())
        return f"{percents(design['coverage'] for design in some.values())} of the truths (by age group {by_age})"

    return (
        f"In simulated elections, {100 * intervals['level']:.0f} % bootstrap intervals of P(vote | age) by a linear "
        f"model hold {held(designs)} in {len(designs)} settings, and {held(default)} in the {len(default)} that have "
        f"the default penalty."
    )


def mixture(cells: Sequence[Record]) -> str:
    """The errors of the estimated mixture, and how often its interval holds, on all tasks."""
    # The run of kofn in a cell has best-bin estimation on the same scores, too.
    cells = [cell for cell in cells if cell["run"] == "kofn"]
    parts = []
    for words, chosen in (("tasks on which no setting was chosen", False), ("the others", True)):
        some = [cell for cell in cells if (cell["task"] in ASKED) is chosen]
        error, by_best_bin = (
            [abs(cell["estimates"][name] - cell["truth"]) for cell in some] for name in ("kofn", "best bin")
        )
        held = sum(cell["interval"][0] <= cell["truth"] <= cell["interval"][1] for cell in some)
        parts.append(
            f"In {len(some)} cells of {words} the largest error was {max(error):.3f} and the mean {fmean(error):.3f} "
            f"(of best-bin estimation on the same scores {fmean(by_best_bin):.3f}); the 90 % interval held the truth "
            f"in {held}."
        )
    return " ".join(parts)


def honest(honest: Record) -> str:
    """How far the loss of held-out bags is from that of new bags, apart from the luck of these bags."""
    gaps = {name: fits["without_chance"] for name, fits in honest["summary"].items()}
    worst_first = sorted(gaps, key=lambda name: gaps[name]["difference"])
    number = {fits["fits"] for fits in honest["summary"].values()}
    losses = [fits["true"] for fits in honest["summary"].values()]
    told = listed(
        f"{gaps[name]['difference']:+.3f} ± {gaps[name]['standard_error']:.3f} ({name.replace('em', 'EM')})"
        for name in worst_first
    )
    return (
        f"In {listed(map(str, sorted(number)))} simulated fits of each learner, its mean differed from the loss of new "
        f"bags, which was {min(losses):.2f} to {max(losses):.2f}, by {told}, where the luck of the held-out bags is "
        f"taken out."
    )


def noise(fits: Sequence[Record]) -> str:
    """What the verdicts and warnings say of fits that can have learned nothing."""
    kinds = "; ".join(dict.fromkeys(f"{each['learner']}, {each['kind']}" for each in fits))
    skill, rows = (sum(each["marks"][about] == "good" for each in fits) for about in ("skill", "rows"))
    return (
        f"Of {len(fits)} fits to columns of random numbers ({kinds}), {skill} had a good verdict on skill, {rows} one "
        f"on rows, and {sum(each['warned'] for each in fits)} warned."
    )


def selection(record: Record) -> str:
    """False alarms and power of the test of labels that were selected."""
    random, selected = ([each[how] for each in record["settings"]] for how in ("at random", "selected"))
    labelled = [each["labelled"] for each in record["settings"]]
    return (
        f"In {len(random)} simulated settings ({min(labelled)} to {max(labelled):,} labelled, {record['runs']} runs of "
        f"each) it raised a false alarm at the {100 * record['level']:.0f} % level in {100 * max(random):.1f} % of the "
        f"runs at most, {100 * fmean(random):.1f} % on average; where the chance to be labelled rose with the score, "
        f"it raised an alarm in {percents(selected)}."
    )


def triton(fuzz: Record) -> str:
    """The largest errors of the Triton kernel."""
    worst = {kind: max(fuzz["worst"][name] for name in fuzz["worst"] if belongs(name)) for kind, belongs in KINDS}
    return (
        f"Of {sum(fuzz['numbers'].values()):,} numbers for {fuzz['facts']['bags']:,} awkward bags of up to 400 "
        f"instances, computed in Triton's interpreter, {sum(fuzz['wrong'].values()):,} were wrong. The largest errors "
        f"were {worst['logarithms']:.0e} of log-probabilities, relative to max(1, |log p|), and "
        f"{worst['gradients']:.0e} of gradients and posteriors."
    )


KINDS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("logarithms", lambda name: name.startswith("log_")),
    ("gradients", lambda name: not name.startswith("log_")),
)


def percents(shares: Iterable[float]) -> str:
    """The lowest and the highest share, such as "27.0 to 90.0 %"."""
    found = sorted(shares)
    return f"{100 * found[0]:.1f} to {100 * found[-1]:.1f} %"


def listed(words: Iterable[str]) -> str:
    """Words as in a sentence: one, two and three."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def record(name: str) -> Any:
    """A file of `bench/`: of JSON lines a list."""
    text = (BENCH / name).read_text()
    return [json.loads(line) for line in text.splitlines()] if name.endswith("l") else json.loads(text)


MADE: dict[str, Callable[[], str]] = {
    "exact": lambda: exact(record("fuzz.json")),
    "counts": lambda: counts(record("bag_effect.json")),
    "shifts": lambda: shifts(record("bag_effect.json")),
    "bootstrap": lambda: bootstrap(record("intervals.json")),
    "mixture": lambda: mixture(record("mixture.jsonl")),
    "honest": lambda: honest(record("honest.json")),
    "noise": lambda: noise(record("random_columns.jsonl")),
    "selection": lambda: selection(record("selection.json")),
    "triton": lambda: triton(record("fuzz_triton.json")),
}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill the places of a page; an unknown name stops the build."""
    return re.sub(r"^<!-- evidence: (\w+) -->$", lambda found: MADE[found[1]](), markdown, flags=re.M)
