"""Columns that name image files become small pictures; whatever is wrong with a file is said in its cell."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import kofn
from kofn.report import render, report_of
from kofn.report._pictures import PictureFiles, name_pictures, with_pictures
from kofn.report._row_table import row_table
from kofn.tables import TableModel, fit_table, report_table

pictures = pytest.importorskip("PIL.Image")
pytestmark = pytest.mark.filterwarnings("ignore:this fit is no better")


def decoded(address: str) -> Any:
    assert address.startswith("data:image/jpeg;base64,")
    return pictures.open(io.BytesIO(base64.b64decode(address.partition(",")[2])))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with images in several formats, one beside it, and files that are none."""
    root = tmp_path_factory.mktemp("pictures")
    data = root / "data"
    (data / "patches").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for place in range(12):
        pixels = rng.integers(0, 256, (200, 100, 3), dtype=np.uint8)
        pictures.fromarray(pixels).save(data / "patches" / f"p{place}.{'jpg' if place % 2 else 'png'}")
    pictures.fromarray(np.full((8, 8), 200, dtype=np.uint8)).save(data / "grey.png")
    pictures.fromarray(np.full((8, 8), 200, dtype=np.uint8)).save(root / "private.png")
    (data / "broken.png").write_bytes(b"\x89PNG not really")
    (data / "folder.png").mkdir()
    return data


def test_every_file_is_a_picture_or_a_reason(folder: Path) -> None:
    paths = ["patches/p0.png", "patches/p1.jpg", "grey.png", None, " ", "gone.png", "broken.png", "folder.png",
             "../private.png", str(folder.parent / "private.png"), str(folder / "grey.png"), "a\0.png"]  # fmt: skip
    files = PictureFiles(paths, folder)
    found = [files.thumbnail(row) for row in range(len(paths))]
    assert decoded(found[0]).size == (32, 64)
    assert decoded(found[1]).size == (32, 64)
    assert decoded(found[2]).size == (8, 8)
    assert np.abs(np.asarray(decoded(found[2])).astype(int) - 200).max() < 6
    assert found[3:5] == ["no path"] * 2
    assert found[5] == "file not found: gone.png"
    assert found[6] == "cannot be read: broken.png"
    assert found[7] == "file not found: folder.png"
    assert [text.startswith("not in the folder of the data: ") for text in found[8:10]] == [True, True]
    assert found[10] == found[2]
    assert found[11] == "cannot be read: a\0.png"
    image = files[0]
    assert image is not None
    assert image.shape == (64, 32, 3)
    assert files[5] is None


def test_a_bomb_is_not_opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MAX_IMAGE_PIXELS", 100)
    assert PictureFiles(["patches/p0.png"], folder).thumbnail(0) == "cannot be read: patches/p0.png"


def test_which_columns_name_pictures(folder: Path) -> None:
    assert name_pictures(pd.Series(["a.png", None, "b.JPEG"]))
    for column in (
        pd.Series(["a.png", "b"]),
        pd.Series([1.0, 2.0]),
        pd.Series([None, None]),
        np.arange(3),
        ["a.png", 2],
    ):
        assert not name_pictures(column)
    columns = [("path", pd.Series(["a.png"])), ("x", pd.Series([1.0]))]
    assert [name for name, _ in with_pictures(columns, folder)] == ["x", "path"]
    assert with_pictures(columns, None) == columns


def test_there_is_a_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kofn.report._row_table.MOST_PICTURES", 3)
    files = PictureFiles([f"patches/p{place}.{'jpg' if place % 2 else 'png'}" for place in range(12)], folder)
    table = row_table([("path", files)], np.arange(2, 12), [9, 0, 4, 1])
    assert [place for place, text in enumerate(table.thumbnails["path"]) if text.startswith("data:")] == [0, 4, 9]
    assert table.thumbnails["path"][1] == "patches/p3.jpg"
    assert table.note == "Pictures of 3 of the 10 rows on this page, the first of each bag."


def test_kofn_report_shows_them(folder: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"slide": np.repeat(np.arange(20), 4), "x": rng.normal(size=80)})
    frame["patch"] = [f"patches/p{place % 14}.{'jpg' if place % 2 else 'png'}" for place in range(80)]
    frame["malignant"] = (frame["x"] > 1).groupby(frame["slide"]).transform("max").astype(int)
    frame.to_csv(folder / "slides.csv", index=False)
    fit_table(
        folder / "slides.csv",
        kofn.MILClassifier(kofn.Trees(rounds=5), random_state=0),
        bag="slide",
        label="malignant",
        drop=["patch"],
    ).save(folder / "model")
    frame.assign(x=frame["x"] + 0.01).to_csv(folder / "new.csv", index=False)  # of training data few bags are held out
    report = report_table(TableModel.load(folder / "model"), folder / "new.csv")
    assert report.details is not None
    shown = report.details.table.thumbnails["patch"]
    assert sum(text.startswith("data:") for text in shown) > 10
    assert any(text.startswith("file not found: patches/p12.png") for text in shown)  # there are 12 of them, from 0
    assert "patch" not in report.details.table.columns
    names = report.details.table.files["patch"]
    numbers = report.details.table.numbers
    assert [Path(frame["patch"][number - 1]).name for number in numbers] == names
    assert "patch" not in [effect.column for effect in report.effects]
    assert any(one.image is not None for bag in report.examples for one in bag.instances)
    page = render(report)
    assert "data:image/jpeg;base64," in page
    assert len(page) < 2_000_000


def test_of_several_classes_and_without_a_folder(folder: Path) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"x": rng.normal(size=60), "patch": [f"patches/p{i % 2}.{'jpg' if i % 2 else 'png'}" for i in range(60)]}
    )
    groups = np.repeat(np.arange(15), 4)
    codes = rng.integers(0, 3, 60)
    Y = np.stack([np.bincount(groups, codes == code)[groups] for code in range(3)], 1)
    model = kofn.LLPClassifier(kofn.Trees(rounds=3), label="count", random_state=0).fit(X[["x"]], Y, groups=groups)
    report = report_of(model, X[["x"]], Y, groups, table=X, folder=folder)
    (table,) = {id(part.details.table): part.details.table for part in report.parts if part.details}.values()
    assert all(text.startswith("data:") for text in table.thumbnails["patch"])
    plain = report_of(model, X[["x"]], Y, groups, table=X)
    assert plain.parts[0].details is not None
    assert plain.parts[0].details.table.columns == ["x", "patch"]
    assert not plain.parts[0].details.table.thumbnails
    render(replace(report, title="Classes"))


def test_an_opened_bag_shows_the_columns_that_were_left_out(folder: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"box": np.repeat(np.arange(20), 4), "age": rng.normal(size=80), "x": np.arange(80) + 100})
    frame["votes"] = (frame["age"] > 0).groupby(frame["box"]).transform("sum")
    frame.to_csv(folder / "votes.csv", index=False)
    learner = kofn.LLPClassifier(kofn.Linear(l2=0.1), label="count", random_state=0)
    model = fit_table(folder / "votes.csv", learner, bag="box", label="votes", drop=["x"])
    for data in (frame, frame.drop(columns="votes")):  # with importance of columns, and without labels to measure it by
        data.assign(age=data["age"] + 0.01).to_csv(folder / "new.csv", index=False)
        report = report_table(model, folder / "new.csv")
        assert report.details is not None
        table = report.details.table
        assert table.columns == ["age", "x"]
        assert [int(str(value)) for value in table.values[1]] == [number + 99 for number in table.numbers]
        assert [effect.column for effect in report.effects] == ["age"]


def test_no_program_is_started_for_a_file_that_is_named_as_another(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pillow has Ghostscript read EPS, whatever the name of its file."""
    lines = ["%!PS-Adobe-3.0 EPSF-3.0", "%%BoundingBox: 0 0 9 9", "%%EndComments", "newpath", "%%EOF", ""]
    (folder / "eps.png").write_text("\n".join(lines))

    started = []
    monkeypatch.setattr("subprocess.Popen.__init__", lambda *_, **__: started.append("a process"))
    monkeypatch.setattr("PIL.EpsImagePlugin.Ghostscript", lambda *_, **__: started.append("Ghostscript"))
    assert PictureFiles(["eps.png"], folder).thumbnail(0) == "cannot be read: eps.png"
    assert started == []
