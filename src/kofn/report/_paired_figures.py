"""Two models on the same bags: a figure of the differences, and a table."""

from __future__ import annotations

import numpy as np

from kofn.report._bag_rows import Cell, Row, Rows
from kofn.report._figures import Figure
from kofn.report._paired_contents import PairedBags
from kofn.report._plot import Plot, number

MAX_BARS, MAX_ROWS = 400, 300


def difference_bars(bags: PairedBags) -> Figure | None:
    """The difference of each bag, from the largest down: above 0 the second model finds the label more probable."""
    difference = bags.difference
    order = np.argsort(-difference, kind="stable")
    if not len(order) or not np.isfinite(difference).all():
        return None
    values = difference[order]
    low, high = min(float(values[-1]), 0.0), max(float(values[0]), 0.0)
    room = 0.04 * ((high - low) or 1.0)
    plot = Plot(
        (0.0, float(len(values))),
        (low - room, high + room),
        x_label="bags, by their difference",
        y_label="difference of log-likelihood",
        height=270,
        x_whole=True,
    )
    if len(values) <= MAX_BARS:
        for place, (bag, value) in enumerate(zip(order.tolist(), values.tolist(), strict=True)):
            hint = f"{bags.names[bag]}: {number(value)}"
            plot.bar(place, place + 1, value, "after" if value >= 0 else "known", hint)
    else:
        for kind, chosen in (("after", values >= 0), ("known", values < 0)):
            places = np.flatnonzero(chosen)
            if len(places):
                outline = [(float(at), float(values[at])) for at in places]
                ends = [(float(places[-1] + 1), 0.0), (float(places[0]), 0.0)]
                plot.path([*outline, *ends], f"area {kind}", close=True)
    plot.path([(0.0, 0.0), (float(len(values)), 0.0)], "axis")
    better = int((values > 0).sum())
    worst, best = bags.names[int(order[-1])], bags.names[int(order[0])]
    summary = (
        f"{bags.models[1]} finds the label more probable in {number(better)} of {number(len(values))} bags. The "
        f"largest differences: {number(float(values[0]))} (bag {best}) and {number(float(values[-1]))} (bag {worst})."
    )
    return Figure(plot.svg(f"Difference of log-likelihood, {bags.models[1]} less {bags.models[0]}", summary), summary)


def paired_rows(bags: PairedBags) -> Rows:
    """The bags on which the two differ most, at most 300."""
    chosen = np.argsort(-np.abs(bags.difference), kind="stable")[:MAX_ROWS]
    first, second = bags.models
    columns = ["Bag", "Difference", f"log P, {first}", f"log P, {second}", "Size"]
    columns += [] if bags.known is None else ["Known" if bags.told else "True"]
    columns += [] if bags.expected is None else [f"Expected, {first}", f"Expected, {second}"]
    note = f"{number(len(bags.names))} bags, those first on which the two differ most."
    if len(chosen) < len(bags.names):
        note = f"The {MAX_ROWS} of {number(len(bags.names))} bags on which the two differ most."
    return Rows(columns, [_row(bags, int(bag)) for bag in chosen], note)


def _row(bags: PairedBags, bag: int) -> Row:
    values = bags.difference[bag], *bags.log_likelihoods[:, bag], bags.sizes[bag]
    cells = [Cell(bags.names[bag], bags.names[bag], words=True), *(_cell(float(value)) for value in values)]
    if bags.known is not None:
        cells.append(_cell(float(bags.known[bag])))
    if bags.expected is not None:
        cells += [_cell(float(value)) for value in bags.expected[:, bag]]
    return Row(cells, missed=False)


def _cell(value: float) -> Cell:
    return Cell(number(value), value)
