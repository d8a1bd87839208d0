"""What the blocks of pages print, written under them by `make outputs`; the tests run it again and compare.

In a page, directly under a block of Python, a block `output` holds what it printed. The blocks of a page run one after
the other. A last line that is an expression shows its value, as in a notebook. A block `console` is run where it has a
block `output` under it, which may be empty at first. Nobody types an output by hand.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from decimal import Decimal
from io import StringIO
from pathlib import Path

from typer.testing import CliRunner

from kofn.cli import app

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(
    r"^```(?P<language>python|console)\n(?P<code>.*?)^```\n(?:\n```output\n(?P<output>.*?)^```\n)?", flags=re.S | re.M
)
SECONDS = re.compile(r"\b\d+(?:\.\d+)? s\b")  # "trained in 2.3 s", another time another number
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*\.?\d*(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class Ran:
    """A block of a page, what the page says it printed, and what it printed now."""

    language: str
    code: str
    told: str
    printed: str


def run(page: Path) -> Iterator[Ran]:
    """Run the blocks of a page in the working folder, in one namespace."""
    names: dict[str, object] = {}
    for block in BLOCK.finditer(page.read_text()):
        language, code, told = block.groups()
        answer = ""
        if language == "python":
            answer = printed(code, names, str(page))
        elif told is not None:
            answer = answered(code)
        yield Ran(language, code, told or "", answer)


def printed(code: str, names: dict[str, object], file: str = "<page>") -> str:
    """Run a block; what it printed, and the value of its last line if that is an expression."""
    body = ast.parse(code).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    told = StringIO()
    with redirect_stdout(told):
        exec(compile(ast.Module(body, []), file, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), file, "eval"), names)
            if value is not None:
                print(repr(value))
    return "".join(f"{line.rstrip()}\n" for line in told.getvalue().strip("\n").splitlines())


def answered(commands: str) -> str:
    """What the commands of kofn among these answer, one after the other; an error if one fails."""
    told = []
    for line in commands.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["kofn"]:
            result = CliRunner().invoke(app, words[1:], env={"COLUMNS": "120"}, catch_exceptions=False)
            if result.exit_code:
                raise RuntimeError(f"{line} ended with status {result.exit_code}: {result.output}")
            told.append(result.output)
    return "".join(f"{line.rstrip()}\n" for line in "".join(told).splitlines())


def same(one: str, other: str) -> bool:
    """Equal but for spaces, seconds, and the last digits of numbers, which may differ from machine to machine."""
    one, other = (SECONDS.sub("some s", text) for text in (one, other))
    shapes = ["".join(NUMBER.sub("#", text).split()) for text in (one, other)]
    return shapes[0] == shapes[1] and all(map(_near, NUMBER.findall(one), NUMBER.findall(other)))


def _near(one: str, other: str) -> bool:
    """Within two per cent, or within a unit of the last digit after the point."""
    a, b = (Decimal(number.replace(",", "")) for number in (one, other))
    unit = Decimal(1).scaleb(int(a.as_tuple().exponent)) if "." in one else Decimal(0)
    return abs(a - b) <= max(unit, abs(b) / 50)


def rewritten(page: Path) -> str:
    """The page with what its blocks print today; what is the same but for last digits is left as it is."""
    ran = run(page)

    def written(_: re.Match[str]) -> str:
        block = next(ran)
        output = block.told if same(block.told, block.printed) else block.printed
        return f"```{block.language}\n{block.code}```\n" + (f"\n```output\n{output}```\n" if output else "")

    return BLOCK.sub(written, page.read_text())


def main() -> None:
    """Rewrite the pages that are named, or all of the site."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path, help="README.md and all of docs/ if none is named")
    named = [page.resolve() for page in parser.parse_args().pages]
    pages = named or [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        if page.parent.name == "tutorials":  # these have notebooks: make tutorials
            continue
        if BLOCK.search(page.read_text()):
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)  # for files that a page writes
                text = rewritten(page)
                os.chdir(ROOT)
            if text != page.read_text():
                page.write_text(text)
                print("wrote", page.relative_to(ROOT))


if __name__ == "__main__":
    main()
