"""Whatever is wrong with a model folder, the reader says so: damage of any byte, other formats, other kinds, pickles."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from model_folder_cases import FACTS, forge, forge_weights, saved
from plain_values import same

from kofn import _atomic_folder
from kofn._model_folder import read_model, write_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return saved(tmp_path / "model")


def test_missing(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"`path` must be the folder of a kofn model; there is no .*nowhere\. Check"
    ):
        read_model(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"`path` must be the folder of a kofn model; .*model\.json is a file"):
        read_model(folder / "model.json")
    (folder / "weights.safetensors").rename(tmp_path / "w")
    with pytest.raises(FileNotFoundError, match=r"weights\.safetensors is missing\. A kofn model is a folder with"):
        read_model(folder)
    (folder / "model.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"model\.json is missing\. A kofn model is a folder with"):
        read_model(folder)


def test_missing_because_a_writer_was_killed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_atomic_folder, "_PAUSE", 0.0)
    folder.rename(folder.with_name(".model.01234567.old"))
    with pytest.raises(FileNotFoundError, match=r"interrupted; rename .*/\.model\.01234567\.old to model\."):
        read_model(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "layers-model"}, r'model\.json must say "format": "kofn-model"; it is not a kofn model'),
        ({"format": ...}, r'must say "format": "kofn-model"'),
        ({"version": 2, "kofn": "3.1"}, "written by kofn 3.1, format version 2; this kofn reads up to 1: upgrade kofn"),
        ({"version": 0}, "must be as kofn wrote it"),
        ({"version": "1"}, "must be as kofn wrote it"),
        ({"version": ...}, "must be as kofn wrote it"),
        ({"kind": ...}, "must have a kind, versions, facts and weights"),
        ({"kind": 3}, "must have a kind, versions, facts and weights"),
        ({"facts": []}, "must have a kind, versions, facts and weights"),
        ({"facts": {"$float": "nan"}}, "must hold facts by name; got nan"),
        ({"facts": {"a": {"$float": 1}}}, r"model\.json must hold facts as kofn writes them\. .* stands for nothing"),
        ({"weights": {"sha256": "0"}}, "must have a kind, versions, facts and weights"),
        ({"weights": {"sha256": "0", "bytes": 1}}, r"weights\.safetensors must have 1 bytes; it has \d+: truncated"),
    ],
    ids=str,
)
def test_documents_that_are_none(folder: Path, changes: dict[str, object], message: str) -> None:
    forge(folder, **changes)
    with pytest.raises(ValueError, match=message):
        read_model(folder)


@pytest.mark.parametrize("text", ["", "null", "[]", '"kofn-model"', "{", "\ufeff{}", "[" * 100_000, '{"a": ' * 100_000])
def test_json_that_is_no_document(folder: Path, text: str) -> None:
    (folder / "model.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"model\.json must "):
        read_model(folder)


def test_kinds(folder: Path) -> None:
    assert read_model(folder, kind=["MILClassifier", "LLPClassifier"]).kind == "LLPClassifier"
    with pytest.raises(
        ValueError, match=r"of kind 'PUClassifier'; .*model holds one of kind 'LLPClassifier' \(written by kofn"
    ):
        read_model(folder, kind="PUClassifier")
    with pytest.raises(ValueError, match=r"of kind 'A' or 'B'; .* 'LLPClassifier'"):
        read_model(folder, kind=("A", "B"))
    with pytest.raises(ValueError, match="of kind 'LLP'"):  # a part of the name will not do
        read_model(folder, kind="LLP")


@pytest.mark.parametrize("name", ["model.json", "weights.safetensors"])
def test_any_altered_byte_is_found(folder: Path, name: str) -> None:
    whole = (folder / name).read_bytes()
    for at in range(len(whole)):
        for flip in (0x01, 0x20, 0x80):  # 0x20 turns e to E: the same number, another byte
            (folder / name).write_bytes(whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :])
            with pytest.raises(ValueError, match=name):
                read_model(folder)
    (folder / name).write_bytes(whole)
    assert same(read_model(folder).facts, FACTS)


@pytest.mark.parametrize("name", ["model.json", "weights.safetensors"])
def test_any_truncation_or_growth_is_found(folder: Path, name: str) -> None:
    whole = (folder / name).read_bytes()
    for data in [whole[:length] for length in range(len(whole))] + [whole + b"\n", whole + b"\0", whole + whole]:
        (folder / name).write_bytes(data)
        with pytest.raises(ValueError, match=name):
            read_model(folder)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1e-05", "1E-05"),
        ("1e-05", "0.00001"),
        ('"kind": ', '"kind":\t'),
        ('"version": 1', '"version": 1.0'),
        ('"näin"', '"n\\u00e4in"'),
        ('"seed": null', '"seed": 1, "seed": null'),
        ("\n", "\r\n"),
        ("0.1,", "0.1000000000000000055511151231257827,"),
        ("0.1,", "NaN,"),
        ("0.1,", "1e999,"),
        ('"no"', '"\\ud800"'),
    ],
)
def test_another_spelling_is_another_file(folder: Path, old: str, new: str) -> None:
    file = folder / "model.json"
    text = file.read_bytes().decode()
    assert old in text
    file.write_bytes(text.replace(old, new).encode())
    with pytest.raises(ValueError, match=r"model\.json must be as kofn wrote it, to the byte"):
        read_model(folder)


class Bomb:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Path.touch, (self.file,)


def test_a_pickle_in_place_of_the_weights_is_not_run(folder: Path, tmp_path: Path) -> None:
    forge_weights(folder, pickle.dumps(Bomb(tmp_path / "boom")))
    with pytest.raises(ValueError, match=r"weights\.safetensors must be a safetensors file; this one cannot be read"):
        read_model(folder)
    torch.save({"w": Bomb(tmp_path / "boom")}, tmp_path / "w.pt")
    forge_weights(folder, (tmp_path / "w.pt").read_bytes())
    with pytest.raises(ValueError, match="must be a safetensors file"):
        read_model(folder)
    assert not (tmp_path / "boom").exists()
    pickle.loads(pickle.dumps(Bomb(tmp_path / "boom")))  # it was live
    assert (tmp_path / "boom").exists()


def with_header(header: bytes, data: bytes = b"") -> bytes:
    return len(header).to_bytes(8, "little") + header + data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff" * 40,
        with_header(b"[]"),
        with_header(b"not json"),
        with_header(b'{"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}', bytes(8)),
        with_header(b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', bytes(4)),
        with_header(b'{"w":{"dtype":"NO","shape":[2],"data_offsets":[0,8]}}', bytes(8)),
        with_header(b'{"w":{"dtype":"F8_E8M0","shape":[2],"data_offsets":[0,2]}}', bytes(2)),  # a bare KeyError
    ],
    ids=range(8),
)
def test_nonsense_with_the_right_hash(folder: Path, data: bytes) -> None:
    forge_weights(folder, data)
    with pytest.raises(ValueError, match=r"weights\.safetensors must be a safetensors file"):
        read_model(folder)


def test_safetensors_is_an_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with pytest.raises(ImportError, match=r"This needs safetensors, which is not installed: pip install kofn\[train\]"):
        read_model(folder)
    with pytest.raises(ImportError, match=r"pip install kofn\[train\]"):
        write_model(folder, kind="k", facts={}, tensors={})
