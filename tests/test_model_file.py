"""Models come back from disk as they were; a refused or failed write changes nothing; readers see whole models."""

from __future__ import annotations

import hashlib
import json
import math
import multiprocessing
import os
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from model_file_cases import BLANK, FACTS, contents, parts, saved
from torch import Tensor, nn

from kofn._io import model_file
from kofn._io.model_file import read_model, write_model

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16]
DTYPES += [torch.int8, torch.uint8, torch.bool, torch.complex64, torch.uint16, torch.float8_e4m3fn]
WORDS = st.sampled_from(["NaN", BLANK, '"sha256": "', ""]) | st.text(max_size=4)
LEAVES = st.none() | st.booleans() | st.integers(-(2**200), 2**200) | st.floats() | WORDS
PLAIN = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=3))


@pytest.fixture
def file(tmp_path: Path) -> Path:
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


def same(left: object, right: object) -> bool:
    """Equal values of equal types; NaN equals NaN, 0.0 does not equal -0.0, keys are in the same order."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or left.hex() == right.hex()
    return left == right


@settings(max_examples=100)
@given(
    WORDS,
    st.dictionaries(WORDS, PLAIN, max_size=3),
    st.dictionaries(WORDS.filter(lambda name: name != "__metadata__"), some_tensors(), max_size=3),
)
def test_round_trip(kind: str, facts: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    with TemporaryDirectory() as place:
        write_model(place + "/m", kind=kind, facts=facts, tensors=tensors)
        model = read_model(place + "/m", kind=kind)
        assert os.listdir(place) == ["m"]
    assert model.kind == kind
    assert same(model.facts, facts)
    assert {name: bits(tensor) for name, tensor in model.tensors.items()} == {n: bits(t) for n, t in tensors.items()}


def test_the_file_is_what_the_format_says(file: Path) -> None:
    data = file.read_bytes()
    document = json.loads(json.loads(parts(data)[0])["__metadata__"]["kofn"])
    digest = document.pop("sha256")
    assert hashlib.sha256(data.replace(digest.encode(), BLANK.encode())).hexdigest() == digest
    assert same(document.pop("facts"), FACTS)
    assert isinstance(document["kofn"], str)
    assert document == {
        "format": "kofn-model",
        "version": 2,
        "kind": "LLPClassifier",
        "kofn": document["kofn"],
        "torch": torch.__version__,
    }
    assert read_model(file).written_by == f"kofn {document['kofn']}, torch {torch.__version__}"
    saved(file.with_name("again"))
    assert file.with_name("again").read_bytes() == data


def test_other_tools_read_the_tensors(file: Path) -> None:
    from safetensors.torch import load_file

    assert load_file(file)["0.weight"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_text_as_a_tensor_of_bytes(tmp_path: Path) -> None:
    text = "tree\nversion=v4\n" * 1000
    tensor = torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)
    write_model(tmp_path / "m", kind="trees", facts={}, tensors={"trees": tensor})
    assert bytes(read_model(tmp_path / "m").tensors["trees"].numpy()).decode() == text


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
    tensors["0.weight"].zero_()  # writable
    assert tensors["2.weight"].any()


def test_views_parameters_and_lazy_signs(tmp_path: Path) -> None:
    base = torch.arange(6.0)
    turned = torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex64).conj()
    tensors = {"tail": base[3:], "parameter": nn.Parameter(base), "conjugate": turned, "negative": turned.imag}
    write_model(tmp_path / "m", kind="views", facts=MappingProxyType({}), tensors=MappingProxyType(tensors))
    back = read_model(tmp_path / "m").tensors
    assert back["tail"].tolist() == [3, 4, 5]
    assert back["tail"].untyped_storage().nbytes() == 12
    assert back["parameter"].tolist() == base.tolist()
    assert not back["parameter"].requires_grad
    assert back["conjugate"].tolist() == [1 - 2j, 3 + 4j]
    assert back["negative"].tolist() == [-2, 4]


def test_paths(file: Path, tmp_path: Path) -> None:
    write_model(str(tmp_path / "a" / "b"), kind="k", facts={}, tensors={})  # parents are made, text will do
    assert read_model(str(tmp_path / "a" / "b")).tensors == {}
    link = tmp_path / "a" / "link"
    link.symlink_to(file)
    write_model(link, kind="through the link", facts={}, tensors={})
    assert link.is_symlink()
    assert read_model(link).kind == read_model(file).kind == "through the link"


# What is refused in writing


def nested(levels: int) -> list[Any]:
    deep: list[Any] = []
    for _ in range(levels):
        deep = [deep]
    return deep


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"facts": {"a": [0, np.int64(1)]}},
            TypeError,
            r'`facts\["a"\]\[1\]` must be plain JSON .*; got int64.*\.item',
        ),
        ({"facts": {"a": np.float64(0.5)}}, TypeError, r'`facts\["a"\]` .* got float64'),  # a subclass of float
        ({"facts": {"a": {"b": (1, 2)}}}, TypeError, r'`facts\["a"\]\["b"\]` .* got tuple\. .*list\(\)'),
        ({"facts": {"a": torch.zeros(2)}}, TypeError, r'`facts\["a"\]` .* got Tensor\. .*`tensors`'),
        ({"facts": {"a": OrderedDict()}}, TypeError, r'`facts\["a"\]` .* got OrderedDict'),
        ({"facts": {"a": b"x"}}, TypeError, r'`facts\["a"\]` .* got bytes'),
        ({"facts": {"a": [{None: 1}]}}, TypeError, r'`a key of facts\["a"\]\[0\]` must be a str; got None, a NoneType'),
        ({"facts": {np.str_("a"): 1}}, TypeError, "`a key of facts` must be a str; .* a str_"),
        ({"facts": {"a": "\ud83d\ude00"}}, ValueError, r'`facts\["a"\]` must be text that UTF-8 can hold.*surrogates'),
        ({"facts": {"\ud800": 1}}, ValueError, "must be text that UTF-8 can hold"),
        ({"facts": {"a": 10**5000}}, ValueError, "limit .*digits"),
        ({"facts": {"a": nested(64)}}, ValueError, "must not be nested deeper than 64 levels, nor hold itself"),
        ({"facts": {"a": CYCLE}}, ValueError, "nor hold itself"),
        ({"facts": [1]}, TypeError, "`facts` must be a mapping .*; got list"),
        ({"kind": None}, TypeError, "`kind` must be a str; got None, a NoneType"),
        ({"kind": "\ud800"}, ValueError, "`kind` must be text"),
        ({"tensors": {"w": [1.0]}}, TypeError, r'`tensors\["w"\]` must be a torch.Tensor; got list'),
        ({"tensors": {1: torch.ones(1)}}, TypeError, "`a name in tensors` must be a str; got 1, a int"),
        ({"tensors": {"\ud800": torch.ones(2)}}, ValueError, "`a name in tensors` must be text"),
        ({"tensors": {"w": torch.eye(2).to_sparse()}}, ValueError, r'`tensors\["w"\]` must be dense .*to_dense'),
        ({"tensors": {"w": torch.empty(2, device="meta")}}, ValueError, r'`tensors\["w"\]` .* device meta'),
        ({"tensors": {"w": torch.ones(2, dtype=torch.complex128)}}, ValueError, r'`tensors\["w"\]` .*complex128'),
        ({"tensors": {"w": torch.empty(2, dtype=torch.float8_e8m0fnu)}}, ValueError, "float8_e8m0fnu"),
        ({"tensors": {"__metadata__": torch.ones(2)}}, ValueError, r'`tensors\["__metadata__"\]` must have a name'),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_arguments_touch_nothing(
    file: Path, tmp_path: Path, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    before = contents(tmp_path)
    for place in (file, tmp_path / "new" / "one"):
        with pytest.raises(error, match=message):
            write_model(place, **{"kind": "k", "facts": {}, "tensors": {}, **arguments})
    assert contents(tmp_path) == before
    assert os.listdir(tmp_path) == ["model"]


def test_a_header_that_could_not_be_read_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_file, "_LONGEST", 300)
    with pytest.raises(ValueError, match=r"must fit into 300 bytes; they take \d+\. Long lists of numbers go to"):
        write_model(file, kind="k", facts={"a": [1] * 200}, tensors={})


@pytest.mark.parametrize(
    ("occupy", "reason"),
    [
        (lambda place: place.write_text("mine, about the kofn-model"), "is another file"),
        (lambda place: place.touch(), "is another file"),
        (lambda place: torch.save({}, place), "is another file"),
        (lambda place: place.mkdir(), "is a folder"),
    ],
    ids=["text", "empty", "pickle", "folder"],
)
def test_what_is_not_ours_is_not_replaced(tmp_path: Path, occupy: Callable[[Path], None], reason: str) -> None:
    occupy(tmp_path / "place")
    before = contents(tmp_path)
    with pytest.raises(ValueError, match=f"place must be free or a kofn model; it {reason}.* Nothing was touched"):
        write_model(tmp_path / "place", kind="k", facts={}, tensors={})
    assert contents(tmp_path) == before
    assert os.listdir(tmp_path) == ["place"]


def test_a_damaged_model_of_ours_may_be_replaced(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:100])
    write_model(file, kind="k", facts={}, tensors={})
    assert read_model(file).kind == "k"


# Whole or not at all


def write_numbers(file: Path, numbers: range) -> None:
    torch.set_num_threads(1)
    for number in numbers:
        write_model(file, kind=str(number), facts={"n": number}, tensors={"n": torch.full((1000 + number,), number)})


@pytest.mark.slow
def test_a_reader_beside_a_writer_sees_one_whole_model(tmp_path: Path) -> None:
    """Files of different lengths, another process: there is no moment without a model, and none with half of two."""
    file = tmp_path / "model"
    write_numbers(file, range(1))
    writer = multiprocessing.get_context("spawn").Process(target=write_numbers, args=(file, range(1, 300)))
    writer.start()
    seen: list[int] = []
    while writer.is_alive() or not seen:
        model = read_model(file)
        number = int(model.kind)
        assert model.facts == {"n": number}
        assert torch.equal(model.tensors["n"], torch.full((1000 + number,), number))
        seen.append(number)
    writer.join()
    assert writer.exitcode == 0
    assert seen == sorted(seen)
    assert len(set(seen)) > 5
    assert os.listdir(tmp_path) == ["model"]
