"""Hostile tables and options by the hundred: every value in every place, each with how the command must end."""

from __future__ import annotations

from hostile_options import FIT, LINEAR, NETWORK
from hostile_tables import BAD, FINE, HostileTable, csv, good

#: What a cell may hold, and in which of the columns a fit must refuse it: b the bag, y its count, x a number, z the
#: name of a column; a number may be none where it is missing, and text makes categories of its column.
CELLS = {
    "": "b y", " ": "y", "NA": "b y", "nan": "b y", "NULL": "b y", "None": "b y", "#N/A": "b y", "-": "y", "?": "y",
    "inf": "y x", "-inf": "y x", "1e400": "y x", "1e39": "y x", "-1": "y", "5": "y", "2.5": "y", "1e0": "", "3": "",
    "0x1": "y", "1_0": "y", "+1": "", "TRUE": "y", "1,5": "y", "1;5": "y", "=1+1": "y", "'=1": "y", "@x": "y",
    "a\rb": "y", "a\nb": "y", 'a"b': "y", "<script>": "y", "1/2": "y", "50%": "y", "2020-01-01": "y", "\u200b": "y",
    "\u0661": "y", "\U0001f600": "y", "\x1b[31m": "y", "e": "y", "9" * 400: "y x", "y": "y", "x" * 100_000: "y",
}  # fmt: skip


def with_value(place: str, value: str) -> bytes:
    """A table with this value for bag b3, for its label, for a number of it, or for the name of a column."""
    frame = good().astype(object)
    if place == "name":
        return csv(frame.rename(columns={"z": value}), lineterminator="\r\n")  # which quotes carriage returns
    column = {"b": "bag", "y": "y", "x": "x"}[place]
    rows = frame["bag"] == "b3" if place != "x" else frame.index == 13
    frame.loc[rows, column] = value
    return csv(frame, lineterminator="\r\n")


#: Names that another column has.
TAKEN = ("y",)

TABLES: dict[str, HostileTable] = {
    f"{place} is {value[:20]!a}": HostileTable(BAD if place in refused.split() else FINE, with_value(place, value))
    for value, refused in CELLS.items()
    for place in ("b", "y", "x")
} | {
    f"a column named {value[:20]!a}": HostileTable(BAD if value in TAKEN else FINE, with_value("name", value))
    for value in CELLS
}

#: What is no number of anything.
NO_NUMBERS = ("", " ", "x", "nan", "-1", "1.5.2", "0x10", "1,5,x", "--", "9e999", "many", "\x1b[31m", "1 2")
NUMBERS: dict[str, str] = {  # options that take a number, by the start of a command line
    FIT: "--bootstrap --max-categories --seed",
    f"{FIT} --bootstrap 2": "--jobs",
    "cv llp t.csv --bag bag --label y --set rounds=2": "--folds --seed",
    "predict linear t.csv -o new.csv": "--interval",
    "fit pu t.csv --label any --drop y,bag -o new": "--prior --mixture",
    "data get digits -o new.csv": "--bag-size",
}
SETTINGS: dict[str, str] = {  # options of learners that take a number
    FIT: "rounds leaves min_rows learning_rate l2 row_fraction column_fraction threads",
    LINEAR: "l2 folds max_steps",
    NETWORK: "epochs lr weight_decay dropout batch_size accumulate",
}

OPTIONS: list[list[str]] = [
    [*start.split(), option, value]
    for start, options in NUMBERS.items()
    for option in options.split()
    for value in NO_NUMBERS
] + [
    [*start.split(), "--set", f"{name}={value}"]
    for start, names in SETTINGS.items()
    for name in names.split()
    for value in NO_NUMBERS
]
