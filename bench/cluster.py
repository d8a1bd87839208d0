"""Trees on two local Dask workers: how near to one process, how long, and how much memory.

python -m bench.cluster agreement
python -m bench.cluster large --rows 20000000 --data FOLDER

`large` looks at the memory of every process ten times a second. The total has pages of mapped files in it that the
process read and the system could take back at any moment; anonymous memory it could not.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import psutil
from distributed import LocalCluster
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

import kofn
from bench.record import machine, markdown, write
from kofn.learners._rank_task import PROGRAM
from kofn.tables import fit_table

ROWS, TEST, COLUMNS, BAG, ROUNDS = 200_000, 50_000, 20, 100, 200
OUT = Path("bench/cluster")


def two_workers() -> LocalCluster:
    return LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0")


def agreement(seeds: int) -> dict[str, Any]:
    """AUC on new rows of models of one process and of two workers, and how far their scores go together.

    For scale: two seeds in one process.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS + TEST, COLUMNS)).astype(np.float32)
    x[:, 0] += rng.normal(size=len(x) // BAG).repeat(BAG)
    logits = x[:, 0] - x[:, 1] + x[:, 2] * x[:, 3] + 0.5 * (x[:, 4] > 1) - 1
    truth = rng.random(len(x)) < 1 / (1 + np.exp(-logits))
    train, test = x[:ROWS], x[ROWS:]
    share = truth[:ROWS].reshape(-1, BAG).mean(1).repeat(BAG)
    found: dict[str, Any] = {"default": [], "all rows": []}
    settings: dict[str, dict[str, Any]] = {"default": {}, "all rows": {"row_fraction": 1.0}}
    with two_workers() as cluster:
        for seed in range(seeds):
            for name, options in settings.items():
                scores = []
                for address, number in ((None, seed), (cluster.scheduler_address, seed), (None, seed + 100)):
                    learner = kofn.Trees(rounds=ROUNDS, cluster=address, **options)
                    model = kofn.LLPClassifier(learner, random_state=number)
                    model.fit(train, share, groups=np.arange(ROWS) // BAG)
                    scores.append(model.decision_function(test))
                one, two, other = scores
                found[name].append(
                    {
                        "seed": seed,
                        "auc": [float(roc_auc_score(truth[ROWS:], each)) for each in scores],
                        "correlation": [float(np.corrcoef(one, each)[0, 1]) for each in (two, other)],
                        "rank_correlation": [float(spearmanr(one, each)[0]) for each in (two, other)],
                        "largest": [float(abs(one - each).max()) for each in (two, other)],
                    }
                )
                print(name, found[name][-1], flush=True)
    return found


class Watch:
    """The most memory that this process and each of those below it has had, by what it does."""

    def __init__(self) -> None:
        self.peaks: dict[int, dict[str, Any]] = {}
        self._over = Event()
        self._thread = Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        me = psutil.Process()
        while not self._over.wait(0.1):
            for process in (me, *me.children(recursive=True)):
                try:
                    status = Path(f"/proc/{process.pid}/status").read_text()
                    kind = _kind(process, me)
                except (OSError, psutil.Error):
                    continue
                now = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in status.splitlines() if "kB" in line}
                peak = self.peaks.setdefault(process.pid, {"kind": kind, "peak": 0, "anonymous": 0})
                peak["peak"] = max(peak["peak"], now.get("VmHWM", 0))
                peak["anonymous"] = max(peak["anonymous"], now.get("RssAnon", 0))


def _kind(process: psutil.Process, me: psutil.Process) -> str:
    words = " ".join(process.cmdline())
    if process == me:
        return "caller, with the scheduler"
    return "process that grows trees" if PROGRAM in words else "Dask worker" if "spawn_main" in words else "other"


def large(data: Path, scratch: Path, rounds: int) -> dict[str, Any]:
    """A fit of `kofn.tables.fit_table` with default settings but for the number of rounds."""
    stages: list[tuple[str, float]] = []
    times: dict[int, float] = {}

    def progress(what: str, step: int, *_: Any) -> None:
        if what == "all bags":
            times[step] = time.monotonic()

    with two_workers() as workers, Watch() as watch:
        learner = kofn.Trees(rounds=rounds, cluster=workers.scheduler_address)
        start = time.monotonic()
        model = fit_table(
            data,
            kofn.LLPClassifier(learner, random_state=0, progress=progress),
            bag="bag",
            label="count",
            scratch=scratch,
            on_stage=lambda what: stages.append((what, time.monotonic() - start)),
        )
        seconds = time.monotonic() - start
    ends = [*(at for _, at in stages[1:]), seconds]
    processes = [each for each in watch.peaks.values() if each["kind"] != "other"]
    first, last = min(times), max(times)
    return {
        "rounds": rounds,
        "round": (times[last] - times[first]) / (last - first),
        "seconds": seconds,
        "stages": [[what, end - at] for (what, at), end in zip(stages, ends, strict=True)],
        "fit": model.seconds,
        "training_loss": model.estimator.history_[-1]["train_loss"],
        "load": os.getloadavg()[1],
        "processes": processes,
    }


def told(record: dict[str, Any]) -> str:
    """The page of a record."""
    parts = [
        f"{record['machine']}. Two local Dask workers with one thread each. The machine was shared with other work, so "
        f"that times are upper bounds."
    ]
    if "agreement" in record:
        rows = [
            ["trees", "AUC, one process", "AUC, two workers", "correlation of scores", "of two seeds in one process"]
        ]
        for name, words in (("default", "default settings"), ("all rows", "`row_fraction=1`")):
            runs = record["agreement"][name]
            aucs = [
                f"{np.mean(each):.4f} ± {np.std(each, ddof=1):.4f}"
                for each in zip(*(run["auc"] for run in runs), strict=True)
            ]
            pairs = [
                f"{min(each):.5f} to {max(each):.5f}"
                for each in zip(*(run["correlation"] for run in runs), strict=True)
            ]
            rows.append([words, *aucs[:2], *pairs])
        seeds = len(record["agreement"]["default"])
        parts.append(
            f"{ROWS:,} rows x {COLUMNS} columns in bags of {BAG}, {ROUNDS} rounds, {seeds} seeds; AUC of {TEST:,}:\n\n"
            f"<!-- --8<-- [start:agreement] -->\n{markdown(rows)}\n<!-- --8<-- [end:agreement] -->"
        )
    if record.get("large"):
        rows = [["rows", "rounds", "process", "peak, GB", "of it anonymous, GB", "training, s", "all, s"]]
        for number, found in record["large"].items():
            for place, each in enumerate(sorted(found["processes"], key=lambda each: each["kind"])):
                counts = [f"{int(number):,}", f"{found['rounds']}"] if place == 0 else ["", ""]
                times = [f"{found[what]:.0f}" if place == 0 else "" for what in ("fit", "seconds")]
                memories = [f"{each[what] / 1e9:.2f}" for what in ("peak", "anonymous")]
                rows.append([*counts, each["kind"], *memories, *times])
        parts.append(
            f"Parquet, {COLUMNS} columns in bags of {BAG}, default settings:\n\n"
            f"<!-- --8<-- [start:large] -->\n{markdown(rows)}\n<!-- --8<-- [end:large] -->"
        )
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["agreement", "large"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--data", type=Path, help="folder of the files, made if they are not there")
    parser.add_argument("--scratch", type=Path, default=Path("build/cluster"), help="folder of temporary files")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    known = options.out.with_suffix(".json")
    record: dict[str, Any] = json.loads(known.read_text()) if known.exists() else {}
    record["machine"] = machine().replace(", one thread used", "")
    if options.what == "agreement":
        record["agreement"] = agreement(options.seeds)
    else:
        from bench.large_table import make

        make(options.data, rows=options.rows, columns=COLUMNS, bag=BAG)
        record.setdefault("large", {})[str(options.rows)] = large(options.data, options.scratch, options.rounds)
    write(options.out, record, told(record))


if __name__ == "__main__":
    main()
