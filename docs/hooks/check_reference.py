"""Fail when the built site lacks a public name or a command, or a public name has no example: run by `make docs`.

Public is what a module without an underscore lists in its `__all__`, the names of `kofn` itself, and every command with
its options. The examples are doctests, so the tests run them.
"""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Iterable
from html import unescape
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import commands

import kofn

# Shown in the example of another name; the check looks whether it really is.
SHOWN_IN = {
    "kofn.learners.Batch": "kofn.learners.BagDataset",
    "kofn.report.BagDetail": "kofn.report.BagDetails",
    "kofn.report.Instance": "kofn.report.ExampleBag",
    "kofn.report.Method": "kofn.report.Comparison",
    "kofn.report.Metric": "kofn.report.render",
    "kofn.report.Report": "kofn.report.render",
    "kofn.report.RowTable": "kofn.report.BagDetails",
    "kofn.tables.TableFile": "kofn.tables.fit_table",
    "kofn.tables.TableModel": "kofn.tables.fit_table",
    "kofn.tables.evaluate_bags": "kofn.tables.fit_table",
    "kofn.tables.evaluate_rows": "kofn.tables.fit_table",
    "kofn.tables.predict_bags": "kofn.tables.fit_table",
    "kofn.tables.predict_rows": "kofn.tables.fit_table",
    "kofn.tables.report_table": "kofn.tables.fit_table",
    "kofn.tables.write_table": "kofn.tables.fit_table",
}
# Without any example, and why.
NO_EXAMPLE = {
    "kofn.learners.Draw": "passed from a sampler to a data set; nobody makes one by hand",
    "kofn.learners.StepSampler": "abstract: BagSampler has an example",
    "kofn.cli.app": "the typer application: every command has an example on the page of the command line",
    "kofn.cli.main": "runs the command line and ends the process",
    "kofn.datasets.BundledTask": "what load_digits_task returns",
    "kofn.datasets.Colon": "what load_colon returns",
    "kofn.datasets.LLPTask": "what make_llp_bags returns; its method `rows` has an example",
    "kofn.datasets.MILTask": "what make_mil_bags returns",
    "kofn.datasets.PUTask": "what make_pu_split returns",
    "kofn.datasets.Splits": "what load_adult and its kin return",
    "kofn.learners.Fitted": "abstract: what a learner's fit returns",
    "kofn.learners.Learner": "abstract: Trees, Linear, Network and EM have examples",
    "kofn.learners.Objective": "a protocol: the objectives have examples",
    "kofn.learners.PUProblem": "what PUClassifier makes of its labels",
    "kofn.learners.Problem": "what an estimator makes of its labels",
    "kofn.learners.Progress": "the type of a function",
    "kofn.learners.StoppingRule": "a protocol: the rules have examples",
    "kofn.metrics.CountCalibration": "what count_calibration returns",
    "kofn.report.BagTable": "what report_of fills in",
    "kofn.report.Binomial": "what report_of fills in",
    "kofn.report.Calibration": "what report_of fills in",
    "kofn.report.RowCurves": "what report_of fills in",
    "kofn.classes.BUDGET": "a number of cells",
    "kofn.classes.Method": "a type: the names of the methods",
    "kofn.counts.Counts": "a type: what counts are given as",
    "kofn.targets.ClassTarget": "abstract: ClassCounts has an example",
    "kofn.targets.Statement": "abstract: what targets of one count and of several classes have in common",
    "kofn.targets.Target": "abstract: docs/contributing.md has one of your own, which the tests run",
}
# Modules whose names are mathematics: each says its formula, in an indented block or in its first sentence ...
FORMULAS = ("kofn.classes", "kofn.counts", "kofn.distributions", "kofn.losses", "kofn.metrics", "kofn.targets")
# ... but for these.
NO_FORMULA = {
    "kofn.classes.BUDGET": "a number of cells",
    "kofn.classes.Method": "a type: the names of the methods",
    "kofn.counts.Counts": "a type: what counts are given as",
    "kofn.counts.backend": "says which implementation computes",
    "kofn.counts.use": "chooses the implementation",
    "kofn.losses.pair_bags": "a rule in words",
    "kofn.metrics.CountCalibration": "the formula is at count_calibration",
    "kofn.targets.ClassTarget": "abstract: its subclasses have formulas",
    "kofn.targets.Statement": "abstract: its subclasses have formulas",
    "kofn.targets.Target": "abstract: its subclasses have formulas",
    "kofn.targets.from_proportions": "makes targets that have formulas",
}


def public() -> dict[str, Any]:
    """Every public name of the public modules, and what it is."""
    found: dict[str, Any] = {}
    for module in iter_modules(kofn.__path__, "kofn."):
        if module.name.split(".")[1].startswith("_"):
            continue
        loaded = import_module(module.name)
        found |= {f"{module.name}.{name}": getattr(loaded, name) for name in getattr(loaded, "__all__", ())}
    return found


def documented(inventory: bytes) -> set[str]:
    """The names in an inventory of objects, as Sphinx and mkdocstrings write it: four plain lines, then zlib."""
    body = inventory.split(b"\n", 4)[4]
    return {line.split(" ")[0] for line in zlib.decompress(body).decode().splitlines()}


def missing_names(names: Iterable[str], there: set[str]) -> list[str]:
    """Public names that the reference does not have; the command line has a page of another kind."""
    return [f"{name}: not in the reference" for name in names if name not in there and not name.startswith("kofn.cli.")]


def missing_roots(page: str) -> list[str]:
    """Names of `kofn` itself that the first page of the reference does not list."""
    return [
        f"kofn.{name}: not on the reference's first page" for name in kofn.__all__ if f'id="kofn.{name}"' not in page
    ]


def missing_commands(page: str) -> list[str]:
    """Commands and options that the page of the command line does not have."""
    found = []
    for words, command in commands.commands():
        section = page.partition(f'id="{commands.anchor(words)}"')[2]
        if not section:
            found.append(f"{words}: not on the page of the command line")
            continue
        cells = re.findall(r"<td><code>(.*?)</code>", re.split(r"<h[23] ", section)[0])  # an example is no description
        told = set(re.findall(r"--?[\w-]+", " ".join(map(unescape, cells))))
        options = [word for word in commands.options(command) if word not in told]
        found += [f"{words} {option}: not on the page of the command line" for option in options]
    return found


def without_example(names: dict[str, Any]) -> list[str]:
    """Public names without a doctest under "Examples:", and entries of the lists above that no longer hold."""
    found = [f"{name}: listed here, but not public" for name in {*SHOWN_IN, *NO_EXAMPLE} if name not in names]
    for name, value in names.items():
        example = _example(value)
        listed = name in SHOWN_IN or name in NO_EXAMPLE
        if example and listed:
            found.append(f"{name}: has an example now; take it out of the list")
        elif not example and not listed:
            found.append(f"{name}: no example (a doctest under 'Examples:')")
    for name, other in SHOWN_IN.items():
        if other in names and not re.search(rf"\b{name.split('.')[-1]}\b", _example(names[other])):
            found.append(f"{name}: not in the example of {other}")
    return sorted(found)


def _example(value: Any) -> str:
    _, _, example = (getdoc(value) or "").partition("\nExamples:\n")
    return example if ">>>" in example else ""


def without_formula(names: dict[str, Any]) -> list[str]:
    """Names of mathematical modules that say no formula before their arguments."""
    found = []
    for name, value in names.items():
        if name.rpartition(".")[0] in FORMULAS and name not in NO_FORMULA:
            says = re.split(r"^(?:Args|Attributes|Returns|Raises|Examples):", getdoc(value) or "", flags=re.M)[0]
            if not re.search(r"^    \S|P\(.*\)| / ", says, flags=re.M):
                found.append(f"{name}: no formula")
    return found


def main(site: Path) -> None:
    """Say what is missing and leave with an error."""
    names = public()
    found = missing_names(names, documented((site / "objects.inv").read_bytes()))
    found += missing_roots((site / "reference" / "index.html").read_text())
    found += missing_commands((site / "reference" / "command-line.html").read_text())
    found += without_example(names) + without_formula(names)
    if found:
        sys.exit("the reference is not whole:\n  " + "\n  ".join(found))
    told = sum(1 for _ in commands.commands())
    print(f"{len(names)} public names and {told} commands are in the reference; {len(NO_EXAMPLE)} have no example")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "site"))
