"""What the command line takes beyond the fit in Python: an election of large precincts, with a bag effect.

``python -m bench.precincts`` draws a table of the shape of `senc` of the R package eiPack (212 precincts, three groups,
366,290 people; that table itself is on no registry that the tests reach), and fits it with ``kofn fit llp`` and with
`LLPClassifier.fit`, each in a process of its own and both with the same options, one process at a time. A second table
has 1,200 rows for 1.3 million people, and is fitted without a bag effect, by the default and by a linear model. Memory
is looked at ten times a second: the proportional set size of a process and of all that it starts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil

from bench.record import machine, markdown, write

PRECINCTS, PEOPLE = 212, 366_290
MANY_PRECINCTS, MANY_PEOPLE = 400, 1_300_000  # three rows each
LABEL = ["--bag", "precinct", "--label", "votes", "--label-kind", "count", "--copies", "people"]
GROUPS = {"black": 1.8, "natam": 1.2, "white": 0.0}  # the logit of a vote
SPREAD = 0.4  # of the logits of precincts
IN_PYTHON = """
import sys, pandas as pd, kofn
table = pd.read_csv(sys.argv[1])
model = kofn.LLPClassifier("linear", label="count", bag_effect="fit", bootstrap=int(sys.argv[2]), random_state=0)
model.fit(table[["race"]], table["votes"], groups=table["precinct"], copies=table["people"].to_numpy())
"""


def election(precincts: int = PRECINCTS, number: int = PEOPLE, seed: int = 0) -> pd.DataFrame:
    """A row for each precinct and group that has people in it."""
    rng = np.random.default_rng(seed)
    relative = rng.lognormal(0, 0.6, precincts)
    sizes = rng.multinomial(number, relative / relative.sum())
    shares = rng.dirichlet([0.9, 0.5, 1.2], precincts)
    people = np.stack([rng.multinomial(size, share) for size, share in zip(sizes, shares, strict=True)])
    logits = np.array(list(GROUPS.values())) - 0.3 + SPREAD * rng.normal(size=(precincts, 1))
    votes = rng.binomial(people, 1 / (1 + np.exp(-logits))).sum(1)
    precinct, group = np.nonzero(people)
    return pd.DataFrame(
        {
            "precinct": precinct,
            "race": np.array(list(GROUPS))[group],
            "people": people[precinct, group],
            "votes": votes[precinct],
        }
    )


def measured(command: list[str]) -> dict[str, Any]:
    """Time of the clock and of the processors, and the most memory at once, of a command and what it starts."""
    start, peak, processor = time.monotonic(), 0.0, 0.0
    process = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while process.poll() is None:
        together = used = 0.0
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):  # it may have ended
                together += each.memory_full_info().pss
                used += sum(each.cpu_times()[:2])
        peak, processor = max(peak, together), max(processor, used)
        time.sleep(0.1)
    if process.returncode:
        raise SystemExit(process.stderr.read())
    return {
        "seconds": round(time.monotonic() - start, 1),
        "processor_seconds": round(processor, 1),
        "peak_gb": round(peak / 1e9, 2),
    }


def page(found: dict[str, dict[str, Any]]) -> str:
    rows = [["fit", "seconds", "of processors", "peak memory"]]
    for name, each in found.items():
        rows.append([name, f"{each['seconds']:.1f}", f"{each['processor_seconds']:.1f}", f"{each['peak_gb']:.2f} GB"])
    text = (
        f"{PRECINCTS} simulated precincts of three groups, {PEOPLE:,} people, a linear model with a bag effect that is "
        f"estimated; and {MANY_PRECINCTS} with {MANY_PEOPLE:,} people, without a bag effect. Seconds include starting "
        f"Python and reading the table."
    )
    return f"{machine()}.\n\n{text}\n\n{markdown(rows)}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstraps", type=int, nargs="+", default=[0, 50])
    parser.add_argument("--out", type=Path, default=Path("bench/precincts"))
    asked = parser.parse_args()
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        table, model = Path(folder) / "election.csv", Path(folder) / "model"
        election().to_csv(table, index=False)
        many = Path(folder) / "many.csv"
        election(MANY_PRECINCTS, MANY_PEOPLE).to_csv(many, index=False)
        for learner in ("trees", "linear"):
            line = [sys.executable, "-m", "kofn", "fit", "llp", str(many), *LABEL, "--learner", learner, "--force"]
            found[f"kofn fit llp, {MANY_PEOPLE:,} people, {learner}"] = measured([*line, "-o", str(model)])
        for number in asked.bootstraps:
            how = ["--learner", "linear", "--bag-effect", "fit", "--bootstrap", str(number), "--force"]
            line = [sys.executable, "-m", "kofn", "fit", "llp", str(table), *LABEL, *how, "-o", str(model)]
            named = f"{number} bootstrap fits" if number else "no bootstrap"
            found[f"kofn fit llp, {named}"] = measured(line)
            found[f"LLPClassifier.fit, {named}"] = measured([sys.executable, "-c", IN_PYTHON, str(table), str(number)])
            print(json.dumps(found), flush=True)
            write(asked.out, {"machine": machine(), "results": found}, page(found))


if __name__ == "__main__":
    main()
