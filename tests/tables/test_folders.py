"""A folder of Parquet files is the table that they are together, in memory or in a file."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import kofn
from kofn._io import mapped as mapped_arrays
from kofn.tables import TableFile, TableModel, evaluate_bags, fit_table, predict_bags, predict_rows

COLUMNS: dict[str, Any] = {"bag": "ward", "label": "yes"}


def votes(rows: int = 1200, size: int = 6) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 3))
    x[rng.random(x.shape) < 0.02] = np.nan
    truth = np.nan_to_num(x[:, 0]) > 0
    table = pd.DataFrame(x, columns=["a", "b", "c"])
    table["colour"] = rng.choice(["red", "green"], rows)
    table["ward"] = np.repeat(np.arange(rows // size), size)
    table["yes"] = truth.reshape(-1, size).sum(1).repeat(size)
    return table


@pytest.fixture
def table() -> pd.DataFrame:
    return votes()


@pytest.fixture
def folder(table: pd.DataFrame, tmp_path: Path) -> Path:
    """Three files, one with its columns in another order, and one bag on both sides of a cut."""
    path = tmp_path / "votes"
    path.mkdir()
    cuts = [0, 400, 901, len(table)]
    for number, (start, end) in enumerate(pairwise(cuts)):
        part = table.iloc[start:end]
        part = part[part.columns[::-1]] if number == 1 else part
        part.to_parquet(path / f"{number}.parquet")
    (path / "_SUCCESS").write_text("")
    (path / ".hidden.parquet").write_text("no table")
    (path / "notes.txt").write_text("no table either")
    return path


@pytest.fixture
def one_file(table: pd.DataFrame, tmp_path: Path) -> Path:
    table.to_parquet(tmp_path / "votes.parquet")
    return tmp_path / "votes.parquet"


def trees() -> kofn.LLPClassifier:
    return kofn.LLPClassifier(kofn.Trees(rounds=15), random_state=0)


def test_a_folder_is_read_as_one_table(folder: Path, table: pd.DataFrame) -> None:
    file = TableFile(folder)
    assert file.columns == list(table.columns)
    assert file.rows == len(table)
    read = pd.concat(file.chunks(file.columns, rows=100), ignore_index=True)
    pd.testing.assert_frame_equal(read, table)


def test_all_commands_take_a_folder(folder: Path, one_file: Path, tmp_path: Path) -> None:
    models = [fit_table(path, trees(), **COLUMNS) for path in (folder, one_file)]
    assert models[0].estimator.fitted_.text == models[1].estimator.fitted_.text
    models[0].save(tmp_path / "model")
    model = TableModel.load(tmp_path / "model")
    assert evaluate_bags(model, folder) == evaluate_bags(model, one_file)
    assert evaluate_bags(model, folder)["trained_on"]
    out = tmp_path / "out.parquet"
    rows, bags = [], []
    for path in (folder, one_file):
        predict_rows(model, path, out, keep="ward")
        rows.append(pd.read_parquet(out))
        predict_bags(model, path, out, bag="ward")
        bags.append(pd.read_parquet(out))
    pd.testing.assert_frame_equal(*rows)
    pd.testing.assert_frame_equal(*bags)


def test_a_folder_that_is_no_table(folder: Path, table: pd.DataFrame, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="is a folder without Parquet files"):
        TableFile(tmp_path / "empty")
    table.drop(columns="b").to_parquet(folder / "9.parquet")
    with pytest.raises(ValueError, match=r"same columns; 0\.parquet has 'b', 9\.parquet has not\. Leave the column"):
        TableFile(folder)
    table.assign(d=0).to_parquet(folder / "9.parquet")
    with pytest.raises(ValueError, match=r"9\.parquet has 'd', 0\.parquet has not"):
        TableFile(folder)
    (folder / "9.parquet").write_bytes((folder / "0.parquet").read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"9\.parquet cannot be read as Parquet"):
        TableFile(folder)


LEARNERS = {
    "trees": kofn.Trees(rounds=15, row_fraction=1.0),
    "chosen trees": kofn.Trees(max_rounds=15, row_fraction=1.0),
    "network": kofn.Network(hidden=(8,), epochs=3),
    "plain network": kofn.Network(hidden=(8,), epochs=2, validation_fraction=0, standardise=False),
}


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_matrix_in_a_file_gives_the_same_model(
    name: str, scattered: bool, table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if scattered:
        table = table.sample(frac=1, random_state=0, ignore_index=True)
    if name == "plain network":
        table = table.drop(columns="colour").fillna(0.0)
    table.to_parquet(tmp_path / "votes.parquet")
    found = []
    for in_file in (False, True):
        if in_file:
            monkeypatch.setattr(mapped_arrays, "IN_MEMORY", 0)
            monkeypatch.setattr(mapped_arrays, "BLOCK", 2000)
        scratch = tmp_path / "scratch"
        estimator = kofn.LLPClassifier(LEARNERS[name], random_state=0)
        model = fit_table(tmp_path / "votes.parquet", estimator, **COLUMNS, scratch=scratch)
        assert not in_file or not list(scratch.iterdir())  # the files are gone with the fit
        scores = np.concatenate([part for part, _ in model.scores(TableFile(tmp_path / "votes.parquet"))])
        found.append((model, scores, evaluate_bags(model, tmp_path / "votes.parquet")))
    (one, scores, measures), (other, others, found_measures) = found
    assert one.estimator.fingerprint_.whole == other.estimator.fingerprint_.whole
    np.testing.assert_allclose(others, scores, atol=1e-5)
    assert found_measures["log_likelihood"] == pytest.approx(measures["log_likelihood"], abs=1e-6)
    assert other.validation == pytest.approx(one.validation, abs=1e-5)
    held = one.estimator.held_out_logits_
    if held is not None:
        np.testing.assert_array_equal(np.isnan(other.estimator.held_out_logits_), np.isnan(held))


def test_how_far_reading_is(folder: Path) -> None:
    told: list[tuple[str, int, int]] = []
    stages: list[str] = []
    estimator = trees().set_params(progress=lambda what, step, of, _: told.append((what, step, of)))
    fit_table(folder, estimator, **COLUMNS, on_stage=stages.append)
    for stage in ("reading bags and labels", "looking at 4 columns", "reading 1,200 rows"):
        assert stage in stages
        assert [step for what, step, _ in told if what == stage] == [400, 901, 1200]


def test_an_index_that_pandas_wrote(table: pd.DataFrame, tmp_path: Path) -> None:
    """One without a name is no column: it would tell a model the order of the rows. One with a name is a column."""
    shuffled = table.sample(frac=1.0, random_state=0)
    shuffled.to_parquet(tmp_path / "unnamed.parquet")
    shuffled.set_index("ward").to_parquet(tmp_path / "named.parquet")
    for name in ("unnamed", "named"):
        file = TableFile(tmp_path / f"{name}.parquet")
        assert sorted(file.columns) == sorted(table.columns)
        read = pd.concat(file.chunks([*table.columns]))
        pd.testing.assert_frame_equal(read.reset_index(drop=True), shuffled.reset_index(drop=True))
