"""Models come back from disk as they were; a refused or failed write changes nothing; readers see whole models."""

from __future__ import annotations

import hashlib
import json
import math
import os
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
from model_folder_cases import FACTS, contents, saved
from plain_values import PLAIN, WORDS, same
from torch import Tensor, nn

from kofn import _atomic_folder, _model_folder
from kofn._model_folder import read_model, write_model

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16]
DTYPES += [torch.int8, torch.uint8, torch.bool, torch.complex64, torch.uint16, torch.float8_e4m3fn]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return saved(tmp_path / "model")


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
        ({"tensors": {"w": torch.eye(2).to_sparse()}}, ValueError, r'`tensors\["w"\]` must be dense .*to_dense'),
        ({"tensors": {"w": torch.empty(2, device="meta")}}, ValueError, r'`tensors\["w"\]` .* device meta'),
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
        ValueError, match=f"`path` must be free or a kofn model; .*place {reason}.* Nothing was touched"
    ):
        write_model(tmp_path / "place", kind="k", facts={}, tensors={})
    assert contents(tmp_path) == before
    assert os.listdir(tmp_path) == ["place"]


def test_a_damaged_model_of_ours_may_be_replaced(folder: Path) -> None:
    (folder / "weights.safetensors").unlink()
    (folder / "model.json").write_bytes((folder / "model.json").read_bytes()[:60])
    write_model(folder, kind="k", facts={}, tensors={})
    assert read_model(folder).kind == "k"


# Whole or not at all


def test_a_disk_that_fills_up_in_the_middle_of_a_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(folder.parent)

    def write_half(file: Path, data: bytes) -> None:
        file.write_bytes(data[: len(data) // 2])
        if file.name == "model.json":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(_atomic_folder, "_write", write_half)
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
