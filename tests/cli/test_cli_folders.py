"""The command line takes a folder of Parquet files wherever it takes a table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_calls import fine

from kofn._io import mapped


@pytest.mark.slow
def test_from_a_folder_to_predictions_and_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "IN_MEMORY", 0)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    share = (x[:, 0] > 0).reshape(100, 4).mean(1).repeat(4)
    table = pd.DataFrame({"ward": np.repeat(np.arange(100), 4), "share": share, "a": x[:, 0], "b": x[:, 1]})
    folder, model = tmp_path / "votes", tmp_path / "out" / "model"
    folder.mkdir()
    for number in range(2):
        table.iloc[200 * number : 200 * number + 200].to_parquet(folder / f"{number}.parquet", index=False)
    options = ("--bag", "ward", "--label", "share")
    fitted = json.loads(fine("fit", "llp", folder, *options, "--set", "rounds=5", "-o", model, "--json"))
    assert fitted["data"]["rows"] == 400
    assert sorted(path.name for path in model.parent.iterdir()) == ["model"]
    fine("predict", model, folder, "-o", tmp_path / "rows.csv")
    assert len(pd.read_csv(tmp_path / "rows.csv")) == 400
    assert json.loads(fine("evaluate", model, folder, "--json"))["bags"] == 100
    fine("report", model, folder, "-o", tmp_path / "report.html")
    fine("cv", "llp", folder, *options, "--learner", "linear", "--folds", "2")
