"""Tables written chunk by chunk, which appear whole or not at all."""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kofn import _require
from kofn._io.atomic_write import atomic_write
from kofn.tables._formula_text import guarded_frame
from kofn.tables._table_file import separator
from kofn.tables._table_warning import TableWarning


def check_output(path: str | os.PathLike[str]) -> Path:
    """The file that may be written: of a known kind, and no folder. Folders above it are made when it is written.

    Raises:
        ValueError: it may not.

    Examples:
        >>> from kofn.tables import check_output
        >>> check_output("rows.csv").name
        'rows.csv'
        >>> check_output("rows.xlsx")
        Traceback (most recent call last):
        ValueError: rows.xlsx must end in .csv, .tsv (also .gz) or .parquet, which says what kind of table it is.
    """
    target = Path(path)
    separator(target)
    if target.is_dir():
        raise ValueError(f"{target} is a folder; the table is written to a file. Name one in it.")
    return target


def write_table(path: str | os.PathLike[str], chunks: Iterable[Mapping[str, Any]]) -> int:
    """Write chunks of columns as CSV or Parquet, by the extension; returns the number of rows.

    All is written to a hidden file beside `path`, which then takes its place: an error leaves what was there. Text that
    a spreadsheet would run as a formula gets an apostrophe in CSV, which `TableFile` takes away again, and a warning.

    Args:
        path: the file.
        chunks: dicts from names to arrays of one length.
    """
    pandas = _require.package("pandas", extra="train")
    target = check_output(path)
    delimiter = separator(target)
    rows = 0
    with atomic_write(target) as part:
        frames = (pandas.DataFrame(dict(chunk)) for chunk in chunks)
        if delimiter is None:
            rows = _parquet(part, frames)
        else:
            guards = 0
            for frame in frames:
                safe, changed = guarded_frame(frame)
                quoting = _quoting(safe)
                safe.to_csv(part, mode="a", sep=delimiter, index=False, header=not rows, quoting=quoting)
                rows, guards = rows + len(frame), guards + changed
            if guards:
                warnings.warn(
                    f"{target}: {guards:,} texts begin with =, +, - or @, which a spreadsheet would run as a formula; "
                    f"they are written with an apostrophe before. kofn reads them without it; Parquet has them as "
                    f"they are.",
                    TableWarning,
                    stacklevel=2,
                )
    return rows


def _quoting(frame: Any) -> int:
    """How texts of a CSV are quoted: where one has a carriage return, which ends a line for many readers, all are.

    The writer quotes a text with a line feed, but not one with a carriage return alone.
    """
    texts = [frame.columns, *(column for _, column in frame.items() if column.dtype.kind not in "iufbmM")]
    returns = any("\r" in value for column in texts for value in column if isinstance(value, str))
    return csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL


def _parquet(path: Path, frames: Iterable[Any]) -> int:
    arrow, parquet = _require.package("pyarrow", extra="train"), _require.package("pyarrow.parquet", extra="train")
    writer, rows = None, 0
    try:
        for frame in frames:
            schema = None if writer is None else writer.schema
            table = arrow.Table.from_pandas(frame, schema=schema, preserve_index=False)
            writer = writer or parquet.ParquetWriter(path, table.schema, write_page_checksum=True)
            writer.write_table(table)
            rows += len(frame)
    finally:
        if writer is not None:
            writer.close()
    return rows
