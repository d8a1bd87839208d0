"""Whatever is wrong with a model file, the reader says so: damage of any byte, other formats, kinds, forged headers."""

from __future__ import annotations

import json
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_file_cases import crafted, document, forge, saved, sealed

from kofn._io.model_file import read_model, write_model


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return saved(tmp_path / "model")


def test_what_is_no_file(file: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere must be a file .*; there is none\. Check"):
        read_model(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r" must be a file .* is a folder .*fit such a model again"):
        read_model(tmp_path)
    if os.name == "posix":
        with pytest.raises(ValueError, match=r"zero must be a file .* is a folder or a device"):
            read_model("/dev/zero")


@pytest.mark.parametrize("data", [b"", b"a,b\n1,2\n" * 99, b"kofn-model", pickle.dumps({}), (2).to_bytes(8, "little")])
def test_other_files(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    with pytest.raises(ValueError, match=r"model must be a file .* is none, or its first bytes are altered"):
        read_model(file)


def test_any_altered_byte_is_found(file: Path) -> None:
    whole = file.read_bytes()
    for at in range(len(whole)):
        for flip in (0x01, 0x20, 0x80):  # 0x20 turns e to E: the same number, another byte
            file.write_bytes(whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :])
            with pytest.raises(ValueError, match="model "):
                read_model(file)
    file.write_bytes(whole)
    assert read_model(file).kind == "LLPClassifier"


def test_any_truncation_or_growth_is_found(file: Path) -> None:
    whole = file.read_bytes()
    for data in [whole[:length] for length in range(len(whole))] + [whole + b"\n", whole + b"\0", whole + whole]:
        file.write_bytes(data)
        with pytest.raises(ValueError, match="model "):
            read_model(file)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 3, "kofn": "3.1"}, "written by kofn 3.1, format version 3; this kofn reads up to 2: upgrade kofn"),
        ({"version": 1}, "must be as kofn wrote it"),
        ({"version": "2"}, "must be as kofn wrote it"),
        ({"version": ...}, "must have a header as kofn writes it"),
        ({"sha256": ...}, "must have a header as kofn writes it"),
        ({"sha256": ""}, "must be as kofn wrote it"),
        ({"sha256": 1}, "must have a header as kofn writes it"),
        ({"format": "kofn-modem", "kind": "kofn-model"}, "must be as kofn wrote it"),
        ({"kind": ...}, "must have a kind, versions and facts"),
        ({"kind": 3}, "must have a kind, versions and facts"),
        ({"torch": ...}, "must have a kind, versions and facts"),
        ({"facts": []}, "must have a kind, versions and facts"),
    ],
    ids=str,
)
def test_documents_that_are_none(file: Path, changes: dict[str, object], message: str) -> None:
    forge(file, **changes)
    with pytest.raises(ValueError, match=message):
        read_model(file)


def test_kinds(file: Path) -> None:
    assert read_model(file, kind=["MILClassifier", "LLPClassifier"]).kind == "LLPClassifier"
    with pytest.raises(
        ValueError, match=r"of kind 'PUClassifier'; it holds one of kind 'LLPClassifier' \(written by kofn"
    ):
        read_model(file, kind="PUClassifier")
    with pytest.raises(ValueError, match=r"of kind 'A' or 'B'; .* 'LLPClassifier'"):
        read_model(file, kind=("A", "B"))
    with pytest.raises(ValueError, match="of kind 'LLP'"):  # a part of the name will not do
        read_model(file, kind="LLP")


# Forged files, whose digest is right


@contextmanager
def little_memory(megabytes: int = 100) -> Iterator[None]:
    """Let the process have little more memory than it has, used or not: an attempt at more is an error."""
    if sys.platform != "linux":  # others do not keep this limit
        yield
        return
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (megabytes << 20), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_little_memory_is_little() -> None:
    if sys.platform == "linux":
        with little_memory(), pytest.raises(RuntimeError, match="alloc"):
            torch.empty(1 << 30)


def header(text: str) -> bytes:
    return sealed(text.encode())


META = f'"__metadata__":{{"kofn":{json.dumps(document())}}}'
DEEP = 100_000

FORGED = {
    "a header longer than the file": (2**63).to_bytes(8, "little") + header(f"{{{META}}}")[8:],
    "a header one byte longer than the file": sealed(f"{{{META}}}".encode())[:-1],
    "no end": header(f"{{{META}"),
    "deep lists": header(f'{{{META},"w":' + "[" * DEEP),
    "deep dicts": header(f'{{{META},"w":' + '{"a":' * DEEP),
    "a deep document": header(
        '{"__metadata__":{"kofn":"{\\"format\\": \\"kofn-model\\", \\"a\\": ' + "[" * DEEP + '"}}'
    ),
    "a document that is a list": header('{"__metadata__":{"kofn":"[\\"kofn-model\\"]"}}'),
    "a document that is no text": header('{"__metadata__":{"kofn":["\\"kofn-model\\""]}}'),
    "no document": header('{"__metadata__":{"other":"\\"kofn-model\\""}}'),
    "metadata twice": header(f"{{{META},{META}}}"),
    "a number of 10000 digits": crafted('"w":{"dtype":"F32","shape":[' + "9" * 10000 + '],"data_offsets":[0,0]}'),
    "a name twice": crafted(
        '"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}',
        bytes(4),
    ),
    "overlap": crafted(
        '"v":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"w":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}',
        bytes(12),
    ),
    "one place for two": crafted(
        '"v":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}',
        bytes(8),
    ),
    "a hole": crafted('"w":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}', bytes(12)),
    "a tail": crafted('"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}', bytes(12)),
    "too few bytes": crafted('"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}', bytes(4)),
    "backwards": crafted('"w":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}', bytes(8)),
    "a negative shape": crafted('"w":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}', bytes(8)),
    "a terabyte": crafted('"w":{"dtype":"U8","shape":[1099511627776],"data_offsets":[0,8]}', bytes(8)),
    "a terabyte of nothing": crafted('"w":{"dtype":"U8","shape":[1099511627776],"data_offsets":[0,1099511627776]}'),
    "sizes that wrap around": crafted('"w":{"dtype":"U8","shape":[9223372036854775808,2],"data_offsets":[0,0]}'),
    "none of very many": crafted('"w":{"dtype":"F32","shape":[0,18446744073709551615],"data_offsets":[0,0]}'),
    "none of many by many": crafted('"w":{"dtype":"F32","shape":[0,9999999999,9999999999],"data_offsets":[0,0]}'),
    "an unknown dtype": crafted('"w":{"dtype":"NO","shape":[2],"data_offsets":[0,8]}', bytes(8)),
    "a dtype that torch lacks": crafted('"w":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}', bytes(1)),
    "no dtype": crafted('"w":{"shape":[2],"data_offsets":[0,8]}', bytes(8)),
    "a pickle": crafted('"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}', pickle.dumps([0] * 20)),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_files_are_refused_at_no_cost(file: Path, name: str) -> None:
    file.write_bytes(FORGED[name])
    with (
        little_memory(),
        pytest.raises(
            ValueError, match=r"model must (have|be) .* (Copy the file again|save the model again)"
        ) as raised,
    ):
        read_model(file)
    assert "alloc" not in str(raised.value)  # it was not tried


def test_a_forged_file_that_says_nothing_wrong_is_read(file: Path) -> None:
    file.write_bytes(crafted('"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}', bytes(8)))
    assert read_model(file).tensors["w"].tolist() == [0, 0]


NUMBERS = st.integers(-1, 20) | st.sampled_from([2**31, 2**32, 2**62, 2**63, 2**64 - 1, 2**64])


@given(
    st.lists(
        st.tuples(st.sampled_from(["F32", "U8", "BOOL", "C64", "F4"]), st.lists(NUMBERS, max_size=4), NUMBERS, NUMBERS),
        max_size=3,
    ),
    st.integers(0, 24),
)
def test_headers_of_any_numbers_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, tensors: list[tuple[str, list[int], int, int]], size: int
) -> None:
    file = tmp_path_factory.getbasetemp() / "forged"
    fields = {f"t{i}": {"dtype": t[0], "shape": t[1], "data_offsets": list(t[2:])} for i, t in enumerate(tensors)}
    file.write_bytes(
        crafted(json.dumps({"": 0, **fields})[1:-1].removeprefix('"": 0, ') if fields else "", bytes(size))
    )
    try:
        model = read_model(file)
    except ValueError as error:
        assert str(file) in str(error)  # noqa: PT017  # either way is well
    else:
        assert sum(tensor.nbytes for tensor in model.tensors.values()) == size


class Bomb:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Path.touch, (self.file,)


def test_a_pickle_is_not_run(file: Path, tmp_path: Path) -> None:
    bomb = pickle.dumps(Bomb(tmp_path / "boom"))
    torch.save({"w": Bomb(tmp_path / "boom")}, tmp_path / "w.pt")
    fields = f'"w":{{"dtype":"U8","shape":[{len(bomb)}],"data_offsets":[0,{len(bomb)}]}}'
    for data in (bomb, (tmp_path / "w.pt").read_bytes()):
        file.write_bytes(data)
        with pytest.raises(ValueError, match="is none, or its first bytes"):
            read_model(file)
    file.write_bytes(crafted(fields, bomb))
    assert bytes(read_model(file).tensors["w"].tolist()) == bomb
    assert not (tmp_path / "boom").exists()
    pickle.loads(bomb)  # it was live
    assert (tmp_path / "boom").exists()


def test_safetensors_is_an_extra(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with pytest.raises(ImportError, match=r"This needs safetensors, which is not installed: pip install kofn\[train\]"):
        read_model(file)
    with pytest.raises(ImportError, match=r"pip install kofn\[train\]"):
        write_model(file, kind="k", facts={}, tensors={})
