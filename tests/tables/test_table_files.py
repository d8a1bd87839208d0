"""Tables on disk: columns before rows, chunks, and every way in which a file can be bad."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest

from kofn.tables import TableFile, TableWarning, check_output, write_table
from kofn.tables._reading import encode_table, learn_columns, read_metadata

FRAME = pd.DataFrame({"bag": ["a", "a", "b"], "x": [1.5, 2.5, 3.5], "c": ["u", None, "v"]})


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.parquet"])
def test_round_trip(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    chunks = [{k: FRAME[k].to_numpy() for k in FRAME}, {k: FRAME[k].to_numpy()[:1] for k in FRAME}]
    assert write_table(path, chunks) == 4
    file = TableFile(path)
    assert file.columns == ["bag", "x", "c"]
    read = pd.concat(file.chunks(["x", "c"], text=["c"], rows=2), ignore_index=True)
    assert list(read) == ["x", "c"]
    assert read["x"].tolist() == [1.5, 2.5, 3.5, 1.5]
    assert read["c"].fillna("-").tolist() == ["u", "-", "v", "u"]
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_header_is_checked_before_anything_else_is_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.csv"
    path.write_text("county,share,x\n" + "broken,too,many,fields,here\n" * 10)
    with pytest.raises(
        ValueError, match=r"huge.csv has no column 'shares'. Did you mean 'share'\? Its columns are: county"
    ):
        TableFile(path).require_columns("county", "shares")
    with pytest.raises(ValueError, match=r"huge.csv cannot be read as CSV: rows have more fields"):
        list(TableFile(path).chunks(["x"]))
    path.write_text("county,share,x\n1,2,3\n" + "broken,too,many,fields,here\n" * 10)
    with pytest.raises(ValueError, match=r"huge.csv cannot be read as CSV: .*line 3"):
        list(TableFile(path).chunks(["x"]))


def test_names_with_and_without_commas(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('"low, high",a,b\n1,2,3\n')
    file = TableFile(path)
    assert file.parse_columns("a, b") == ["a", "b"]
    assert file.parse_columns("low, high") == ["low, high"]


def test_missing_file_names_a_similar_one(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("a\n1\n")
    with pytest.raises(FileNotFoundError, match=r"vote.csv: there is no such file; .*votes.csv is there"):
        TableFile(tmp_path / "vote.csv")
    with pytest.raises(FileNotFoundError, match=r"there is no such file. Check the path"):
        TableFile(tmp_path / "nowhere" / "x.csv")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "t.csv is empty"),
        ("t.parquet", b"", "t.parquet is empty"),
        ("t.parquet", b"not parquet at all", "cannot be read as Parquet"),
        ("t.csv.gz", b"not gzip", "cannot be read as CSV"),
        ("t.csv", b"\xff\xfe\x00a\n", "must be text in UTF-8; byte 0 is not.*iconv -f WINDOWS-1252 -t UTF-8 .*t.csv"),
        ("t.csv", b"bag;x\na;1,5\n", r"fields with ';' between them.*sep=.;., decimal=.,."),
        ("t.csv", b"bag\tx\na\t1.5\n", r"fields with '\\t' between them"),
        ("t.xlsx", b"x", "must end in .csv"),
        ("t.parquet.gz", b"x", "must end in .csv"),
    ],
    ids=[
        "empty-csv",
        "empty-parquet",
        "no-parquet",
        "no-gzip",
        "no-utf8",
        "semicolons",
        "tabs",
        "excel",
        "packed-parquet",
    ],
)
def test_files_that_are_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        TableFile(tmp_path / name)


def test_a_folder_and_a_header_alone(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match="is a folder"):
        TableFile(tmp_path / "folder.csv")
    (tmp_path / "t.csv").write_text("a,b\n")
    file = TableFile(tmp_path / "t.csv")
    assert file.text_columns(["a"]) == set()
    with pytest.raises(ValueError, match="has a header and no rows"):
        list(file.chunks(["a"]))


def test_text_deep_in_a_column_of_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kofn.tables._table_file.GUESS", 2)
    path = tmp_path / "t.csv"
    path.write_text("x,c,b\n" + "1,007,True\n2,8,TRUE\n3,9,\n4,none,True\n")
    file = TableFile(path)
    columns = learn_columns(file, ["x", "c", "b"], max_categories=10)
    assert columns.numeric == ["x"]
    assert columns.categories == {"c": ["007", "8", "9", "none"], "b": ["TRUE", "True"]}
    encoded = encode_table(file, columns, rows=4)
    assert encoded.columns is columns
    expected = [[1, 0, 1], [2, 1, 0], [3, 2, np.nan], [4, 3, 1]]
    np.testing.assert_array_equal(encoded.values, np.array(expected, np.float32))


def test_side_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_text("bag,y\n01,1\n1,0\n01,1\n2,0\n")
    metadata = read_metadata(TableFile(path), "bag", ["y"])
    assert metadata.bag_names == ["01", "1", "2"]  # as they stand in the file
    assert metadata.bag_of is not None
    assert metadata.bag_of.tolist() == [0, 1, 0, 2]
    assert (metadata.sizes.tolist(), metadata.first_rows.tolist(), metadata.rows) == ([2, 1, 1], [0, 1, 3], 4)
    path.write_text("bag,y\n1,1\n,0\n")
    with pytest.raises(ValueError, match="column 'bag': row 2 has no bag"):
        read_metadata(TableFile(path), "bag", [])
    with pytest.raises(ValueError, match="no bags"):
        _ = read_metadata(TableFile(path), None, ["y"]).sizes


def test_output_is_checked_and_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_text("old\n")

    def breaks() -> object:
        yield {"a": np.arange(3)}
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        write_table(target, breaks())  # type: ignore[arg-type]  # a stream that breaks, typed as any
    assert target.read_text() == "old\n"
    assert [p.name for p in tmp_path.iterdir()] == ["out.csv"]
    assert write_table(tmp_path / "made" / "too" / "out.csv", [{"a": np.arange(3)}]) == 3
    with pytest.raises(ValueError, match=r"must end in .csv"):
        check_output(tmp_path / "out.txt")
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(ValueError, match="is a folder"):
        check_output(tmp_path / "d.csv")


def test_packed_output_is_packed(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv.gz", [{"a": np.array([1])}, {"a": np.array([2])}])
    assert gzip.decompress((tmp_path / "t.csv.gz").read_bytes()) == b"a\n1\n2\n"


def test_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("bag,x,x\na,1,2\n")
    with pytest.raises(ValueError, match=r"t.csv has two columns named 'x'. Rename one"):
        TableFile(tmp_path / "t.csv")
    frame = pd.DataFrame([[1, 2, 3]], columns=["bag", "x", "x"])
    table = pyarrow.Table.from_arrays([pyarrow.array(frame.iloc[:, i]) for i in range(3)], names=list(frame))
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"t.parquet has two columns named 'x'. Rename one"):
        TableFile(tmp_path / "t.parquet")
    (tmp_path / "blank.csv").write_text(",x,\n0,1,2\n")  # as pandas calls them
    assert TableFile(tmp_path / "blank.csv").columns == ["Unnamed: 0", "x", "Unnamed: 2"]


def test_lists_are_no_bags(tmp_path: Path) -> None:
    pd.DataFrame({"bag": [[1, 2], [1, 2]], "x": [1.0, 2.0]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(
        ValueError, match=r"t.parquet, column 'bag' must name bags by text or numbers; row 1 has .*array"
    ):
        read_metadata(TableFile(tmp_path / "t.parquet"), "bag")


def test_a_file_that_is_cut_off_says_so(tmp_path: Path) -> None:
    packed = gzip.compress(FRAME.to_csv(index=False).encode())
    (tmp_path / "t.csv.gz").write_bytes(packed[:-12])
    with pytest.raises(ValueError, match=r"t.csv.gz is cut off or damaged: .*Copy or download it again.*gzip -t"):
        list(TableFile(tmp_path / "t.csv.gz").chunks(["x"]))


FORMULAS = ["=1+1", "+49 30", "-1", "-x", "@home", "'=1", "'", "it's", "\tx", "-1.5e3", "plain"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.parquet"])
def test_text_that_a_spreadsheet_would_run(tmp_path: Path, name: str) -> None:
    """What is written is what kofn reads; a spreadsheet finds an apostrophe, pandas can take it away."""
    names = np.array([text for text in FORMULAS if not (name == "t.tsv" and "\t" in text)], dtype=object)
    table = {"=bag": names, "x": -np.arange(float(len(names)))}
    if name == "t.parquet":
        write_table(tmp_path / name, [table])
    else:
        with pytest.warns(TableWarning, match=rf"{name}: \d texts begin with =.*formula.*kofn reads them without it"):
            write_table(tmp_path / name, [table])
    file = TableFile(tmp_path / name)
    assert file.columns == ["=bag", "x"]
    assert read_metadata(file, "=bag").bag_names == names.tolist()
    assert next(iter(file.chunks(["x"])))["x"].tolist() == table["x"].tolist()
    if name == "t.csv":
        raw = pd.read_csv(tmp_path / name)
        assert raw["'=bag"].tolist()[:4] == ["'=1+1", "'+49 30", "-1", "'-x"]
        assert raw["'=bag"].str.replace(r"^'(?='*[=+@\t\r-])", "", regex=True).tolist() == names.tolist()


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz"])
def test_a_carriage_return_ends_no_line(tmp_path: Path, name: str) -> None:
    """Nor does what follows it begin one, which a spreadsheet would run."""
    texts = ["x\r=cmd|'/C calc'!A1", "a\r\nb", "plain", "\r", ",\r"]
    written: dict[str, list[Any]] = {"bag\rname": texts, "n": [1, 2, 3, 4, 5], "p": [0.5, np.nan, 1.0, 0.25, 1e-300]}
    with pytest.warns(TableWarning, match="begin with ="):
        write_table(tmp_path / name, [written, written])
    sign = "\t" if name == "t.tsv" else ","
    with (gzip.open if name.endswith("gz") else open)(tmp_path / name, "rt", newline="") as file:
        rows = list(csv.reader(file, delimiter=sign))
    assert [len(row) for row in rows] == [3] * 11
    file_ = TableFile(tmp_path / name)
    (frame,) = file_.chunks(file_.columns, text=["bag\rname"])
    assert frame["bag\rname"].tolist() == texts + texts
    np.testing.assert_array_equal(frame["p"], written["p"] * 2)


def test_texts_without_a_carriage_return_are_written_plainly(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", [{"bag": ["a", "b\nc"], "n": [1, 2]}])
    assert (tmp_path / "t.csv").read_text() == 'bag,n\na,1\n"b\nc",2\n'
