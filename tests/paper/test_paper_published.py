"""The paper's tables as data: numbers as printed, as many as there are, runs by name."""

from __future__ import annotations

import child_processes
import pytest

from paper.cells import METHODS, METRICS, PRESETS, SEEDS, TABLES, Cell, Run, cells, runs
from paper.recipes import TASK, recipe, split_recipe

SUMS = {"llp": 63.461, "mil": 60.574, "mil-instance": 73.7535, "colon": 13.508, "pu": 1733.8}


def published(table: str, method: str, **cell: object) -> dict[str, tuple[float, float]]:
    (found,) = [entry for entry in cells(table) if entry.method == method and dict(entry.cell) == cell]
    return dict(found.published)


@pytest.mark.parametrize(
    ("table", "method", "cell", "numbers"),
    [
        ("llp", "CL", {"data": "adult", "setting": "[0,1/2]", "bag_size": 8}, {"auc": (0.8984, 0.0013)}),
        ("llp", "PL", {"data": "magic", "setting": "[1/2,1]", "bag_size": 512}, {"auc": (0.8429, 0.0443)}),
        ("llp", "LMMCM", {"data": "magic", "setting": "[0,1]", "bag_size": 128}, {"auc": (0.9113, 0.0058)}),
        ("mil", "CL", {"data": "mnist", "setting": "N(10,2)", "bags": 50}, {"auc_rounded": (0.818, 0.024)}),
        ("mil", "Attention", {"data": "mnist", "setting": "N(50,10)", "bags": 400}, {"auc_rounded": (0.987, 0.001)}),
        ("mil", "CL", {"data": "mnist", "setting": "N(100,20)", "bags": 500}, {"auc_rounded": (0.999, 0.001)}),
        (
            "mil-instance",
            "Instance-Max",
            {"data": "mnist", "setting": "N(100,20)", "bags": 500},
            {"accuracy": (0.9695, 0.0097), "auc_rounded": (0.7102, 0.0867)},
        ),
        ("mil-small", "CL", {"data": "mnist", "setting": "N(5,1)", "bags": 10}, {}),
        ("pu", "CL-expect", {"data": "cifar-cat-dog", "setting": "mixture 0.5"}, {"accuracy": (76.5, 1.86)}),
        ("pu", "CL", {"data": "mnist17", "setting": "mixture 0.5"}, {"accuracy": (99.0, 0.19)}),
        ("pu", "uPU", {"data": "binarized-mnist", "setting": "mixture 0.5"}, {"accuracy": (95.2, 0.19)}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_numbers(table: str, method: str, cell: dict[str, object], numbers: dict[str, tuple[float, float]]) -> None:
    assert published(table, method, **cell) == numbers


def test_colon() -> None:
    assert published("colon", "CL", data="colon", setting="10-fold") == {
        "accuracy": (0.915, 0.008),
        "auc_rounded": (0.912, 0.010),
        "f1": (0.903, 0.010),
        "precision": (0.936, 0.014),
        "recall": (0.898, 0.007),
    }


def test_totals() -> None:
    assert {table: len(cells(table)) for table in TABLES} == {
        "llp": 24 * 4,
        "mil": 21 * 3,
        "mil-instance": 21 * 2,
        "mil-small": 8 * 3,
        "colon": 3,
        "pu": 4 * 5,
        "classes": 2 * (1 + 4 * 4),
        "sums": 3,
        "figures": 4,
    }
    numbers = {table: sum(len(entry.published) for entry in cells(table)) for table in TABLES}
    nothing = {"mil-small": 0, "classes": 0, "sums": 0, "figures": 0}
    assert numbers == {"llp": 72, "mil": 63, "mil-instance": 84, "colon": 15, "pu": 20} | nothing
    # Sums of all printed means, from the paper's source: one digit copied wrongly would show.
    sums = {table: sum(mean for entry in cells(table) for mean, _ in entry.published.values()) for table in TABLES}
    assert {table: round(total, 4) for table, total in sums.items() if total} == SUMS


@pytest.mark.parametrize("table", TABLES)
def test_every_cell_is_of_its_table(table: str) -> None:
    names = [run.name for run in runs(table)]
    assert len(set(names)) == len(names)
    for entry in cells(table):
        assert isinstance(entry, Cell)
        assert entry.method in METHODS[table]
        assert set(entry.published) <= set(METRICS[table])
    assert {entry.method for entry in cells(table)} == set(METHODS[table])


def test_runs() -> None:
    assert len(runs("llp")) == 96 * 5
    assert len(runs("colon", seeds=2)) == 3 * 10 * 2
    wanted = runs("llp", only=["data=adult", "bag_size=8", "bag_size=32", "method=CL"], seeds=2)
    assert {run.cell["bag_size"] for run in wanted} == {8, 32}
    assert [run.seed for run in wanted] == [0] * 6 + [1] * 6  # every cell once before any twice
    (fold,) = runs("colon", only=["fold=3", "method=CL"], seeds=1)
    assert fold == Run("colon", {"data": "colon", "setting": "10-fold", "fold": 3}, "CL", "fast", 0)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_run_has_a_recipe_of_plain_values(preset: str) -> None:
    import json

    for table in TABLES:
        for run in runs(table, seeds=1, preset=preset):
            options = recipe(table, run.cell, run.method, preset)
            assert json.loads(json.dumps(options)) == options


@pytest.mark.parametrize("preset", PRESETS)
def test_every_recipe_says_what_the_defaults_of_today_are_not(preset: str) -> None:
    """The records are of networks without held-out bags, patience or a start at the base rate, unless it is said."""
    for table in TABLES:
        for run in runs(table, seeds=1, preset=preset):
            options = recipe(table, run.cell, run.method, preset)
            if "epochs" not in options:
                continue
            network, task = split_recipe(options)
            assert set(task) <= set(TASK)
            # What numbers do not depend on, or what a network of `paper.networks` has in itself, need not be named.
            free = {"optimizer", "max_instances", "accumulate", "device", "precision", "checkpoint", "callback"}
            assert set(network.get_params()) - free - {"module", "hidden"} <= set(options)
            assert "module" in options or "hidden" in options
            assert network.standardise is False  # the data of an experiment are
            if "bag_size" in task:
                size = 50 if preset == "fast" and "cifar" in run.cell.get("data", "") else 200
                assert (task["bag_size"], network.batch_size) == (size, 1)  # one bag a step


def test_default_seeds_are_the_papers() -> None:
    papers = {"llp": 5, "mil": 3, "mil-instance": 3, "mil-small": 3, "colon": 5, "pu": 3, "figures": 1}
    assert papers | {"classes": 3, "sums": 3} == SEEDS


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"only": "colour=red"},
            "`only` must name bag_size, data, method, setting of the table 'llp'; got 'colour=red'",
        ),
        ({"only": ["data=iris"]}, "`only` must have data one of adult, magic; got 'data=iris'"),
        ({"preset": "slow"}, "`preset` must be one of 'fast', 'paper'"),
        ({"seeds": 0}, "`seeds`"),
    ],
    ids=["key", "value", "preset", "seeds"],
)
def test_errors(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        runs("llp", **options)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.slow
def test_the_import_is_light() -> None:
    """Training, drawing and clusters are imported when they are used."""
    heavy = "{'sklearn', 'lightgbm', 'accelerate', 'matplotlib', 'joblib', 'rich', 'jinja2', 'distributed', 'pandas'}"
    script = f"import paper.reproduce, paper.__main__; print(sorted({heavy} & set(sys.modules)))"
    assert child_processes.finish(child_processes.start(script)).strip() == "[]"


def test_unknown_table() -> None:
    with pytest.raises(ValueError, match="`table` must be one of 'llp'"):
        cells("table 7")
