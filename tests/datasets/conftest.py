from __future__ import annotations

from pathlib import Path

import dataset_files
import pytest


@pytest.fixture(autouse=True)
def no_data_but_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """No data on this machine, no network: but for the tests of the real data, which say so."""
    if request.node.path.name == "test_real_data.py":
        return
    monkeypatch.delenv("KOFN_DATA", raising=False)
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / "cache" / project)
    dataset_files.no_network(monkeypatch)
