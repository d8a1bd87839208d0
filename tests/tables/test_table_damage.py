"""Damaged files: 100 of gzip and 150 of Parquet, each refused with a clear error or read rightly."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from kofn.cli import app
from kofn.tables import TableFile

COLUMNS = ["bag", "x", "count"]


def make_frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    bag = np.repeat(np.arange(50), 8)
    truth = rng.random(400) < 0.4
    count = np.bincount(bag, truth).astype(int)[bag]
    return pd.DataFrame({"bag": [f"ward {i}" for i in bag], "x": truth + rng.normal(size=400), "count": count})


FRAME = make_frame()


def gzip_bytes() -> bytes:
    return gzip.compress(FRAME.to_csv(index=False).encode(), mtime=0)


def parquet_bytes() -> bytes:
    """With checksums of its pages, as kofn writes them: without, a changed number is a number like any other."""
    target = io.BytesIO()
    FRAME.to_parquet(target, index=False, row_group_size=128, write_page_checksum=True)
    return target.getvalue()


def damaged(data: bytes, seed: int) -> bytes:
    """Cut off, with some bytes changed, or with a block of zeros."""
    rng = np.random.default_rng(seed)
    array = np.frombuffer(data, np.uint8).copy()
    start = int(rng.integers(len(array)))
    match seed % 3:
        case 0:
            array = array[:start]
        case 1:
            places = rng.integers(len(array), size=int(rng.integers(1, 5)))
            array[places] ^= rng.integers(1, 256, len(places), dtype=np.uint8)
        case _:
            array[start : start + int(rng.integers(1, 200))] = 0
    return array.tobytes()


def is_refused(path: Path) -> bool:
    """Whether a file is refused with an error that names it; else it must be read as it was."""
    try:
        file = TableFile(path)
        file.require_columns(*COLUMNS)
        read = pd.concat(file.chunks(COLUMNS, text=["bag"]), ignore_index=True)
    except ValueError as error:
        told = str(error)
    else:
        pd.testing.assert_frame_equal(read, FRAME, check_dtype=False)
        return False
    assert path.name in told
    assert "iconv" not in told  # the cure of another fault
    return True


@pytest.mark.parametrize(("name", "many"), [("t.csv.gz", 100), ("t.parquet", 150)])
def test_a_damaged_file_is_refused_or_read_rightly(tmp_path: Path, name: str, many: int) -> None:
    data = gzip_bytes() if name.endswith("gz") else parquet_bytes()
    path = tmp_path / name
    path.write_bytes(data)
    assert not is_refused(path)
    refused = 0
    for seed in range(10, 10 + many):
        path.write_bytes(damaged(data, seed))
        refused += is_refused(path)
    assert refused > 0.7 * many  # the others were damaged where nothing is said of the table


@pytest.mark.parametrize("name", ["t.csv.gz", "t.parquet"])
@pytest.mark.parametrize("seed", range(6))
def test_a_damaged_file_on_the_command_line(tmp_path: Path, name: str, seed: int) -> None:
    data = gzip_bytes() if name.endswith("gz") else parquet_bytes()
    (tmp_path / name).write_bytes(damaged(data, seed)[: len(data) - 1])  # never whole
    said = ["fit", "llp", str(tmp_path / name), "--bag", "bag", "--label", "count", "-o", str(tmp_path / "m")]
    result = CliRunner().invoke(app, said)
    assert result.exit_code == 2, repr(result.exception)
    assert len(result.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == [name]
