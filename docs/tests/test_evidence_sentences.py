"""Sentences about errors and intervals follow all rows of their records: the worst row is never left out."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import evidence
import pytest

FUZZ: dict[str, Any] = {
    "facts": {"bags": 1000, "classes, log_prob, native": 7, "classes, log_prob, native, refused": 2},
    "numbers": {"float64, native": 3000, "bfloat16, native": 50, "float64, torch": 3000},
    "wrong": {"float64, native": 0, "bfloat16, native": 1, "float64, torch": 1},
    "worst": {"log_prob, native, dense": 2e-14, "log_law, torch, ragged": 4e-13, "gradient, torch, dense": 3e-15},
    "bounds": {"log_prob": 1e-11, "gradient": 2e-11},
}
EXTREME = {"classes, log_prob": 1e-8}, {"classes, log_prob, native": 2e-8, "classes, log_prob, torch": 1e-9}
EFFECTS = {
    "votes, 0": {"runs": 10, "within_two_errors": 0.9, "coverage": 0.9, "coverage_without": 0.91},
    "votes, 1": {"runs": 30, "within_two_errors": 0.8, "coverage": 0.91, "coverage_without": 0.3},
    "others, 1": {"runs": 100, "within_two_errors": 0.7, "coverage": 0.89, "coverage_without": 0.6},
}
ELECTIONS = {
    "60 boxes": {"coverage": 0.92, "by_age": {"young": 0.9, "old": 0.94}},
    "60 boxes, the chosen penalty": {"coverage": 0.7, "by_age": {"young": 0.65, "old": 0.75}},
}


def test_numbers_of_both_engines_and_all_dtypes_are_counted() -> None:
    bounds, worst = EXTREME
    said = evidence.exact(FUZZ | {"bounds": FUZZ["bounds"] | bounds, "worst": FUZZ["worst"] | worst})
    assert "On 1,000 awkward bags, 2 of 6,050 numbers" in said
    assert "(1e-11 to 2e-11 in float64" in said
    assert "hold in 1 of 2 kinds of answers, 7 numbers; 2 answers about classes were refused" in said
    assert "errors were 4e-13 of log-probabilities, relative to max(1, |log p|), and 3e-15" in evidence.triton(FUZZ)


def test_intervals_of_counts_begin_with_the_worst_setting() -> None:
    said = evidence.counts({"level": 0.9, "effects": EFFECTS})
    assert "In 3 simulated settings" in said
    assert "90 % intervals of the counts of new bags hold 30.0 to 91.0 % by default" in said
    assert "89.0 to 91.0 % with `bag_effect" in said
    said = evidence.shifts({"level": 0.9, "effects": EFFECTS})
    assert "in 70.0 to 90.0 % of the runs" in said
    assert "70 of 100 with others and 33 of 40 with votes" in said


def test_bootstrap_intervals_are_those_of_all_settings_and_ages() -> None:
    said = evidence.bootstrap({"level": 0.9, "designs": ELECTIONS})
    assert "hold 70.0 to 92.0 % of the truths (by age group 65.0 to 94.0 %) in 2 settings" in said
    assert "and 92.0 to 92.0 % of the truths (by age group 90.0 to 94.0 %) in the 1 that" in said


def test_mixtures_of_tasks_on_which_nothing_was_chosen_come_first() -> None:
    def cell(task: str, ours: float, theirs: float) -> dict[str, Any]:
        estimates = {"kofn": ours, "best bin": theirs}
        return {"task": task, "run": "kofn", "truth": 0.5, "estimates": estimates, "interval": [ours - 0.1, ours + 0.1]}

    said = evidence.mixture([cell("new", 0.7, 0.5), cell("new", 0.5, 0.6), cell("adult", 0.45, 0.5), {"run": "other"}])
    assert said.startswith(
        "In 2 cells of tasks on which no setting was chosen the largest error was 0.200 and the mean"
    )
    assert (
        "mean 0.100 (of best-bin estimation on the same scores 0.050); the 90 % interval held the truth in 1." in said
    )
    assert "In 1 cells of the others the largest error was 0.050" in said


def test_the_loss_of_held_out_bags_is_told_of_every_learner() -> None:
    def fits(difference: float, true: float) -> dict[str, Any]:
        return {"fits": 40, "true": true, "without_chance": {"difference": difference, "standard_error": 0.01}}

    said = evidence.honest({"summary": {"trees": fits(-0.02, 1.8), "em": fits(-0.05, 1.7), "linear": fits(0.01, 1.9)}})
    assert "In 40 simulated fits" in said
    assert "1.70 to 1.90, by -0.050 ± 0.010 (EM), -0.020 ± 0.010 (trees) and +0.010 ± 0.010 (linear)" in said


def test_good_verdicts_on_noise_are_counted_over_all_learners() -> None:
    def fits(learner: str, good: dict[int, str], warned: int) -> list[dict[str, Any]]:
        marks = [
            {about: "good" if about in good.get(n, "") else "bad" for about in ("skill", "rows")} for n in range(50)
        ]
        return [
            {"learner": learner, "kind": "counts", "marks": each, "warned": n < warned} for n, each in enumerate(marks)
        ]

    said = evidence.noise([*fits("trees", {3: "rows"}, 49), *fits("linear", {0: "skill", 7: "skill"}, 40)])
    assert "Of 100 fits" in said
    assert "(trees, counts; linear, counts), 2 had a good verdict on skill, 1 one on rows, and 89 warned" in said


def test_alarms_are_those_of_all_settings() -> None:
    settings = [
        {"labelled": 100, "at random": 0.01, "selected": 0.4},
        {"labelled": 2000, "at random": 0.07, "selected": 1.0},
    ]
    said = evidence.selection({"runs": 400, "level": 0.05, "settings": settings})
    assert "In 2 simulated settings (100 to 2,000 labelled, 400 runs of each)" in said
    assert "5 % level in 7.0 % of the runs at most, 4.0 % on average" in said
    assert said.endswith("it raised an alarm in 40.0 to 100.0 %.")


@pytest.mark.parametrize("name", ["fuzz.json", "bag_effect.json", "intervals.json"])
def test_the_records_have_every_row_of_their_table(name: str) -> None:
    """Rows that a benchmark adds to its table are rows that the sentences see."""
    found = evidence.record(name)
    table = (evidence.BENCH / name).with_suffix(".md").read_text()
    rows = {"fuzz.json": "bounds", "bag_effect.json": "effects", "intervals.json": "designs"}[name]
    tables = table.split("\n\n| ")
    told = [tables[1], tables[3]] if name == "fuzz.json" else [tables[1]]  # between them is what each dtype took
    assert len(found[rows]) == sum(line.startswith("|") for each in told for line in each.splitlines()[2:])


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("measure", ["coverage", "coverage_without"])
def test_any_row_can_be_the_worst(effect: str, measure: str) -> None:
    worse = deepcopy(EFFECTS)
    worse[effect][measure] = 0.123
    assert " hold " in evidence.counts({"level": 0.9, "effects": worse})
    assert "12.3 to " in evidence.counts({"level": 0.9, "effects": worse})


@pytest.mark.parametrize("name", evidence.MADE)
def test_todays_records_have_what_is_told(name: str) -> None:
    assert evidence.on_page_markdown(f"a\n<!-- evidence: {name} -->\nb") == f"a\n{evidence.MADE[name]()}\nb"
