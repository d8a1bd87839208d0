"""Records on disk: a file each while a grid runs, one sorted file a table when it is done."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kofn._io.atomic_write import atomic_write
from paper.cells import METHODS, TABLES, Run
from paper.whole_recipe import state

RESULTS = Path(__file__).parent / "results"
KEYS = ("table", "cell", "method", "preset", "seed", "metrics", "seconds", "versions", "machine")
# None in records that are older than these keys; the hash, in those that are older than the training loop of today.
LATER = ("cpu_seconds", "recipe", "recipe_hash", "commit")


def record_path(results: str | os.PathLike[str], run: Run) -> Path:
    """The file of a run's record."""
    return Path(results) / "records" / run.table / f"{run.name}.json"


def write(results: str | os.PathLike[str], run: Run, record: Mapping[str, Any]) -> Path:
    """Put a record into its file, whole or not at all."""
    path = record_path(results, run)
    _replace(path, json.dumps(record, indent=1, allow_nan=False) + "\n")
    return path


def read(path: Path) -> dict[str, Any] | None:
    """A record, or None if there is none or the file is no whole record."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    whole = isinstance(record, dict) and all(key in record for key in KEYS) and record["table"] in TABLES
    return record if whole else None


def collect(results: str | os.PathLike[str] = RESULTS) -> list[Path]:
    """Gather the files of each table's folder into ``TABLE.jsonl``, one sorted line a record.

    A table without a folder of records is left as it is; files that are no whole record are left out.

    Args:
        results: the folder that holds ``records/TABLE/*.json``.

    Returns:
        The files written.

    Examples:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from paper.cells import runs
        >>> from paper.grid import run_grid
        >>> from paper.records import collect, load_records
        >>> here = TemporaryDirectory()
        >>> wanted = runs("figures", only=["figure=dynamic-programming"], seeds=1)
        >>> [path.name for path in run_grid(wanted, results=here.name, progress=False)]
        ['dynamic-programming_CL_fast_0.json']
        >>> [path.name for path in collect(here.name)]
        ['figures.jsonl']
        >>> [record["method"] for record in load_records(here.name, "figures")]
        ['CL']
        >>> run_grid(wanted, results=here.name, progress=False)  # recorded, so not run again
        []
        >>> here.cleanup()
    """
    written = []
    for table in TABLES:
        folder = Path(results) / "records" / table
        if not folder.is_dir():
            continue
        records = [record for path in sorted(folder.glob("*.json")) if (record := read(path)) is not None]
        lines = [
            json.dumps({key: record.get(key) for key in KEYS + LATER}, allow_nan=False)
            for record in sorted(records, key=_order)
        ]
        written.append(Path(results) / f"{table}.jsonl")
        _replace(written[-1], "".join(line + "\n" for line in lines))
    return written


def load_records(results: str | os.PathLike[str], table: str) -> list[dict[str, Any]]:
    """The records of a table's jsonl file, none if there is no file.

    Raises:
        ValueError: a line that is no record.
    """
    path = Path(results) / f"{table}.jsonl"
    if not path.exists():
        return []
    records = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            record = json.loads(line)
            missing = [key for key in KEYS if key not in record]
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}, line {number}, is no record ({error}). Delete the line.") from None
        if missing:
            raise ValueError(f"{path}, line {number}, lacks {', '.join(missing)}. Delete the line.")
        records.append(record)
    return records


def restore(results: str | os.PathLike[str], table: str) -> None:
    """Bring the lines of a table's jsonl file, as a checkout or a pull left it, into the folder of records.

    A file that is there stays, unless it is no whole record or has another recipe than today's: then the line is newer.
    """
    for record in load_records(results, table):
        path = record_path(results, Run(*(record[key] for key in ("table", "cell", "method", "preset", "seed"))))
        kept = read(path)
        if kept is None or kept.get("recipe") is None or state(kept) == "stale":
            _replace(path, json.dumps(record, indent=1) + "\n")


def _order(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """Cells by their values (numbers as numbers), then method, preset, seed."""
    cell = tuple((isinstance(value, str), value) for value in record["cell"].values())
    methods = METHODS[record["table"]]
    method = methods.index(record["method"]) if record["method"] in methods else len(methods)
    return cell, method, record["preset"], record["seed"]


def _replace(path: Path, text: str) -> None:
    with atomic_write(path) as part:
        part.write_text(text, encoding="utf-8")
