"""Tables that no program should stumble over: each with how `kofn fit llp` must end on it."""

from __future__ import annotations

import gzip
import io
import os
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

FINE, BAD, EITHER = (0,), (2,), (0, 2)  # how a command may end


@dataclass(frozen=True)
class HostileTable:
    """A file and how a fit on it must end.

    Attributes:
        status: what the command may end with.
        make: writes it to a path, or its bytes.
        suffix: of its name.
        said: more options of the fit.
    """

    status: tuple[int, ...]
    make: bytes | Callable[[Path], Any]
    suffix: str = ".csv"
    said: tuple[str, ...] = ()

    def write(self, path: Path) -> None:
        if callable(self.make):
            self.make(path)
        else:
            path.write_bytes(self.make)


def good(rows: int = 40, size: int = 4) -> pd.DataFrame:
    """Ten bags of four rows whose count of positives is y."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=rows)
    bag = np.arange(rows) // size
    count = pd.Series(x > 0).groupby(bag).transform("sum")
    return pd.DataFrame({"bag": [f"b{i}" for i in bag], "y": count, "x": x.round(4), "z": rng.integers(0, 5, rows)})


def csv(frame: pd.DataFrame, **options: Any) -> bytes:
    return str(frame.to_csv(index=False, **options)).encode()


GOOD = csv(good())


def with_column(name: str, values: Any) -> bytes:
    return csv(good().assign(**{name: values}))


def with_cell(row: int, column: str, value: str) -> bytes:
    frame = good().astype(object)
    frame.loc[row, column] = value
    return csv(frame)


def renamed(**names: str) -> bytes:
    return csv(good().rename(columns=names))


def parquet(frame: pd.DataFrame) -> bytes:
    stream = io.BytesIO()
    frame.to_parquet(stream, index=False)
    return stream.getvalue()


def arrow(columns: dict[str, Any] | pa.Table) -> bytes:
    stream = io.BytesIO()
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), stream)
    return stream.getvalue()


def link(target: str) -> Callable[[Path], Any]:
    return lambda path: path.symlink_to(target)


LINES = GOOD.decode().splitlines()
CONTENTS: dict[str, tuple[tuple[int, ...], bytes]] = {
    "good": (FINE, GOOD),
    "nothing": (BAD, b""),
    "a line end": (BAD, b"\n"),
    "blank lines": (BAD, b"\n\n\n \n"),
    "a byte-order mark alone": (BAD, b"\xef\xbb\xbf"),
    "a byte-order mark before": (FINE, b"\xef\xbb\xbf" + GOOD),
    "two byte-order marks": (BAD, b"\xef\xbb\xbf\xef\xbb\xbf" + GOOD),
    "UTF-16": (BAD, GOOD.decode().encode("utf-16")),
    "UTF-16 without a mark": (BAD, GOOD.decode().encode("utf-16-le")),
    "UTF-32": (BAD, GOOD.decode().encode("utf-32")),
    "Latin-1": (BAD, renamed(z="größe").decode().encode("latin-1")),
    "a byte that is no UTF-8, deep down": (BAD, GOOD[:-3] + b"\xff" + GOOD[-3:]),
    "an overlong encoding": (BAD, GOOD.replace(b"b3", b"b\xc0\xaf")),
    "a lone surrogate": (BAD, GOOD.replace(b"b3", b"b\xed\xa0\x80")),
    "NUL bytes in a name": (EITHER, GOOD.replace(b"bag,y,x,z", b"bag,y,x\0x,z")),
    "NUL bytes in a bag": (EITHER, GOOD.replace(b"b3", b"b\x003")),
    "NUL bytes in a number": (EITHER, GOOD.replace(b"b3,", b"b3,\0", 1)),
    "NUL bytes alone": (BAD, b"\0" * 1000),
    "header only": (BAD, b"bag,y,x,z\n"),
    "header only, no line end": (BAD, b"bag,y,x,z"),
    "Windows line ends": (FINE, GOOD.replace(b"\n", b"\r\n")),
    "old Macintosh line ends": (FINE, GOOD.replace(b"\n", b"\r")),
    "no last line end": (FINE, GOOD.rstrip()),
    "blank lines between": (FINE, GOOD.replace(b"\n", b"\n\n")),
    "form feeds and bells": (FINE, GOOD.replace(b"\n", b"\x0c\x07\n")),
    "a quote that never ends": (BAD, GOOD.replace(b"b3", b'"b3', 1)),
    "a quote at the end": (BAD, GOOD + b'"'),
    "a line end in a bag": (FINE, GOOD.replace(b"b3", b'"b\n3"')),
    "one column": (BAD, b"bag\n" + b"a\n" * 8),
    "two columns": (BAD, csv(good()[["bag", "y"]])),
    "one row": (BAD, "\n".join(LINES[:2]).encode()),
    "two rows": (BAD, "\n".join(LINES[:3]).encode()),
    "one bag": (FINE, "\n".join(LINES[:5]).encode()),
    "a bag a row": (BAD, csv(good().assign(bag=range(40)))),
    "a bag a row, and a class": (FINE, csv(good().assign(bag=range(40), y=lambda t: (t["x"] > 0).astype(int)))),
    "a bag cut in two": (BAD, "\n".join(LINES[:-3]).encode()),
    "two columns of one name": (BAD, GOOD.replace(b"bag,y,x,z", b"bag,y,x,x")),
    "two columns named bag": (BAD, GOOD.replace(b"bag,y,x,z", b"bag,y,bag,z")),
    "two columns named y": (BAD, GOOD.replace(b"bag,y,x,z", b"bag,y,x,y")),
    "a column without a name": (FINE, GOOD.replace(b"bag,y,x,z", b"bag,y,x,")),
    "no names at all": (BAD, b",,,\n" + b"\n".join(GOOD.split(b"\n")[1:])),
    "no header": (BAD, b"\n".join(GOOD.split(b"\n")[1:])),
    "too many fields in a row": (BAD, GOOD.replace(b"b3,", b"b3,1,2,3,", 1)),
    "too many fields in all rows": (BAD, GOOD.replace(b"\nb", b"\n7,b")),
    "too few fields in a row": (FINE, GOOD.rstrip().rpartition(b",")[0]),
    "semicolons": (BAD, GOOD.replace(b",", b";")),
    "tabs": (BAD, GOOD.replace(b",", b"\t")),
    "bars": (BAD, GOOD.replace(b",", b"|")),
    "decimal commas": (BAD, GOOD.replace(b",", b";").replace(b".", b",")),
    "an empty label": (BAD, with_cell(5, "y", "")),
    "a label NaN": (BAD, with_cell(5, "y", "NaN")),
    "a label inf": (BAD, with_cell(5, "y", "inf")),
    "a label 1e308": (BAD, with_column("y", 1e308)),
    "a label 1e400": (BAD, with_column("y", "1e400")),
    "a label -1": (BAD, with_column("y", -1)),
    "labels all -3": (BAD, with_column("y", -3)),
    "a label above the size": (BAD, with_column("y", 5)),
    "a label of 30 digits": (BAD, with_column("y", "9" * 30)),
    "a label 2.5": (BAD, with_column("y", 2.5)),
    "a label in words": (BAD, with_column("y", "two")),
    "a label with a formula": (BAD, with_column("y", "=1+1")),
    "a label of complex numbers": (BAD, with_column("y", "1+2j")),
    "a label in hexadecimal": (BAD, with_column("y", "0x1F")),
    "a label of true and false": (BAD, with_column("y", ["true", "false"] * 20)),
    "labels that are empty": (BAD, with_column("y", "")),
    "labels in per cent": (FINE, with_column("y", "50 %")),
    "labels above 100 per cent": (BAD, with_column("y", "150 %")),
    "two labels in a bag": (BAD, with_cell(5, "y", "9")),
    "labels of 0 alone": (BAD, with_column("y", 0)),
    "labels of the size alone": (FINE, with_column("y", 4)),
    "an empty bag": (BAD, with_cell(5, "bag", "")),
    "bags that are empty": (BAD, with_column("bag", "")),
    "a bag NaN": (BAD, with_cell(5, "bag", "NaN")),
    "bags of numbers and words": (BAD, with_cell(5, "bag", "5")),
    "bags of 30 digits": (FINE, csv(good().assign(bag=lambda t: "9" * 30 + t["bag"].str[1:]))),
    "bags with long names": (FINE, csv(good().assign(bag=lambda t: t["bag"] + "n" * 10_000))),
    "bags with escape bytes": (FINE, csv(good().assign(bag=lambda t: t["bag"] + "\x1b[31m\x07"))),
    "bags with formulas": (FINE, csv(good().assign(bag=lambda t: "=cmd|'/C calc'!" + t["bag"]))),
    "bags in many scripts": (FINE, csv(good().assign(bag=lambda t: t["bag"] + "日本 \u202e العربية 👩‍👩‍👧"))),
    "a feature 1e308": (BAD, with_cell(5, "x", "1e308")),
    "features 1e308": (BAD, with_column("x", 1e308)),
    "a feature 1e-320": (FINE, with_cell(5, "x", "1e-320")),
    "a feature 1e400": (BAD, with_cell(5, "x", "1e400")),
    "a feature inf": (BAD, with_cell(5, "x", "inf")),
    "a feature -inf": (BAD, with_cell(5, "x", "-inf")),
    "features inf": (BAD, with_column("x", "inf")),
    "a feature of 40 digits": (BAD, with_cell(5, "x", "9" * 40)),
    "a feature of 400 digits": (BAD, with_cell(5, "x", "9" * 400)),
    "a feature missing": (FINE, with_cell(5, "x", "")),
    "a feature all missing": (BAD, with_column("x", "")),
    "all features missing": (BAD, csv(good().assign(x="", z=""))),
    "constant features": (FINE, csv(good().assign(x=1, z=1))),
    "a feature of numbers and words": (FINE, with_cell(5, "x", "many")),
    "a feature of true and false": (FINE, with_column("x", ["True", "False"] * 20)),
    "a feature of dates": (FINE, with_column("x", pd.date_range("2020-01-01", periods=40).astype(str))),
    "a feature with too many words": (BAD, csv(good(1200).assign(x=[f"w{i}" for i in range(1200)]))),
    "a field of a million characters": (FINE, with_cell(5, "x", "w" * 1_000_000)),
    "a name of a million characters": (BAD, renamed(z="n" * 1_000_000)),
    "a name of a hundred thousand": (FINE, renamed(z="n" * 100_000)),
    "a name with a line end": (FINE, renamed(z="a\nb")),
    "a name with escape bytes": (FINE, renamed(z="\x1b]0;owned\x07")),
    "a name with quotes": (FINE, renamed(z="it's \"z\"")),
    "a name with commas": (FINE, renamed(z="a,b,c")),
    "a name that is an option": (FINE, renamed(z="--label")),
    "a name of spaces": (FINE, renamed(z="   ")),
    "a name in many scripts": (FINE, renamed(z="日本 \u202e العربية 👩‍👩‍👧")),
    "names of the output": (FINE, csv(good().assign(probability=1.0, size=2, mean=3))),
    "names of Python": (FINE, renamed(z="__class__", x="None")),
    "names with line ends of Windows": (FINE, renamed(z="a\r\nb")),
    "HTML": (BAD, b"<!DOCTYPE html><html><body><table><tr><td>bag</td></tr></table></body></html>"),
    "JSON": (BAD, good().to_json(orient="records").encode()),
    "JSON lines": (BAD, good().to_json(orient="records", lines=True).encode()),
    "a spreadsheet": (BAD, b"PK\x03\x04" + random.Random(1).randbytes(2000)),
    "a picture": (BAD, b"\x89PNG\r\n\x1a\n" + random.Random(2).randbytes(2000)),
    "Parquet as CSV": (BAD, parquet(good())),
    "gzip as CSV": (BAD, gzip.compress(GOOD, mtime=0)),
}  # fmt: skip
TABLES: dict[str, HostileTable] = {name: HostileTable(status, content) for name, (status, content) in CONTENTS.items()}
TABLES |= {
    f"random bytes {seed}": HostileTable(BAD, random.Random(seed).randbytes(10 ** (1 + seed % 4))) for seed in range(8)
}
PACKED = gzip.compress(GOOD, mtime=0)
WHOLE = parquet(good())
TABLES |= {
    "packed": HostileTable(FINE, PACKED, ".csv.gz"),
    "packed, and not": HostileTable(BAD, GOOD, ".csv.gz"),
    "packed, and empty": HostileTable(BAD, gzip.compress(b"", mtime=0), ".csv.gz"),
    "packed, and cut off": HostileTable(BAD, PACKED[:-20], ".csv.gz"),
    "packed, and altered": HostileTable(BAD, PACKED[:60] + b"\xff\x00\xff" + PACKED[63:], ".csv.gz"),
    "packed twice": HostileTable(BAD, gzip.compress(PACKED, mtime=0), ".csv.gz"),
    "a few bytes, packed": HostileTable(BAD, b"\x1f\x8b", ".csv.gz"),
    "Parquet": HostileTable(FINE, WHOLE, ".parquet"),
    "Parquet, and not": HostileTable(BAD, GOOD, ".parquet"),
    "Parquet, cut off": HostileTable(BAD, WHOLE[: len(WHOLE) // 2], ".parquet"),
    "Parquet, without its beginning": HostileTable(BAD, WHOLE[100:], ".parquet"),
    "Parquet, its magic alone": HostileTable(BAD, b"PAR1PAR1", ".parquet"),
    "Parquet, a footer too long": HostileTable(
        BAD, WHOLE[:-8] + struct.pack("<I", 2**31 - 1) + b"PAR1", ".parquet"
    ),
    "Parquet, no rows": HostileTable(BAD, parquet(good().iloc[:0]), ".parquet"),
    "Parquet, no columns": HostileTable(BAD, arrow({}), ".parquet"),
    "Parquet, lists as features": HostileTable(BAD, arrow({**good(), "w": [[1, 2]] * 40}), ".parquet"),
    "Parquet, lists as bags": HostileTable(BAD, arrow({**good(), "bag": [[1]] * 40}), ".parquet"),
    "Parquet, structures": HostileTable(BAD, arrow({**good(), "w": [{"a": 1}] * 40}), ".parquet"),
    "Parquet, bytes": HostileTable(BAD, arrow({**good(), "w": [b"\xff\x00"] * 40}), ".parquet"),
    "Parquet, times": HostileTable(BAD, parquet(good().assign(w=pd.Timestamp("2020-01-01"))), ".parquet"),
    "Parquet, spans of time": HostileTable(BAD, parquet(good().assign(w=pd.Timedelta("1h"))), ".parquet"),
    "Parquet, truth values": HostileTable(FINE, parquet(good().assign(w=lambda t: t["x"] > 0)), ".parquet"),
    "Parquet, a column of nothing": HostileTable(BAD, arrow({**good(), "w": pa.nulls(40)}), ".parquet"),
    "Parquet, decimals": HostileTable(
        FINE, arrow({**good(), "w": pa.array(range(40)).cast(pa.decimal128(30, 2))}), ".parquet"
    ),
    "Parquet, categories": HostileTable(FINE, parquet(good().astype({"bag": "category"})), ".parquet"),
    "Parquet, whole numbers without a sign": HostileTable(
        FINE, parquet(good().assign(w=np.uint64(2**64 - 1))), ".parquet"
    ),
    "Parquet, halves": HostileTable(FINE, parquet(good().assign(w=np.float16(1.5))), ".parquet"),
    "Parquet, two columns of one name": HostileTable(
        BAD, arrow(pa.Table.from_arrays([pa.array([1, 2])] * 3, names=["bag", "y", "y"])), ".parquet"
    ),
    "Parquet, labels missing": HostileTable(BAD, parquet(good().assign(y=pd.array([None] * 40, "Int64"))), ".parquet"),
    "Parquet, labels of words": HostileTable(BAD, parquet(good().assign(y="two")), ".parquet"),
    "another extension": HostileTable(BAD, GOOD, ".txt"),
    "no extension": HostileTable(BAD, GOOD, ""),
    "an extension in capitals": HostileTable(FINE, GOOD, ".CSV"),
    "a folder": HostileTable(BAD, lambda path: path.mkdir()),
    "a folder of Parquet": HostileTable(BAD, lambda path: path.mkdir(), ".parquet"),
    "nowhere": HostileTable(BAD, lambda path: None),
    "a link to nowhere": HostileTable(BAD, link("no such file")),
    "a link to itself": HostileTable(BAD, lambda path: path.symlink_to(path.name)),
    "a link to nothing at all": HostileTable(BAD, link("/dev/null")),
    "a link to zeros without end": HostileTable(BAD, link("/dev/zero")),
    "a pipe": HostileTable(BAD, lambda path: os.mkfifo(path)),
    "a pipe of Parquet": HostileTable(BAD, lambda path: os.mkfifo(path), ".parquet"),
    "the bag is the label": HostileTable(BAD, GOOD, said=("--label", "bag")),
    "the label is the bag": HostileTable(BAD, GOOD, said=("--bag", "y")),
    "bounds upside down": HostileTable(
        BAD, csv(good().assign(low=3, high=1)), said=("--label", "low,high", "--drop", "y")
    ),
    "bounds beyond the size": HostileTable(
        FINE, csv(good().assign(low=0, high=99)), said=("--label", "low,high", "--drop", "y")
    ),
    "copies of 0": HostileTable(BAD, with_column("n", 0), said=("--copies", "n")),
    "copies of -1": HostileTable(BAD, with_column("n", -1), said=("--copies", "n")),
    "copies of a half": HostileTable(BAD, with_column("n", 0.5), said=("--copies", "n")),
    "copies in words": HostileTable(BAD, with_column("n", "two"), said=("--copies", "n")),
    "copies of 1e18": HostileTable(BAD, with_column("n", 10**18), said=("--copies", "n")),
    "copies NaN": HostileTable(BAD, with_cell(5, "x", ""), said=("--copies", "x")),
}  # fmt: skip


def _mutated(seed: int) -> bytes:
    """A good table with some bytes altered, removed, repeated or inserted."""
    chance = random.Random(seed)
    data = bytearray(GOOD)
    for _ in range(1 + seed % 4):
        at = chance.randrange(len(data))
        kind = chance.randrange(4)
        if kind == 0:
            data[at] = chance.randrange(256)
        elif kind == 1:
            del data[at : at + chance.randrange(1, 30)]
        elif kind == 2:
            data[at:at] = data[at : at + chance.randrange(1, 30)]
        else:
            data[at:at] = chance.choice([b",", b"\n", b'"', b"\0", b"-", b"e999", b"\xc3\x28", b"%", b"'"])
    return bytes(data)


TABLES |= {f"mutation {seed}": HostileTable(EITHER, _mutated(seed)) for seed in range(40)}
