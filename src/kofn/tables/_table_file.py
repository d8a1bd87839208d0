"""Tables on disk, CSV and Parquet: their columns at once, their rows in chunks."""

from __future__ import annotations

import csv
import difflib
import gzip
import json
import os
import re
import shlex
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kofn import _require
from kofn.estimators._columns import NotNumbersError
from kofn.tables._formula_text import is_guarded, unguarded, unguarded_column

CHUNK = 65536  # rows in memory beside the encoded matrix
GUESS = 10000  # rows of a CSV from which the types of its columns are first guessed

SUFFIXES = {".csv": ",", ".tsv": "\t", ".parquet": None, ".pq": None}
PACKED = (".gz",)
# Where pandas keeps row numbers that have no name. As a feature they would tell the order of the rows.
UNNAMED_INDEX = re.compile(r"__index_level_\d+__")


class TableError(ValueError):
    """A table that cannot be read; the message names its file."""


class TableFile:
    """A CSV or Parquet file, or a folder of Parquet files, whose columns are known and whose rows are not yet read.

    Args:
        path: by its extension a CSV (.csv, .tsv, also packed as .csv.gz) or Parquet file (.parquet, .pq); or a folder,
            whose Parquet files are one table, in the order of their names.

    Attributes:
        path: as given.
        columns: names of its columns.

    Raises:
        FileNotFoundError: no such file.
        ValueError: another extension; an empty or broken file; a CSV without commas; two columns of one name; a folder
            without Parquet files, or of files with different columns.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._parts = parquet_files(self.path) if self.path.is_dir() else [self.path]
        self.separator = separator(self._parts[0])
        if not self.path.exists():
            raise FileNotFoundError(f"{self.path}: there is no such file{_similar_file(self.path)}. Check the path.")
        for part in self._parts:
            if not part.stat().st_size:
                raise TableError(f"{part} is empty. It needs a header and rows.")
        self.columns = self._columns(self._parts[0])
        for part in self._parts[1:]:
            self._require_same_columns(part)
        twice = [name for name, times in Counter(self.columns).items() if times > 1]
        if twice:
            raise TableError(f"{self.path} has two columns named {twice[0]!r}. Rename one of them.")
        other = next((sign for sign in ";\t|" if self.separator == "," and sign in "".join(self.columns[:1])), None)
        if other is not None and len(self.columns) == 1:
            read = f'pandas.read_csv({_literal(str(self.path))}, sep={_literal(other)}, decimal=",")'
            script = f'import pandas; {read}.to_csv("converted.csv", index=False)'
            raise TableError(
                f"{self.path} has fields with {other!r} between them; a .csv has commas. Convert it once: python -c "
                f"{shlex.quote(script)} (leave decimal out if numbers have a point)."
            )

    def _require_same_columns(self, part: Path) -> None:
        """Require that a file of a folder has the columns of the first; their order does not matter."""
        other = self._columns(part)
        for name in sorted({*self.columns} ^ {*other}):
            has, lacks = (part, self._parts[0]) if name in other else (self._parts[0], part)
            raise TableError(
                f"{self.path}: all files must have the same columns; {has.name} has {name!r}, {lacks.name} has not. "
                f"Leave the column, or the file, out of the folder."
            )

    def require_columns(self, *names: str) -> None:
        """Require that the columns are there; nothing but the header is read for it."""
        there = set(self.columns)  # which may be thousands
        for name in names:
            if name not in there:
                more = f" and {len(self.columns) - 12} more" if len(self.columns) > 12 else ""
                shown = ", ".join(self.columns[:12]) + more
                close = difflib.get_close_matches(name, self.columns, n=1)
                cure = f"Did you mean {close[0]!r}?" if close else "Check the name."
                raise TableError(f"{self.path} has no column {name!r}. {cure} Its columns are: {shown}.")

    @property
    def rows(self) -> int | None:
        """How many there are, as Parquet files say; of a CSV it is not known before all are read."""
        if self.separator is not None:
            return None
        parquet, found = _require.package("pyarrow.parquet", extra="train"), 0
        for part in self._parts:
            with self._readable(part):
                found += parquet.read_metadata(part).num_rows
        return found

    def split_names(self, text: str) -> list[str]:
        """Names from a list with commas; a column whose own name has a comma is itself."""
        return [text] if text in self.columns else [name.strip() for name in text.split(",") if name.strip()]

    def parse_columns(self, text: str) -> list[str]:
        """The columns of a list with commas, all of which must be there."""
        names = self.split_names(text) or [text]  # of no name at all it says that there is no such column
        self.require_columns(*names)
        return names

    def text_columns(self, columns: Sequence[str]) -> set[str]:
        """Columns of a CSV that are text by its first rows; of Parquet none: its types are known."""
        if self.separator is None:
            return set()
        with self._readable(self.path):
            head = next(self._csv(columns, (), GUESS), None)
        if head is None or not len(head):
            return set()
        return {name for name, dtype in head.dtypes.items() if dtype.kind not in "iuf"}

    def chunks(self, columns: Sequence[str], *, text: Collection[str] = (), rows: int = CHUNK) -> Iterator[Any]:
        """The rows as DataFrames of these columns, some rows at a time.

        Args:
            columns: the only ones that are kept.
            text: those that a CSV is to give as text, as they stand there.
            rows: in a chunk.

        Raises:
            NotNumbersError: a column of a CSV that is not in `text` and neither is all numbers.
            ValueError: a broken file; one without rows.
        """
        some = False
        for part in self._parts:
            with self._readable(part):
                of_csv = self.separator is not None
                for frame in self._csv(columns, text, rows) if of_csv else self._parquet(part, columns, rows):
                    if not len(frame):  # its columns have no type yet
                        continue
                    some = True
                    if of_csv:
                        _all_numbers(frame, [name for name in columns if name not in text])
                    yield frame
        if not some:
            raise TableError(f"{self.path} has a header and no rows. There is nothing to read.")

    def _columns(self, part: Path) -> list[str]:
        with self._readable(part):
            if self.separator is None:
                names = _require.package("pyarrow.parquet", extra="train").read_schema(part).names
                return [name for name in names if not UNNAMED_INDEX.fullmatch(name)]
            # Not by pandas, which would give two columns of one name two names.
            unpacked = gzip.open if self.path.suffix in PACKED else open
            with unpacked(self.path, "rt", encoding="utf-8-sig", newline="") as text:
                lines = csv.reader(text, delimiter=self.separator)
                header = next((row for row in lines if len(row) > 1 or "".join(row).strip()), None)
            if header is None:
                raise ValueError("all its lines are empty")
            return [unguarded(name) or f"Unnamed: {place}" for place, name in enumerate(header)]

    def _parquet(self, part: Path, columns: Sequence[str], rows: int) -> Iterator[Any]:
        # Without pre-buffering, which would hold the whole file; buffers of one row group are enough.
        options = {"pre_buffer": False, "page_checksum_verification": True}
        with _require.package("pyarrow.parquet", extra="train").ParquetFile(part, **options) as file:
            seen = 0
            for batch in file.iter_batches(batch_size=rows, columns=list(columns)):
                batch.validate(full=True)
                seen += len(batch)
                yield batch.to_pandas(ignore_metadata=True)[list(columns)]  # an index that pandas wrote is a column
            if seen != file.metadata.num_rows:
                raise ValueError(f"it has {seen} rows and says that it has {file.metadata.num_rows}")

    def _csv(self, columns: Sequence[str], text: Collection[str], rows: int) -> Iterator[Any]:
        pandas = _require.package("pandas", extra="train")
        as_text = [name for name in columns if name in set(text)]
        # No `usecols`: with it pandas cuts rows with too many fields in silence. The others are gone with their chunk.
        reader = pandas.read_csv(
            self.path,
            sep=self.separator,
            header=0,
            names=self.columns,
            dtype=dict.fromkeys(as_text, str),
            chunksize=rows,
            low_memory=False,  # one type for a column in a chunk
        )
        with reader:
            for frame in reader:
                if not isinstance(frame.index, pandas.RangeIndex):  # pandas would take the first fields for names
                    raise ValueError("rows have more fields than the header has names")
                kept = frame[list(columns)]
                yield kept.assign(**{name: unguarded_column(kept[name]) for name in as_text if is_guarded(kept[name])})

    @contextmanager
    def _readable(self, part: Path) -> Iterator[None]:
        """Errors of the parsers name the file and the cure, whatever a damaged file makes them raise."""
        try:
            yield
        except (NotNumbersError, FileNotFoundError, ImportError):
            raise
        except UnicodeDecodeError as error:
            if self.separator is None:
                raise TableError(f"{part} cannot be read as Parquet: {error}. Check the file.") from error
            raise TableError(
                f"{part} must be text in UTF-8; byte {error.start} is not. Convert it once, of a Windows program "
                f"most likely so: iconv -f WINDOWS-1252 -t UTF-8 {shlex.quote(str(part))} > converted.csv"
            ) from None
        except (EOFError, zlib.error) as error:
            raise TableError(
                f"{part} is cut off or damaged: {error}. Copy or download it again, and test it: gzip -t "
                f"{shlex.quote(str(part))}"
            ) from error
        except Exception as error:
            kind = "Parquet" if self.separator is None else "CSV"
            reason = " ".join(str(error).split()).rstrip(".")
            raise TableError(f"{part} cannot be read as {kind}: {reason}. Check the file.") from error


def _literal(text: str) -> str:
    """A text as Python writes it, in the quotation marks that a shell leaves alone between its own."""
    return json.dumps(text, ensure_ascii=False)


def _all_numbers(frame: Any, columns: Sequence[str]) -> None:
    # Truth values are text too: True and TRUE are one truth value, and would be two categories where one is missing.
    kinds = dict(zip(frame.columns, (dtype.kind for dtype in frame.dtypes), strict=True))
    for name in columns:
        if kinds[name] not in "iuf":
            raise NotNumbersError(name)


def separator(path: Path) -> str | None:
    """What is between the fields of a CSV of this name; None for Parquet.

    Raises:
        ValueError: another extension.
    """
    plain = path.with_suffix("") if path.suffix in PACKED else path
    suffix = plain.suffix.lower()
    if suffix not in SUFFIXES or (path.suffix in PACKED and SUFFIXES[suffix] is None):
        raise ValueError(f"{path} must end in .csv, .tsv (also .gz) or .parquet, which says what kind of table it is.")
    return SUFFIXES[suffix]


def parquet_files(folder: Path) -> list[Path]:
    """The Parquet files of a folder by name, without what is hidden or begins with an underscore.

    Raises:
        ValueError: there is none.
    """
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name[0] not in "._")
    found = [path for path in files if SUFFIXES.get(path.suffix.lower(), "") is None]
    if not found:
        raise TableError(
            f"{folder} is a folder without Parquet files. A table is a file, or a folder whose files end in .parquet."
        )
    return found


def _similar_file(path: Path) -> str:
    """A file of a similar name in the same folder."""
    try:
        others = [name for name in os.listdir(path.parent) if name != path.name]  # which may be a link to nowhere
        close = difflib.get_close_matches(path.name, others, n=1)
    except OSError:
        return ""
    return f"; {path.with_name(close[0])} is there" if close else ""
