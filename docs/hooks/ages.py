"""How old the records are that a page shows: the commit of each, and how many commits have changed its code since.

The sentence follows every table of `bench/` that a page includes. Where a page has only words from a record, it stands
in place of ``<!-- age: NAME -->`` on a line of its own. `bench.record.SPEAKS_OF` says which code a record is about.
Without git, or in a clone without the history, nothing is said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from bench.record import ROOT, SPEAKS_OF, git

# What the runs of `paper/results/` are about.
PAPER = ("native", "src/kofn/counts", "src/kofn/learners", "src/kofn/losses")


@cache
def of_bench(name: str, root: Path = ROOT) -> str:
    """The age of a record of `bench/`, by the commit that it carries or else by the one that brought it.

    Where runs are added to a file of lines, it is that of the first one: a summary may be newer than all of its runs.
    """
    lines, whole = (root / "bench" / f"{name}{suffix}" for suffix in (".jsonl", ".json"))
    path = lines if lines.exists() else whole
    carried = _carried(path)
    words = "Recorded in" if not carried else "Measured at" if path == whole else "Measured from"
    return sentence(f"{words} commit", carried or _brought(path, root), SPEAKS_OF[name], root)


@cache
def of_paper(table: str, root: Path = ROOT) -> str:
    """The age of the newest record of one of the paper's tables. Which recipes have changed, the table itself says."""
    path = root / "paper" / "results" / f"{table}.jsonl"
    return sentence("The newest of these records came with commit", _brought(path, root), PAPER, root)


def sentence(words: str, commit: str, folders: Sequence[str], root: Path = ROOT) -> str:
    """What is said of a record of a commit: nothing if it is not in the history, or the history is not whole."""
    start = commit.rstrip("+")  # with a plus, some changes were not committed
    found = start and git("rev-list", "--count", f"HEAD..{start}", folder=root) == "0"
    if not found or git("rev-parse", "--is-shallow-repository", folder=root) != "false":
        return ""
    since = int(git("rev-list", "--count", f"{start}..HEAD", "--", *folders, folder=root))
    *first, last = (f"`{folder}`" for folder in folders)
    code = f"{', '.join(first)} or {last}" if first else last
    number = {0: "no commit has", 1: "one commit has"}.get(since, f"{since} commits have")
    return f"*{words} `{commit}`; {number} changed {code} since.*"


def _carried(path: Path) -> str:
    """The commit that a record, or the first of its lines, has noted itself."""
    text = path.read_text() if path.exists() else "{}"
    record: Any = json.loads(text.partition("\n")[0] if path.suffix == ".jsonl" else text)
    found = record.get("commit", "unknown") if isinstance(record, dict) else "unknown"
    return "" if found == "unknown" else str(found)


def _brought(path: Path, root: Path) -> str:
    """The last commit that wrote a file."""
    return git("log", "-1", "--format=%h", "--", str(path), folder=root)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the sentences into a page; an unknown name stops the build."""
    markdown = re.sub(
        r'^--8<-- "bench/(\w+)\.md(?::\w+)?"$',
        lambda found: f"{found[0]}\n\n{of_bench(found[1])}",
        markdown,
        flags=re.M,
    )
    return re.sub(r"^<!-- age: (\w+) -->$", lambda found: of_bench(found[1]), markdown, flags=re.M)
