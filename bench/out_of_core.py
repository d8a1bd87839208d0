"""Memory and time of fits to a table that is larger than what they may take: `kofn fit` on a folder of Parquet files.

python -m bench.out_of_core --rows 20000000 --data FOLDER

Each fit runs in a process of its own, whose memory is looked at twenty times a second. The total has pages of mapped
files in it that the process read and the system could take back at any moment; anonymous memory it could not.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.large_table import make
from bench.record import machine, markdown, write

COLUMNS, BAG = 20, 100
FITS = {
    "trees, default settings, 200 rounds": {"learner": "trees", "rounds": 200},
    "trees, number of rounds chosen on held-out bags, at most 200": {"learner": "trees", "max_rounds": 200},
    "network, one epoch": {"learner": "network", "epochs": 1},
}
OUT = Path("bench/out_of_core")


def fit(data: Path, scratch: Path, options: dict[str, Any], *, mapped: bool) -> None:
    """One fit, in a process of its own, which prints what it did."""
    import torch

    import kofn
    from kofn._io import mapped as mapping
    from kofn.tables import fit_table

    if mapped:
        mapping.IN_MEMORY = 0
    name = options.pop("learner")
    learner = kofn.Trees(**options) if name == "trees" else kofn.Network(**options)
    stages: list[tuple[str, float]] = []
    estimator = kofn.LLPClassifier(learner, random_state=0)
    start = time.monotonic()
    model = fit_table(
        data,
        estimator,
        bag="bag",
        label="count",
        scratch=scratch,
        on_stage=lambda what: stages.append((what, time.monotonic() - start)),
    )
    ends = [*(at for _, at in stages[1:]), time.monotonic() - start]
    found = {
        "seconds": ends[-1],
        "processor": time.process_time(),
        "stages": {what: end - at for (what, at), end in zip(stages, ends, strict=True)},
        "fit": model.seconds,
        "steps": len(model.estimator.history_),
        "validation": {name: value for name, value in model.validation.items() if isinstance(value, (str, int, float))},
        "threads": torch.get_num_threads(),
        "peak": memory("self")["VmHWM"],
    }
    print(json.dumps(found))


def memory(process: int | str) -> dict[str, int]:
    """Bytes of a process by the names of Linux: VmHWM, RssAnon, ..."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    named = (line.split(":", 1) for line in lines)
    return {name: int(value.split()[0]) * 1024 for name, value in named if value.endswith(" kB")}


def watched(arguments: list[str]) -> dict[str, Any]:
    """Run a fit, and add the most anonymous memory that it had."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.out_of_core", *arguments], stdout=subprocess.PIPE, text=True
    )
    anonymous = 0
    while process.poll() is None:
        try:
            anonymous = max(anonymous, memory(process.pid).get("RssAnon", 0))
        except (FileNotFoundError, ProcessLookupError):
            break
        time.sleep(0.05)
    output = process.communicate()[0]
    if process.returncode:
        raise RuntimeError(f"the fit ended with {process.returncode}")
    return {**json.loads(output.splitlines()[-1]), "anonymous": anonymous}


def told(record: dict[str, Any]) -> str:
    """The page of a record."""
    rows = [["fit", "peak, GB", "anonymous, GB", "reading, s", "training and baselines, s", "all, s", "processor, s"]]
    for name, found in record["fits"].items():
        reading = sum(seconds for what, seconds in found["stages"].items() if what not in ("training", "measuring"))
        memories = [f"{found[what] / 1e9:.2f}" for what in ("peak", "anonymous")]
        rows.append([name, *memories, f"{reading:.0f}", f"{found['fit']:.0f}", f"{found['seconds']:.0f}"])
        rows[-1].append(f"{found['processor']:.0f}")
    return (
        f"{record['machine']}.\n\n{record['rows']:,} rows x {COLUMNS} columns in bags of {BAG}, "
        f"{record['bytes'] / 1e9:.1f} GB of Parquet in {record['files']} files; as one float32 matrix "
        f"{4 * COLUMNS * record['rows'] / 1e9:.1f} GB. The machine was shared with other work: times are what they "
        f"were, not the best possible. Threads: {next(iter(record['fits'].values()))['threads']}.\n\n"
        f"<!-- --8<-- [start:out_of_core] -->\n{markdown(rows)}\n<!-- --8<-- [end:out_of_core] -->\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--data", type=Path, required=True, help="folder of the files, made if they are not there")
    parser.add_argument("--scratch", type=Path, default=Path("build/out_of_core"), help="folder of temporary files")
    parser.add_argument("--only", help="fits whose name begins with this; others keep their records")
    parser.add_argument("--mapped", action="store_true", help="a matrix in a file also where it is small")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit is not None:
        fit(options.data, options.scratch, json.loads(options.fit), mapped=options.mapped)
        return
    make(options.data, rows=options.rows, columns=COLUMNS, bag=BAG)
    files = sorted(options.data.glob("*.parquet"))
    record: dict[str, Any] = {"fits": {}}
    if options.out.with_suffix(".json").exists():
        before = json.loads(options.out.with_suffix(".json").read_text())
        record = before if before["rows"] == options.rows else record
    record |= {
        "machine": machine().replace("one thread used", "shared"),
        "rows": options.rows,
        "columns": COLUMNS,
        "bag": BAG,
        "bytes": sum(path.stat().st_size for path in files),
        "files": len(files),
    }
    for name, chosen in FITS.items():
        if options.only is not None and not name.startswith(options.only):
            continue
        arguments = ["--data", str(options.data), "--scratch", str(options.scratch), "--fit", json.dumps(chosen)]
        record["fits"][name] = watched([*arguments, *(["--mapped"] if options.mapped else [])])
        record["fits"] = {each: record["fits"][each] for each in FITS if each in record["fits"]}
        write(options.out, record, told(record))
        print(name, record["fits"][name], flush=True)


if __name__ == "__main__":
    main()
