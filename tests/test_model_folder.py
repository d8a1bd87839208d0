"""Models come back from disk as they were, damage of any byte is found, and a failed write changes nothing."""

from __future__ import annotations

import hashlib
import json
import math
import os
import pickle
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_facts import PLAIN, WORDS, same
from torch import Tensor, nn

from kofn import _model_folder, _whole_folder
from kofn._model_folder import read_model, write_model

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16]
DTYPES += [torch.int8, torch.uint8, torch.bool, torch.complex64, torch.uint16, torch.float8_e4m3fn]

FACTS = {"classes": ["näin", "no"], "history": [0.1, math.nan, math.inf], "params": {"seed": None, "rate": 1e-05}}
TENSORS = {"0.weight": torch.arange(6.0).reshape(2, 3), "steps": torch.tensor(7)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_model(tmp_path / "model", kind="LLPClassifier", facts=FACTS, tensors=TENSORS)
    return tmp_path / "model"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def forge(folder: Path, **changes: object) -> None:
    """Change the document and make its digest right again."""
    document = {**json.loads((folder / "model.json").read_bytes()), **changes}
    document = {key: value for key, value in document.items() if value is not ...}
    document["digest"] = _model_folder._digest(document)
    (folder / "model.json").write_bytes(_model_folder._layout(document))


def forge_weights(folder: Path, data: bytes) -> None:
    (folder / "weights.safetensors").write_bytes(data)
    forge(folder, weights={"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)})


# Round trips


@st.composite
def some_tensors(draw: st.DrawFn) -> Tensor:
    dtype = draw(st.sampled_from(DTYPES))
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    size = math.prod(shape) * torch.empty((), dtype=dtype).element_size()
    data = bytearray(draw(st.binary(min_size=size, max_size=size)))
    if dtype == torch.bool:
        data = bytearray(byte % 2 for byte in data)
    tensor = torch.frombuffer(data, dtype=dtype).reshape(shape) if size else torch.empty(shape, dtype=dtype)
    return draw(
        st.sampled_from([tensor, tensor.mT if tensor.dim() > 1 else tensor, tensor[..., None].expand(*shape, 2)])
    )


def bits(tensor: Tensor) -> tuple[torch.dtype, tuple[int, ...], bytes]:
    flat = tensor.contiguous().reshape(-1).view(torch.uint8) if tensor.numel() else torch.empty(0, dtype=torch.uint8)
    return tensor.dtype, tuple(tensor.shape), bytes(flat.tolist())


@settings(max_examples=60)
@given(
    WORDS,
    st.dictionaries(WORDS, PLAIN, max_size=3),
    st.dictionaries(st.text(max_size=6).filter(lambda name: name != "__metadata__"), some_tensors(), max_size=3),
)
def test_round_trip(kind: str, facts: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    with TemporaryDirectory() as place:
        write_model(place + "/m", kind=kind, facts=facts, tensors=tensors)
        model = read_model(place + "/m", kind=kind)
        assert os.listdir(place) == ["m"]
    assert model.kind == kind
    assert same(model.facts, facts)
    assert {name: bits(tensor) for name, tensor in model.tensors.items()} == {n: bits(t) for n, t in tensors.items()}


def test_the_files_are_what_the_format_says(folder: Path) -> None:
    assert sorted(contents(folder)) == ["model.json", "weights.safetensors"]
    weights = (folder / "weights.safetensors").read_bytes()
    text = (folder / "model.json").read_text(encoding="utf-8")

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    document = json.loads(text, parse_constant=refuse)
    digest = document.pop("digest")
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert digest == hashlib.sha256(canonical.encode()).hexdigest()
    assert document.pop("torch") == torch.__version__
    assert isinstance(document.pop("kofn"), str)
    assert document == {
        "format": "kofn-model",
        "version": 1,
        "kind": "LLPClassifier",
        "facts": {**FACTS, "history": [0.1, {"$float": "nan"}, {"$float": "inf"}]},
        "weights": {"sha256": hashlib.sha256(weights).hexdigest(), "bytes": len(weights)},
    }
    assert "näin" in text  # readable
    model = read_model(folder)
    assert model.written_by.endswith(f", torch {torch.__version__}")
    assert model.written_by.startswith("kofn ")


def test_a_network_with_tied_weights(tmp_path: Path) -> None:
    def network() -> nn.Sequential:
        layers = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 3))
        layers[2].weight = layers[0].weight
        return layers

    torch.manual_seed(0)
    one, other = network(), network()
    write_model(tmp_path / "m", kind="net", facts={}, tensors=one.state_dict())
    tensors = read_model(tmp_path / "m").tensors
    other.load_state_dict(tensors)
    x = torch.randn(4, 3)
    assert torch.equal(one.eval()(x), other.eval()(x))
    assert tensors["0.weight"].data_ptr() != tensors["2.weight"].data_ptr()
    tensors["0.weight"].zero_()  # writable
    assert tensors["2.weight"].any()


def test_views_parameters_and_lazy_signs(tmp_path: Path) -> None:
    base = torch.arange(6.0)
    turned = torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex64).conj()
    tensors = {
        "every second": base[::2],
        "tail": base[3:],
        "parameter": nn.Parameter(base),
        "conjugate": turned,
        "negative": turned.imag,
    }
    write_model(tmp_path / "m", kind="views", facts=MappingProxyType({}), tensors=MappingProxyType(tensors))
    back = read_model(tmp_path / "m").tensors
    assert back["every second"].tolist() == [0, 2, 4]
    assert back["tail"].tolist() == [3, 4, 5]
    assert back["tail"].untyped_storage().nbytes() == 12
    assert back["parameter"].tolist() == base.tolist()
    assert not back["parameter"].requires_grad
    assert back["conjugate"].tolist() == [1 - 2j, 3 + 4j]
    assert back["negative"].tolist() == [-2, 4]


def test_paths(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_model(str(tmp_path / "a" / "b" / "c"), kind="k", facts={}, tensors={})  # parents are made, text will do
    assert read_model(str(tmp_path / "a" / "b" / "c")).tensors == {}
    monkeypatch.chdir(folder)
    assert read_model(".").kind == "LLPClassifier"
    monkeypatch.chdir(tmp_path)
    link = tmp_path / "a" / "link"
    link.symlink_to(folder)
    assert read_model(link).kind == "LLPClassifier"
    write_model(link, kind="through the link", facts={}, tensors={})
    assert link.is_symlink()
    assert read_model("model").kind == "through the link"
    assert sorted(os.listdir(tmp_path / "a")) == ["b", "link"]
    assert sorted(os.listdir(tmp_path)) == ["a", "model"]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_the_folder_is_as_open_as_any_other(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    assert folder.stat().st_mode == (tmp_path / "other").stat().st_mode


# What is refused in writing


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"facts": {"classes": [0, {1}]}}, TypeError, r'`facts\["classes"\]\[1\]` must be plain JSON'),
        ({"facts": [1]}, TypeError, "`facts` must be a mapping .*; got list"),
        ({"kind": None}, TypeError, "`kind` must be a str; got NoneType"),
        ({"kind": "\ud800"}, ValueError, "`kind` must be text"),
        ({"tensors": {"w": [1.0]}}, TypeError, r'`tensors\["w"\]` must be a torch.Tensor; got list'),
        ({"tensors": {1: torch.ones(1)}}, TypeError, "Names in `tensors` must be str; got 1, a int"),
        ({"tensors": {"w": torch.eye(2).to_sparse()}}, ValueError, r'`tensors\["w"\]` must be dense; .*to_dense'),
        ({"tensors": {"w": torch.empty(2, device="meta")}}, ValueError, r'`tensors\["w"\]` .* on meta'),
        ({"tensors": {"w": torch.ones(2, dtype=torch.complex128)}}, ValueError, r'`tensors\["w"\]` .*complex128'),
        ({"tensors": {"__metadata__": torch.ones(2)}}, ValueError, r'`tensors\["__metadata__"\]` must have a name'),
        ({"tensors": {"\ud800": torch.ones(2)}}, ValueError, "must have a name"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_arguments_touch_nothing(
    folder: Path, tmp_path: Path, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    before = contents(tmp_path)
    for place in (folder, tmp_path / "new" / "one"):
        with pytest.raises(error, match=message):
            write_model(place, **{"kind": "k", "facts": {}, "tensors": {}, **arguments})
    assert contents(tmp_path) == before
    assert os.listdir(tmp_path) == ["model"]


def test_a_dtype_that_safetensors_writes_but_does_not_read(tmp_path: Path) -> None:
    dtype = getattr(torch, "float8_e8m0fnu", None)
    if dtype is None:
        pytest.skip("this torch has no such dtype")
    with pytest.raises(ValueError, match="float8_e8m0fnu"):
        write_model(tmp_path / "m", kind="k", facts={}, tensors={"w": torch.empty(2, dtype=dtype)})


def occupy_with_a_file(place: Path) -> None:
    place.write_text("mine")


def occupy_with_an_empty_folder(place: Path) -> None:
    place.mkdir()


def occupy_with_weights_only(place: Path) -> None:
    place.mkdir()
    (place / "weights.safetensors").write_bytes(b"mine")


def occupy_with_a_file_more(place: Path) -> None:
    write_model(place, kind="k", facts={}, tensors={})
    (place / "notes.txt").write_text("mine")


def occupy_with_a_folder_more(place: Path) -> None:
    write_model(place, kind="k", facts={}, tensors={})
    (place / "weights.safetensors").unlink()
    (place / "weights.safetensors").mkdir()


def occupy_with_a_model_of_others(place: Path) -> None:
    place.mkdir()
    (place / "model.json").write_text('{"format": "layers-model"}')


@pytest.mark.parametrize(
    ("occupy", "reason"),
    [
        (occupy_with_a_file, "is a file"),
        (occupy_with_an_empty_folder, r"has no model\.json"),
        (occupy_with_weights_only, r"has no model\.json"),
        (occupy_with_a_file_more, r"also holds 'notes\.txt'"),
        (occupy_with_a_folder_more, r"also holds 'weights\.safetensors'"),
        (occupy_with_a_model_of_others, r"has no model\.json of kofn"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_not_ours_is_not_replaced(tmp_path: Path, occupy: Callable[[Path], None], reason: str) -> None:
    occupy(tmp_path / "place")
    before = contents(tmp_path)
    with pytest.raises(
        FileExistsError, match=f"`path` must be free or a kofn model; .*place {reason}.* Nothing was touched"
    ):
        write_model(tmp_path / "place", kind="k", facts={}, tensors={})
    assert contents(tmp_path) == before
    assert os.listdir(tmp_path) == ["place"]


def test_a_damaged_model_of_ours_may_be_replaced(folder: Path) -> None:
    (folder / "weights.safetensors").unlink()
    (folder / "model.json").write_bytes((folder / "model.json").read_bytes()[:60])
    write_model(folder, kind="k", facts={}, tensors={})
    assert read_model(folder).kind == "k"


# What is refused in reading


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
    monkeypatch.setattr(_whole_folder, "_PAUSE", 0.0)
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


# Whole or not at all


def test_a_disk_that_fills_up_in_the_middle_of_a_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(folder.parent)

    def write_half(file: Path, data: bytes) -> None:
        file.write_bytes(data[: len(data) // 2])
        if file.name == "model.json":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(_whole_folder, "_write", write_half)
    with pytest.raises(OSError, match="No space left"):
        write_model(folder, kind="new", facts={}, tensors={})
    assert contents(folder.parent) == before
    assert os.listdir(folder.parent) == ["model"]


def test_a_reader_beside_a_writer_sees_the_old_or_the_new_model(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    stop = threading.Event()

    def write(number: int) -> None:
        write_model(folder, kind=str(number), facts={"n": number}, tensors={"n": torch.full((1000,), number)})

    def write_on() -> None:
        for number in range(1, 150):
            write(number)
        stop.set()

    write(0)
    writer = threading.Thread(target=write_on)
    writer.start()
    seen = []
    while not stop.is_set():
        model = read_model(folder)
        assert model.facts == {"n": int(model.kind)}
        assert bool((model.tensors["n"] == int(model.kind)).all())
        seen.append(int(model.kind))
    writer.join()
    assert seen == sorted(seen)
    assert len(set(seen)) > 5
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize("moment", ["before", "between", "renames"])
def test_a_reader_tries_again_when_the_folder_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The writer comes before the reader's first file, between its two files, or is between its own renames."""
    real = _model_folder._bytes
    calls = []

    def late(place: Path, name: str) -> bytes:
        calls.append(name)
        if (moment, len(calls)) in {("before", 1), ("between", 2)}:
            write_model(folder, kind="new", facts={}, tensors={})
        if moment == "renames":
            if len(calls) == 1:
                folder.rename(folder.with_name(".model.01234567.old"))
            if len(calls) == 3:
                folder.with_name(".model.01234567.old").rename(folder)
        return real(place, name)

    monkeypatch.setattr(_model_folder, "_bytes", late)
    assert read_model(folder).kind == ("LLPClassifier" if moment == "renames" else "new")
    assert len(calls) == {"before": 2, "between": 4, "renames": 4}[moment]
