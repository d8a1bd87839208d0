"""Small data sets in the publishers' formats, and a download that needs no network."""

from __future__ import annotations

import gzip
import hashlib
import io
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from kofn.datasets._downloads import Source

ADULT_ROWS = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Husband, White, Male, 2174, 0, 40, Peru, <=50K",
    "50, ?, 83311, HS-grad, 13, Divorced, ?, Wife, Black, Female, 0, 7, 13, ?, >50K",
)
ADULT_TEST_ROWS = (
    "25, Private, 226802, 11th, 7, Divorced, Sales, Own-child, Other, Male, 0, 0, 40, United-States, >50K.",
)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def adult() -> dict[str, bytes]:
    return {
        "adult.data": "\n".join([*ADULT_ROWS, "", ""]).encode(),
        "adult.test": "\n".join(["|1x3 Cross validator", *ADULT_TEST_ROWS, "", ""]).encode(),
    }


def magic() -> dict[str, bytes]:
    first = "28.7967,16.0021,2.6449,0.3918,0.1982,27.7004,22.011,-8.2027,40.092,81.8828,g\n"
    second = "120.5135,76.9018,3.9939,0.0944,0.0683,5.8043,-93.5224,-63.8389,84.6874,408.3166,h\n"
    return {"magic04.data": (first + second).encode()}


def idx(array: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
    return gzip.compress(header + array.tobytes(), mtime=0)


def mnist_arrays() -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.uint8]]]:
    random = np.random.default_rng(0)
    arrays: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.uint8]]] = {}
    for part, n in (("train", 5), ("t10k", 3)):
        arrays[f"{part}-images-idx3-ubyte.gz"] = random.integers(0, 256, (n, 28, 28), dtype=np.uint8)
        arrays[f"{part}-labels-idx1-ubyte.gz"] = random.integers(0, 10, n, dtype=np.uint8)
    return arrays


def mnist() -> dict[str, bytes]:
    return {name: idx(array) for name, array in mnist_arrays().items()}


def cifar10() -> dict[str, bytes]:
    """Two records a batch; image k of batch b is filled with 10 b + k in red, and 1 and 2 more in green and blue."""
    contents = {}
    for batch, name in enumerate([*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"]):
        records = []
        for k in range(2):
            planes = np.repeat(np.uint8(10 * batch + k) + np.arange(3, dtype=np.uint8), 1024)
            records.append(bytes([(batch + k) % 10]) + planes.tobytes())
        contents[name] = b"".join(records)
    return contents


def put(folder: Path, contents: Mapping[str, bytes]) -> Path:
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def expect(monkeypatch: pytest.MonkeyPatch, module: ModuleType, contents: Mapping[str, bytes]) -> Source:
    """Let a loader's module expect these contents in place of the publisher's."""
    source: Source = replace(module.SOURCE, sha256={name: sha256(content) for name, content in contents.items()})
    monkeypatch.setattr(module, "SOURCE", source)
    return source


def zipped(contents: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred(contents: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def serve(monkeypatch: pytest.MonkeyPatch, shelf: Path, parcels: Mapping[str, bytes]) -> list[str]:
    """Answer pooch's downloads from here, by the last part of the URL; returns the list of URLs asked for."""
    asked: list[str] = []
    put(shelf, parcels)

    def retrieve(url: str, known_hash: str | None, fname: str, path: str) -> str:
        asked.append(url)
        source = shelf / url.rsplit("/", 1)[1]
        if not source.is_file():
            raise OSError(f"404 for {url}")
        return str(shutil.copy(source, Path(path) / fname))

    monkeypatch.setattr("pooch.retrieve", retrieve)
    return asked


def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def retrieve(*_: object, **__: object) -> str:
        raise ConnectionError("the network is unreachable")

    monkeypatch.setattr("pooch.retrieve", retrieve)


Contents = Callable[[], dict[str, bytes]]
