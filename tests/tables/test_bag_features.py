"""Columns of the bag as features: only if they are asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import table_data

from kofn.estimators import LLPClassifier
from kofn.learners import Linear
from kofn.tables import fit_table, predict_bags, predict_rows

ESTIMATOR = LLPClassifier(Linear(l2=0.01), random_state=0)


def fitted(path: Path, features: str | None, **columns: Any) -> Any:
    return fit_table(path, ESTIMATOR, bag="campaign,day", label="count", features=features, **columns)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    frame = table_data.make_table()[["bag", "x", "colour", "count"]]
    bag = frame["bag"].str[1:].astype(int)
    return table_data.write(
        frame.assign(campaign="c" + (bag % 5).astype(str), day=bag // 5).drop(columns="bag"), tmp_path / "t.csv"
    )


def test_they_are_left_out_unless_named(table: Path, tmp_path: Path) -> None:
    assert fitted(table, None).columns.names == ["x", "colour"]
    model = fitted(table, "x,campaign")
    assert model.columns.names == ["x", "campaign"]
    assert predict_rows(model, table, tmp_path / "rows.csv", keep="campaign,x") == 240
    assert predict_bags(model, table, tmp_path / "bags.csv", bag="campaign,day") == 60
    assert list(pd.read_csv(tmp_path / "bags.csv"))[:3] == ["campaign", "day", "size"]


@pytest.mark.parametrize("taken", ["count", "people"])
def test_the_label_and_copies_stay_refused(table: Path, taken: str) -> None:
    frame = pd.read_csv(table).assign(people=1)
    table_data.write(frame, table)
    with pytest.raises(ValueError, match=f"column '{taken}' is the label or the copies.*Take it out of `features`"):
        fitted(table, f"campaign,{taken}", copies="people")
