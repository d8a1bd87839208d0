"""Reports with a little of everything, made without training."""

from __future__ import annotations

import numpy as np

from kofn.report import (
    BagDetail,
    BagDetails,
    BagDistribution,
    BagTable,
    Binomial,
    Calibration,
    ColumnEffect,
    Comparison,
    ExampleBag,
    Importance,
    Instance,
    Method,
    Metric,
    Report,
    RowTable,
)
from kofn.report._row_curves import row_curves

EVIL = "<script>alert('x')</script>\"'><img src=x onerror=alert(1)>{{ 7 * 7 }}&lt;"


def binomial_law(size: int, share: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    law = np.ones(1)
    for _ in range(size):
        law = np.convolve(law, [1 - share, share])
    return law


def bag_table(number: int = 40, *, seed: int = 0, name: str = "bag") -> BagTable:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(4, 13, number)
    known = rng.binomial(sizes, 0.4)
    expected = np.clip(known + rng.normal(0, 0.8, number), 0, sizes)
    low = np.floor(np.clip(expected - 1.2, 0, sizes)).astype(np.int64)
    high = np.ceil(np.clip(expected + 1.2, 0, sizes)).astype(np.int64)
    return BagTable(
        [f"{name} {i}" for i in range(number)],
        sizes,
        expected,
        low,
        high,
        rng.random(number),
        known=known.astype(np.float64),
        labels=["at least one positive" if count else "no positive" for count in known],
        positive=known > 0,
    )


def example(name: str = "bag 3", *, images: bool = True, truth: bool = True) -> ExampleBag:
    rng = np.random.default_rng(0)
    instances = [
        Instance(
            p,
            rng.integers(0, 256, (8, 8), dtype=np.uint8) if images else None,
            () if images else ("1.5", "red"),
            (p > 0.6) if truth else None,
        )
        for p in (0.97, 0.7, 0.55, 0.1, 0.01)
    ]
    law = BagDistribution(name, binomial_law(5, 0.5), binomial_law(5, 0.2), 2)
    return ExampleBag(name, 5, instances, "2 positives", () if images else ("width", "colour"), law)


def bag_details(table: BagTable, name: str = "bag") -> BagDetails:
    """Two bags of the table, the first with everything, and a table of rows with text, numbers and what is missing."""
    sizes = [int(size) for size in table.sizes[:2]]
    rows = [np.arange(sizes[0]), np.arange(sizes[1])]
    first = BagDetail(
        0,
        binomial_law(sizes[0], 0.4),
        rows[0],
        np.linspace(1, 0, sizes[0]),
        posterior=np.linspace(0.9, 0.1, sizes[0]),
        truth=np.arange(sizes[0]) < 2,
        label=f"label {name}",
        bounds=(1, sizes[0]),
    )
    second = BagDetail(1, binomial_law(sizes[1], 0.5), rows[1], np.full(sizes[1], 0.5))
    most = max(sizes)
    columns = [f"column {name}", *(f"x{place}" for place in range(9))]
    values = [[name] * most, *([[1.5, None, *range(most - 2)]] * 9)]
    return BagDetails([first, second], RowTable(columns, values, note="A note."))


def column_effect(name: str) -> ColumnEffect:
    share = np.array([0.1, 0.4, 0.7])
    groups = ["below 20", f"20 to 29 {name}", "30 and above"]
    return ColumnEffect(name, groups, np.array([9, 7, 5]), share, share - 0.05, share + 0.1, share + 0.02, "A note.")


def full(name: str = "bag") -> Report:
    """Every section, with `name` wherever a user's string may come."""
    return Report(
        f"Title {name}",
        "mil",
        facts=[(f"Fact {name}", f"value {name}")],
        metrics=[
            Metric(f"Accuracy {name}", 0.9375, f"Meaning {name}.", form="percent"),
            Metric("Word", name, "A word."),
        ],
        history=[{"epoch": e, "train_loss": 2 / (e + 1), "val_loss": 2.2 / (e + 1)} for e in range(8)],
        best_step=6,
        comparison=Comparison(
            [f"LLP {name}", "MIL"],
            [
                Method(f"Count {name}", [0.95, 0.9], "count"),
                Method("Other", [None, 0.8]),
                Method("All labels", [0.97, 0.93], "bound"),
            ],
            f"accuracy {name}",
        ),
        bags=bag_table(name=name),
        details=bag_details(bag_table(name=name), name),
        calibration=Calibration([0.25, 0.5, 0.75], [0.2, 0.5, 0.8], [0.1] * 10, 40),
        distributions=[BagDistribution(f"{name} {i}", binomial_law(8, 0.5), binomial_law(8, 0.1), i) for i in range(3)],
        importance=Importance(
            [f"column {name}", *(f"x{i}" for i in range(11))],
            np.linspace(0.5, -0.1, 12),
            np.linspace(0.45, -0.15, 12),
            np.linspace(0.55, -0.05, 12),
            "score",
            f"On {name}.",
        ),
        effects=[column_effect(f"column {name}"), *(column_effect(f"x{i}") for i in range(5))],
        row_curves=row_curves(np.linspace(-3, 3, 200), np.arange(200) % 7 > np.linspace(6, 0, 200)),
        typical_bag=example(name),
        examples=[example(name), example(name, images=False)],
        binomial=Binomial(
            0.4,
            binomial_law(20, 0.4),
            [binomial_law(20, share) for share in (0.35, 0.45)],
            [binomial_law(20, 0.9)],
            np.linspace(0.5, 1, 9),
            np.linspace(0, 1, 30),
        ),
    )
