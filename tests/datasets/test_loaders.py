"""Each loader on a small data set in its publisher's format."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import dataset_files
import numpy as np
import pytest
import torch
from PIL import Image
from scipy.io import savemat

from kofn import datasets
from kofn.datasets import _adult, _cifar10, _colon, _magic, _mnist

LOADERS: dict[str, tuple[Callable[..., Any], ModuleType, dataset_files.Contents]] = {
    "adult": (datasets.load_adult, _adult, dataset_files.adult),
    "magic": (datasets.load_magic, _magic, dataset_files.magic),
    "mnist": (datasets.load_mnist, _mnist, dataset_files.mnist),
    "cifar10": (datasets.load_cifar10, _cifar10, dataset_files.cifar10),
}


def load(monkeypatch: pytest.MonkeyPatch, root: Path, name: str) -> Any:
    loader, module, contents = LOADERS[name]
    source = dataset_files.expect(monkeypatch, module, contents())
    dataset_files.put(root / source.folder, contents())
    return loader(root, download=False)


def test_adult(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    train, test = load(monkeypatch, tmp_path, "adult")
    assert train.labels.tolist() == [0, 1]
    assert test.labels.tolist() == [1]  # ">50K."
    assert train.classes == ("<=50K", ">50K")
    assert train.features == test.features
    assert train.features[:5] == ("age", "workclass=?", "workclass=Private", "workclass=State-gov", "fnlwgt")
    assert train.instances.dtype == torch.float32
    for part, rows in ((train, dataset_files.ADULT_ROWS), (test, dataset_files.ADULT_TEST_ROWS)):
        for x, row in zip(part.instances, rows, strict=True):
            values = dict(zip(_adult.COLUMNS, row.split(", "), strict=False))
            expected = [
                float(values[feature])
                if "=" not in feature
                else float(values[feature.split("=")[0]] == feature.split("=")[1])
                for feature in part.features
            ]
            assert x.tolist() == expected
    categorical = sum(_adult.COLUMNS.values())
    assert train.instances[:, [("=" in name) for name in train.features]].sum(1).tolist() == [categorical] * 2


def test_magic(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = load(monkeypatch, tmp_path, "magic")
    assert data.labels.tolist() == [1, 0]
    assert data.classes == ("h", "g")
    assert data.features[0] == "fLength"
    assert data.instances.dtype == torch.float32
    assert torch.equal(data.instances[:, -1], torch.tensor([81.8828, 408.3166]))


def test_mnist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    arrays = dataset_files.mnist_arrays()
    for part, prefix in zip(load(monkeypatch, tmp_path, "mnist"), ("train", "t10k"), strict=True):
        assert part.instances.dtype == torch.uint8
        assert part.instances[:, 0].numpy().tolist() == arrays[f"{prefix}-images-idx3-ubyte.gz"].tolist()
        assert part.labels.tolist() == arrays[f"{prefix}-labels-idx1-ubyte.gz"].tolist()


def test_cifar10(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    train, test = load(monkeypatch, tmp_path, "cifar10")
    assert train.instances.shape == (10, 3, 32, 32)
    assert train.instances.dtype == torch.uint8
    assert train.instances[:, 0, 5, 7].tolist() == [0, 1, 10, 11, 20, 21, 30, 31, 40, 41]
    assert train.instances[3, :, 31, 0].tolist() == [11, 12, 13]
    assert train.labels.tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5]
    assert test.instances[:, 2, 0, 0].tolist() == [52, 53]
    assert len(train.classes) == 10


@pytest.mark.parametrize("name", list(LOADERS))
def test_the_publishers_checksums_refuse_other_files(tmp_path: Path, name: str) -> None:
    loader, module, contents = LOADERS[name]
    folder = dataset_files.put(tmp_path / module.SOURCE.folder, contents())
    first = module.SOURCE.files[0]
    with pytest.raises(ValueError, match=module.SOURCE.sha256[first]) as caught:
        loader(tmp_path)
    assert str(folder / first) in str(caught.value)


@pytest.mark.parametrize("name", list(LOADERS))
def test_every_file_read_has_a_checksum(name: str) -> None:
    source = LOADERS[name][1].SOURCE
    assert set(source.sha256) == set(source.files)
    assert all(len(value) == 64 for value in source.sha256.values())


@pytest.mark.parametrize("name", [*LOADERS, "colon"])
def test_offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    dataset_files.no_network(monkeypatch)
    module = _colon if name == "colon" else LOADERS[name][1]
    with pytest.raises(FileNotFoundError, match="No download") as caught:
        getattr(datasets, f"load_{name}")(tmp_path)
    assert module.SOURCE.page in str(caught.value)
    assert str(tmp_path / module.SOURCE.folder) in str(caught.value)


@pytest.mark.parametrize("name", list(LOADERS))
def test_download_from_the_publishers_parcels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    loader, module, contents = LOADERS[name]
    source = dataset_files.expect(monkeypatch, module, contents())
    members = {source.archive_prefix + file: content for file, content in contents().items()}
    filename = source.urls[0].rsplit("/", 1)[1]
    parcels = {
        "zip": lambda: {filename: dataset_files.zipped(members)},
        "gz": lambda: contents() if name == "mnist" else {filename: dataset_files.tarred(members)},
    }[filename.rsplit(".", 1)[1]]()
    asked = dataset_files.serve(monkeypatch, tmp_path / "shelf", parcels)
    loader(tmp_path / "root")
    assert asked == list(source.urls)
    assert all((tmp_path / "root" / source.folder / file).is_file() for file in source.files)


# --- Colon: pictures whose colours say where a pixel is ---

HEIGHT, WIDTH = 60, 80
PICTURE = np.stack(
    [*np.broadcast_arrays(np.arange(HEIGHT)[:, None], np.arange(WIDTH)[None]), np.full((HEIGHT, WIDTH), 7)], axis=2
).astype(np.uint8)
CENTRES: dict[str, dict[str, Any]] = {
    "img1": {
        "epithelial": np.array([[30.0, 20.0], [41.6, 25.4]]),  # one whole, one between pixels
        "fibroblast": np.array([[1, 1]], np.uint8),  # the first pixel
        "inflammatory": np.zeros((0, 2)),
        "others": np.array([[80.0, 60.0], [0.15, 30.0]]),  # the last pixel; one left of the first
    },
    "img2": {
        "epithelial": np.zeros((0, 2)),
        "fibroblast": np.zeros((0, 2)),
        "inflammatory": np.array([[50, 30]], np.uint16),
        "others": np.zeros((0, 2)),
    },
}


def write_colon(monkeypatch: pytest.MonkeyPatch, root: Path) -> Path:
    contents: dict[str, bytes] = {}
    digests = []
    for image, centres in CENTRES.items():
        buffer = io.BytesIO()
        Image.fromarray(PICTURE).save(buffer, "BMP")
        files = {f"{image}/{image}.bmp": buffer.getvalue()}
        for name, points in centres.items():
            buffer = io.BytesIO()
            savemat(buffer, {"detection": points})
            files[f"{image}/{image}_{name}.mat"] = buffer.getvalue()
        digests.append(hashlib.sha256(b"".join(hashlib.sha256(content).digest() for content in files.values())))
        contents |= files
    monkeypatch.setattr(_colon, "IMAGES", tuple(CENTRES))
    monkeypatch.setattr(_colon, "SOURCE", replace(_colon.SOURCE, files=tuple(contents)))
    monkeypatch.setattr(_colon, "SET_SHA256", dataset_files.sha256(b"".join(digest.digest() for digest in digests)))
    monkeypatch.setattr(_colon, "IMAGE_SHA256", "".join(digest.hexdigest()[:8] for digest in digests))
    return dataset_files.put(root / _colon.SOURCE.folder, contents)


def test_colon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_colon(monkeypatch, tmp_path)
    colon = datasets.load_colon(tmp_path)
    assert colon.instances.shape == (6, 3, 27, 27)
    assert colon.instances.dtype == torch.uint8
    assert colon.bags.names == ["img1", "img2"]
    assert colon.bags.sizes.tolist() == [5, 1]
    assert colon.labels.tolist() == [0, 0, 1, 3, 3, 2]
    assert colon.bag_labels.tolist() == [1, 0]
    # (row, column) of each centre's pixel, counted from 0, then the blue that is everywhere
    assert colon.instances[:, :, 13, 13].tolist() == [
        [19, 29, 7],
        [24, 41, 7],
        [0, 0, 7],
        [59, 79, 7],
        [29, 0, 7],
        [29, 49, 7],
    ]
    inside = torch.from_numpy(PICTURE[19 - 13 : 19 + 14, 29 - 13 : 29 + 14]).permute(2, 0, 1)
    assert torch.equal(colon.instances[0], inside)
    corner = colon.instances[2]  # mirrored at its own centre
    assert torch.equal(corner, corner.flip(1))
    assert torch.equal(corner, corner.flip(2))
    assert corner[0, :, 0].tolist() == [*range(13, 0, -1), *range(14)]


def test_a_damaged_image_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = write_colon(monkeypatch, tmp_path)
    path = folder / "img2/img2_others.mat"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="damaged or another version") as caught:
        datasets.load_colon(tmp_path)
    assert str(folder / "img2") in str(caught.value)
    assert str(folder / "img1") not in str(caught.value)


def test_a_missing_image_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (write_colon(monkeypatch, tmp_path) / "img2/img2.bmp").unlink()
    with pytest.raises(FileNotFoundError, match="no folder has all of its files"):
        datasets.load_colon(tmp_path)


def test_the_manifest_has_all_images() -> None:
    assert len(_colon.IMAGE_SHA256) == 8 * len(_colon.IMAGES) == 800
    assert len(_colon.SOURCE.files) == 500


def test_missing_pillow_is_named_by_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_colon(monkeypatch, tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "PIL.Image", None)
    with pytest.raises(ImportError, match=r"needs pillow.*kofn\[datasets\]"):
        datasets.load_colon(tmp_path)
