"""Forged model files: the trees' text by a grammar, facts and tensors by mutation, every digest right.

``python -m bench.forge`` forges 10,000 files, has each read and used in a child process, and writes bench/forge.md and
bench/forge.json. Required: an error or a right model, at most a second for reading, no crash, no endless loop. What a
file of trees must predict is worked out by a reader of LightGBM's text that is written here and knows nothing of
LightGBM. ``python -m bench.forge --only 17`` does one file alone and shows what was altered.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

import kofn
from bench.record import machine, markdown, write
from kofn._io.model_file import Model, read_model, write_model
from kofn.tables import TableModel, fit_table

Floats = NDArray[np.float64]
TREES = {"trees": {}, "linear trees": {"linear_tree": True}}
AT_ONCE = 2  # child processes
SECONDS = 1.0  # that reading may take
HANGS = 30.0  # seconds after which a child is ended

WORDS = ["1_0", "0_6", "+1", "0x1", "1e9", "1e1", "-1", "-0", "00", "1.5", "nan", "inf", "-inf", "", "a", "١", "1 1"]  # noqa: RUF001
WORDS += ["2147483647", "2147483648", "4294967296", "-2147483648", "99999999999999999999", "1e400", "1e308", "0", "2"]
WORDS += ["9" * 5000, "1e-400", ".5", "5.", "1e", "-", "1\x1f1", "1\t1", "NaN", "Infinity", "1,1", "1\r", "257", "16"]
SPACES = ["\x1f", "\t", "  ", ",", "\x0b", "\r", "\x1c", "", "\n", "\x00", "_", "\xa0"]
VALUES: list[Any] = [None, True, -1, 0, 1, 0.5, 2**31, 2**63, 10**400, 1e308, math.nan, math.inf, "", "x", "\x1b[31m"]
VALUES += [
    "../../etc/passwd",
    [],
    {},
    [[]],
    [{}],
    [1] * 5,
    ["a", 1],
    {"a": 1},
    {"": []},
    "O",
    "<U2000000000",
    "float128",
]
VALUES += [[0] * 100_000, [[1, 2], [3]], [None], [True], "9" * 5000]
DTYPES = [
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int8,
    torch.uint8,
    torch.bool,
    torch.int64,
    torch.complex64,
]


class Forged(NamedTuple):
    """A file, and what was altered."""

    model: Model
    base: str
    columns: Any  # facts of those of the base
    what: str


# Whole models


def table(rows: int = 240) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a, b, kind = rng.normal(size=rows), rng.normal(size=rows), rng.integers(0, 40, rows)
    truth = (a + (kind % 2) > 0.5).astype(int)
    bag = np.repeat(np.arange(rows // 4), 4)
    count = truth.reshape(-1, 4).sum(1).repeat(4)
    a = np.where(rng.random(rows) < 0.1, np.nan, a)
    frame = {"bag": bag, "a": a, "b": b, "kind": [f"k{code}" for code in kind], "count": count}
    return pd.DataFrame(frame | {"c0": 4 - count, "c1": count // 2, "c2": count - count // 2})


def make_models(folder: Path) -> None:
    """A table, and a model of each kind that a file can hold."""
    table().to_csv(folder / "t.csv", index=False)
    learners: dict[str, Any] = {
        name: kofn.Trees(rounds=6, leaves=5, min_rows=5, options={"min_gain_to_split": 0.1, **options})
        for name, options in TREES.items()
    }
    learners |= {"linear": kofn.Linear(l2=0.1), "network": kofn.Network(hidden=(3,), epochs=2)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, learner in learners.items():
            for label in ("count", "c0,c1,c2"):
                estimator = kofn.LLPClassifier(learner, label="count", bootstrap=2 * (name == "linear"), random_state=0)
                model = fit_table(folder / "t.csv", estimator, bag="bag", label=label, features="a,b,kind")
                model.save(folder / (name if label == "count" else f"{name} of classes"))


# Forgeries


def forge(number: int, bases: dict[str, Model]) -> Forged:
    """The file of this number: always the same."""
    rng = random.Random(number)
    of_trees = [name for name in bases if "trees" in name]
    kind = rng.choices(["text", "grammar", "facts", "tensors"], [50, 15, 30, 5])[0]
    name = rng.choice(of_trees if kind in ("text", "grammar") else list(bases))
    base = bases[name]
    facts, tensors = json.loads(json.dumps(base.facts)), dict(base.tensors)
    what = ""
    if kind == "facts":
        for _ in range(rng.choice([1, 1, 2])):
            what += _alter_facts(facts, rng)
    elif kind == "tensors":
        key = rng.choice(list(tensors))
        tensors[key], what = _altered_tensor(tensors[key], rng)
        what = f"{key}: {what}"
    else:
        text = text_of(tensors["trees"])
        if kind == "grammar":
            text, what = _grown(text, rng), "other trees"
        for _ in range(rng.choice([1, 1, 1, 2, 3]) if kind == "text" else rng.choice([0, 0, 1])):
            text, altered = _altered_text(text, rng)
            what += altered
        tensors["trees"] = torch.from_numpy(np.frombuffer(text.encode(), dtype=np.uint8).copy())
    return Forged(Model(base.kind, facts, tensors, ""), name, base.facts["columns"], f"{kind}: {what}")


def text_of(tensor: torch.Tensor) -> str:
    return tensor.numpy().tobytes().decode()


def _altered_text(text: str, rng: random.Random) -> tuple[str, str]:
    """A line of the text altered; most sizes of trees are then made right again, so that the rest is looked at."""
    lines = text.split("\n")
    places = [place for place, line in enumerate(lines) if "=" in line]
    place = rng.choice(places[:9] if rng.random() < 0.15 else places)
    name, _, value = lines[place].partition("=")
    words = value.split(" ")
    at = rng.randrange(len(words))
    match rng.randrange(11):
        case 0 | 1 | 2:
            words[at] = rng.choice(WORDS)
            lines[place] = f"{name}={' '.join(words)}"
        case 3:
            lines[place] = f"{name}={rng.choice(SPACES).join(words)}"
        case 4:
            del words[at]
            lines[place] = f"{name}={' '.join(words)}"
        case 5:
            words.insert(at, rng.choice(words + WORDS))
            lines[place] = f"{name}={' '.join(words)}"
        case 6:
            rng.shuffle(words)
            lines[place] = f"{name}={' '.join(words)}"
        case 7:
            del lines[place]
        case 8:
            lines.insert(rng.choice(places), lines[place])
        case 9:
            number = re.fullmatch(r"-?\d+", words[at])
            words[at] = str(int(words[at]) + rng.choice([-2, -1, 1, 2, 100])) if number else "0.25"
            lines[place] = f"{name}={' '.join(words)}"
        case _:
            lines[place] = f"{rng.choice([name + ' ', name.upper(), rng.choice(lines), 'average_output'])}={value}"
    found = "\n".join(lines)
    return (_sized(found) if rng.random() < 0.9 else found), f"{name}={value[:40]!r} -> {lines[place][:60]!r}; "


def _sized(text: str) -> str:
    """The text with the sizes of its trees."""
    trees = text.partition("end of trees")[0]
    starts = [match.start() for match in re.finditer(r"^Tree=", trees, re.MULTILINE)]
    sizes = [end - start for start, end in pairwise([*starts, len(trees)])]
    return re.sub(r"tree_sizes=[^\n]*", lambda _: "tree_sizes=" + " ".join(map(str, sizes)), text, count=1)


def _grown(text: str, rng: random.Random) -> str:
    """The text with trees that a grammar made, all of them sound."""
    head, _, rest = text.partition("\nTree=0\n")
    classes = int(re.findall(r"num_class=(\d+)", head)[0])
    trees = "".join(f"Tree={i}\n{_tree(rng)}\n\n" for i in range(classes * rng.randrange(1, 4)))
    return _sized(f"{head}\n{trees}end of trees\n{rest.partition('end of trees' + chr(10))[2]}")


def _tree(rng: random.Random) -> str:
    leaves = rng.choice([1, 2, 3, 5, 9])
    children: list[list[int]] = []  # of each split
    ends: list[tuple[int, int]] = []  # where a leaf can become a split
    for split in range(leaves - 1):
        if split:
            where, side = ends.pop(rng.randrange(len(ends)))
            children[where][side] = split
        children.append([0, 0])
        ends += [(split, 0), (split, 1)]
    for leaf, (where, side) in enumerate(rng.sample(ends, len(ends))):
        children[where][side] = -leaf - 1
    columns = [rng.randrange(3) for _ in children]
    named = [column == 2 for column in columns]
    sets = [[rng.randrange(2**32) for _ in range(rng.randrange(1, 4))] for _ in range(sum(named))]
    bounds = np.cumsum([0, *map(len, sets)]).tolist()
    codes = iter(range(len(sets)))
    fields: dict[str, list[Any]] = {
        "num_leaves": [leaves],
        "num_cat": [len(sets)],
        "split_feature": columns,
        "split_gain": [rng.random() for _ in columns],
        "threshold": [next(codes) if of_set else rng.choice([0.0, 1e-35, rng.gauss(0, 1)]) for of_set in named],
        "decision_type": [of_set + rng.choice([0, 2]) + rng.choice([0, 4, 8]) for of_set in named],
        "left_child": [left for left, _ in children],
        "right_child": [right for _, right in children],
        "leaf_value": [rng.gauss(0, 1) for _ in range(leaves)],
        "leaf_weight": [1] * leaves,
        "leaf_count": [1] * leaves,
        "internal_value": [0] * (leaves - 1),
        "internal_weight": [0] * (leaves - 1),
        "internal_count": [2] * (leaves - 1),
    }
    if sets:
        fields |= {"cat_boundaries": bounds, "cat_threshold": [word for one in sets for word in one]}
    linear = rng.random() < 0.3
    lines = [f"{name}={' '.join(map(str, values))}" for name, values in fields.items()] + [f"is_linear={linear:d}"]
    if linear:
        used = [[rng.randrange(2) for _ in range(rng.randrange(3))] for _ in range(leaves)]
        lines += [f"leaf_const={' '.join(str(rng.gauss(0, 1)) for _ in used)}"]
        lines += [f"num_features={' '.join(str(len(one)) for one in used)}"]
        lines += ["leaf_features=" + "".join("".join(f"{column} " for column in one) + " " for one in used)]
        lines += ["leaf_coeff=" + "".join("".join(f"{rng.gauss(0, 1)} " for _ in one) + " " for one in used)]
    return "\n".join([*lines, "shrinkage=1"]) + "\n"


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if place:
        yield place
    for key in value if isinstance(value, dict) else range(min(len(value), 3)) if isinstance(value, list) else ():
        yield from _places(value[key], (*place, key))


def _alter_facts(facts: dict[str, Any], rng: random.Random) -> str:
    tops = list(facts)  # else the many facts of a history would have most of the turns
    top = rng.choice(tops)
    place = rng.choice(list(_places(facts[top], (top,))))
    owner: Any = facts
    for key in place[:-1]:
        owner = owner[key]
    if rng.random() < 0.1:
        del owner[place[-1]]
        return f"{place} left out; "
    owner[place[-1]] = value = rng.choice(VALUES)
    return f"{place} = {value!r:.60}; "


def _altered_tensor(tensor: torch.Tensor, rng: random.Random) -> tuple[torch.Tensor, str]:
    match rng.randrange(5):
        case 0:
            dtype = rng.choice(DTYPES)
            return tensor.to(dtype), f"as {dtype}"
        case 1:
            return tensor[None], "a dimension more"
        case 2:
            return torch.cat([tensor.flatten(), tensor.flatten()]), "twice"
        case 3:
            return tensor.flatten()[:-1], "one less"
        case _:
            value = rng.choice([math.nan, math.inf, 1e30]) if tensor.is_floating_point() else 127
            return torch.full_like(tensor, value), f"all {value}"


# What is right


def scores_of_text(text: str, instances: NDArray[np.float32], classes: int) -> Floats:
    """(n, classes) what trees give, read line by line as LightGBM's format says."""
    found = np.zeros((len(instances), classes))
    for number, part in enumerate(text.partition("end of trees")[0].split("\nTree=")[1:]):
        fields = {name: value.split() for name, _, value in (line.partition("=") for line in part.split("\n"))}
        for row, values in enumerate(instances.astype(np.float64)):
            found[row, number % classes] += _score(fields, values)
    return found


def _score(fields: dict[str, list[str]], row: Floats) -> float:
    node = 0 if fields["num_leaves"] != ["1"] else -1
    while node >= 0:
        side = "left_child" if _goes_left(fields, node, row) else "right_child"
        node = int(fields[side][node])
    leaf = -node - 1
    value = float(fields["leaf_value"][leaf])
    if fields["is_linear"] == ["0"]:
        return value
    sizes = [int(size) for size in fields["num_features"]]
    used = slice(sum(sizes[:leaf]), sum(sizes[: leaf + 1]))
    seen = np.array([row[int(column)] for column in fields["leaf_features"][used]])
    if np.isnan(seen).any():
        return value
    coefficients = [float(word) for word in fields["leaf_coeff"][used]]
    return float(fields["leaf_const"][leaf]) + float(np.dot(coefficients, seen))


def _goes_left(fields: dict[str, list[str]], node: int, row: Floats) -> bool:
    value, kind = row[int(fields["split_feature"][node])], int(fields["decision_type"][node])
    threshold = float(fields["threshold"][node])
    if kind & 1:
        low, high = (int(fields["cat_boundaries"][int(threshold) + i]) for i in (0, 1))
        code = -1 if np.isnan(value) else int(value)
        return 0 <= code < 32 * (high - low) and bool(int(fields["cat_threshold"][low + code // 32]) >> code % 32 & 1)
    missing = kind >> 2 & 3
    if np.isnan(value) and missing != 2:
        value = 0.0
    if (missing == 1 and abs(value) <= np.float32(1e-35)) or (missing == 2 and np.isnan(value)):
        return bool(kind & 2)
    return bool(value <= threshold)


# In the child


def use(file: Path, folder: Path, forged: Forged, whole: Floats) -> dict[str, Any]:
    """Read a file, use what it holds, and say what came of it."""
    from typer.testing import CliRunner

    from kofn.cli import app

    def run(*words: str) -> None:
        done = CliRunner().invoke(app, list(words))
        if done.exit_code not in (0, 2):
            raise AssertionError(f"{words[0]}: {done.output.strip()[:300]}")

    start = time.process_time()
    try:
        model = TableModel.load(file)
    except ValueError:
        model = None
    seconds = time.process_time() - start
    run("info", str(file))
    if model is None:
        return {"end": "refused", "seconds": seconds}
    instances = _instances(folder, model)
    scores = model.estimator.fitted_.logits(instances)
    if isinstance(model.estimator.fitted_learner_, kofn.Trees):
        outputs = model.estimator.fitted_.outputs
        right = scores_of_text(model.estimator.fitted_.text, instances, math.prod(outputs))
        right = right.reshape(len(instances), *outputs) + model.estimator.fitted_.start
    else:
        same = model.columns.to_facts() == forged.columns and "'state'" not in forged.what
        right = whole if forged.what.startswith("facts") and same else scores
    if not np.allclose(scores, right, rtol=1e-9, atol=1e-12, equal_nan=True):
        raise AssertionError("scores that the file does not give")
    for words in (["--bag", "bag"], ["--posterior"], []):
        run("predict", str(file), str(folder / "t.csv"), "-o", str(file.parent / "out.csv"), "--force", *words)
    model.save(file.parent / "again")
    if not np.array_equal(
        TableModel.load(file.parent / "again").estimator.fitted_.logits(instances), scores, equal_nan=True
    ):
        raise AssertionError("other scores when it is saved again")
    return {"end": "right", "seconds": seconds}


def _instances(folder: Path, model: TableModel) -> NDArray[np.float32]:
    frame = pd.read_csv(folder / "t.csv").head(40)
    try:
        return model.columns(frame)
    except ValueError:  # other columns: as many as there are, of numbers
        width = len(model.columns.names)
        return np.resize(np.random.default_rng(0).normal(size=97), (40, width)).astype(np.float32)


def child(folder: Path, numbers: range) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    bases = {path.name: read_model(path) for path in sorted(folder.iterdir()) if path.suffix != ".csv"}
    whole = {}
    for name in bases:
        model = TableModel.load(folder / name)
        whole[name] = model.estimator.fitted_.logits(_instances(folder, model))
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "model"
        for number in numbers:
            faulthandler.dump_traceback_later(HANGS, exit=True)
            forged = forge(number, bases)
            print(json.dumps({"number": number, "what": f"{forged.base}, {forged.what}"}), flush=True)
            file.unlink(missing_ok=True)
            write_model(file, kind=forged.model.kind, facts=forged.model.facts, tensors=forged.model.tensors)
            try:
                said = use(file, folder, forged, whole[forged.base])
            except Exception as error:
                said = {"end": "wrong", "why": f"{type(error).__name__}: {error}"[:400], "seconds": 0.0}
            print(json.dumps(said), flush=True)
            faulthandler.cancel_dump_traceback_later()


# In the parent


def judge(folder: Path, numbers: range) -> list[dict[str, Any]]:
    """What came of the files of these numbers, each in a child process; one that dies is a crash of its file."""
    found: list[dict[str, Any]] = []
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    while len(found) < len(numbers):
        rest = numbers[len(found) :]
        words = [str(folder), str(rest.start), str(rest.stop)]
        done = subprocess.run(
            [sys.executable, "-m", "bench.forge", "--child", *words],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            cwd=Path(__file__).parent.parent,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        found += [asked | said for asked, said in zip(lines[::2], lines[1::2], strict=False)]
        if len(lines) % 2:
            why = f"status {done.returncode}: {done.stderr.strip()[:300]}"
            found.append(lines[-1] | {"end": "crash", "why": why, "seconds": 0.0})
        elif not lines:
            raise RuntimeError(done.stderr)
    return found


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    ends = Counter(one["end"] for one in found)
    return {
        "files": len(found),
        **{end: ends[end] for end in ("refused", "right", "wrong", "crash")},
        "longest reading in seconds": round(max(one["seconds"] for one in found), 3),
        "longer than a second": sum(one["seconds"] > SECONDS for one in found),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--only", type=int, help="one file alone")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("forge"))
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child is not None:
        folder, *bounds = asked.child
        child(Path(folder), range(*map(int, bounds)))
        return
    with tempfile.TemporaryDirectory() as place:
        make_models(Path(place))
        if asked.only is not None:
            print(judge(Path(place), range(asked.only, asked.only + 1)))
            return
        parts = [range(asked.files)[start : start + 250] for start in range(0, asked.files, 250)]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = [one for part in pool.map(lambda part: judge(Path(place), part), parts) for one in part]
    figures = summary(found)
    faults = [one for one in found if one["end"] in ("wrong", "crash")]
    rows = [[*figures], [str(value) for value in figures.values()]]
    text = f"# Forged model files\n\n{machine()}\n\n{markdown(rows)}\n"
    print(text, *(json.dumps(fault) for fault in faults[:50]), sep="\n")
    write(asked.out, {"machine": machine(), **figures, "faults": faults}, text)
    sys.exit(bool(faults) or figures["longer than a second"] > 0)


if __name__ == "__main__":
    main()
