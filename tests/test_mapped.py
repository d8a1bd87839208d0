"""Arrays in files: they are those in memory, and nothing of them is left behind."""

from __future__ import annotations

import gc
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from kofn._io import mapped


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every array is too large for memory, and a block is a few rows."""
    monkeypatch.setattr(mapped, "IN_MEMORY", 0)
    monkeypatch.setattr(mapped, "BLOCK", 256)


def test_a_small_array_is_in_memory(tmp_path: Path) -> None:
    assert mapped.mapping_of(mapped.new_array((3, 2), folder=tmp_path)) is None
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("tiny")
def test_the_file_goes_with_the_last_view(tmp_path: Path) -> None:
    array = mapped.new_array((50, 3), folder=tmp_path / "new")
    view = np.asarray(array)[10:20]
    assert mapped.folder_of(view) == tmp_path / "new"
    del array
    gc.collect()
    view[:] = 1  # which still works
    assert len(list((tmp_path / "new").iterdir())) == 1
    del view
    gc.collect()
    assert not list((tmp_path / "new").iterdir())


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("rows", [1, 21, 500])
def test_another_order_and_some_rows(rows: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(rows)
    values = rng.normal(size=(rows, 3)).astype(np.float32)
    array = mapped.new_array(values.shape, folder=tmp_path)
    array[:] = values
    mapped.release()  # what was written is not lost
    order = rng.permutation(rows)
    np.testing.assert_array_equal(mapped.in_order(array, order), values[order])
    np.testing.assert_array_equal(mapped.take(array, order), values[order])
    mask = rng.random(rows) < 0.5
    np.testing.assert_array_equal(mapped.take(array, mask), values[mask])
    assert np.shares_memory(mapped.take(array, slice(0, 1)), array)
    np.testing.assert_array_equal(np.concatenate([array[part] for part in mapped.blocks(array)]), values)


def test_mappings_of_others_keep_their_changes(tmp_path: Path) -> None:
    np.zeros(5000).tofile(tmp_path / "theirs")
    theirs = np.memmap(tmp_path / "theirs", np.float64, mode="c")
    theirs[:] = 1
    mapped.release(theirs)
    mapped.release()
    assert theirs.sum() == 5000


@pytest.mark.usefixtures("tiny")
def test_a_full_disk_is_told_of_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**9))
    with pytest.raises(OSError, match=r"needs 4\.0 GB on the disk of .*, and 1\.0 GB are free\. Make room"):
        mapped.new_array((10**9,), folder=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_nothing_is_left_after_ctrl_c(tmp_path: Path) -> None:
    code = (
        "import sys, time, pathlib, kofn._io.mapped as m\n"
        "m.IN_MEMORY = 0\n"
        "array = m.new_array((1000, 10), folder=pathlib.Path(sys.argv[1]))\n"
        "time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stderr=subprocess.DEVNULL)
    for _ in range(600):
        if list(tmp_path.iterdir()):
            break
        time.sleep(0.1)
    assert list(tmp_path.iterdir())
    process.send_signal(signal.SIGINT)
    assert process.wait(60) != 0
    assert not list(tmp_path.iterdir())
