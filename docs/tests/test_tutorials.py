"""The tutorials run, and what their pages show is what they put out today."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from nearly_same import IMAGE, same_picture
from outputs import same

nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed: pip install -e '.[docs]'")
pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install -e '.[docs]'")
from mkdocs.exceptions import PluginError  # noqa: E402
from notebook_cells import FOLDER, cells_of, pages  # noqa: E402
from notebook_pages import DARK, LIGHT, filled, recoloured, style  # noqa: E402
from run_notebooks import WarnedError, run  # noqa: E402

each_page = pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
WIDEST = 88  # letters of code that fit a page of 1,280 pixels


def notebook_of(page: Path) -> Any:
    return nbformat.read(page.with_suffix(".ipynb"), as_version=4)


def same_output(one: Any, other: Any) -> bool:
    """Equal but for what another machine may round otherwise."""
    if one.output_type != other.output_type or sorted(one.get("data", {})) != sorted(other.get("data", {})):
        return False
    if "text" in one:
        return same(one.text, other.text)
    if (drawn := one.data.get("image/svg+xml")) is not None:
        return same_picture(drawn, other.data["image/svg+xml"], most=2)
    return same(one.data["text/plain"], other.data["text/plain"])


def test_there_are_tutorials_and_each_has_its_place() -> None:
    assert pages()
    listed = (FOLDER / "index.md").read_text()
    nav = (FOLDER.parents[1] / "mkdocs.yml").read_text()
    for page in pages():
        assert f"({page.name})" in listed
        assert f"tutorials/{page.name}" in nav
        assert f"[{page.stem}.ipynb]({page.stem}.ipynb)" in page.read_text()
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == {page.stem for page in pages()}


@each_page
def test_a_page_can_be_read(page: Path) -> None:
    text = page.read_text()
    assert "simulated" in text
    assert "## What can go wrong" in text
    cells = cells_of(text)
    code = [line for cell in cells if cell.kind != "markdown" for line in cell.text.splitlines()]
    assert [line for line in code if len(line) > WIDEST] == []
    shown = notebook_of(page).cells
    for cell, done in zip(cells, shown, strict=True):
        figures = sum("image/svg+xml" in output.get("data", {}) for output in done.get("outputs", []))
        assert figures == bool(cell.figure), cell.text
    for output in (output for done in shown for output in done.get("outputs", [])):
        if "image/svg+xml" in output.get("data", {}):
            drawn = recoloured(output.data["image/svg+xml"], "words")
            assert "\n" not in drawn
            assert set(re.findall(r"#[0-9a-f]{6}\b", IMAGE.sub("", drawn))) == set()


@pytest.mark.slow
@each_page
def test_the_notebook_is_what_the_page_puts_out_today(page: Path) -> None:
    committed, today = notebook_of(page), run(page)
    assert [cell.source for cell in committed.cells] == [cell.source for cell in today.cells], "run `make tutorials`"
    drawn = "".join(
        output.data.get("image/svg+xml", "")
        for cell in committed.cells
        for output in cell.get("outputs", [])
        if "data" in output
    )
    if drawn and f"Matplotlib v{mpl.__version__}," not in drawn:
        pytest.skip("drawn by another release of matplotlib: `make tutorials` and look")
    for one, other in zip(committed.cells, today.cells, strict=True):
        if one.cell_type == "code":
            assert len(one.outputs) == len(other.outputs), one.source
            for before, now in zip(one.outputs, other.outputs, strict=True):
                assert same_output(before, now), f"stale, run `make tutorials`:\n{one.source}\n{before}\n{now}"


def made(text: str) -> Any:
    new = nbformat.v4
    cell = new.new_code_cell("print(1)", outputs=[new.new_output("stream", text=text)])
    return new.new_notebook(cells=[new.new_markdown_cell("# One"), cell])


def test_output_stands_below_its_code() -> None:
    page = filled("# One\n\n```python\nprint(1)\n```\n", made("1 <b>\n"), name="one.md")
    assert page.index("```python\nprint(1)\n```") < page.index("```output\n1 <b>\n```")


def test_a_page_that_was_changed_stops_the_build() -> None:
    with pytest.raises(PluginError, match=r"The notebook of one\.md is stale: run `make tutorials`"):
        filled("# One\n\n```python\nprint(2)\n```\n", made("1\n"), name="one.md")


def test_tables_and_commands() -> None:
    table = '<div>\n<style scoped>\n  .dataframe {}\n</style>\n<table border="1" class="dataframe">\n<tr style="a"><td>1</td></tr></table>\n</div>'
    new = nbformat.v4
    cell = new.new_code_cell("!kofn info a", outputs=[new.new_output("display_data", data={"text/html": table})])
    page = filled("```console\nkofn info a\n```\n", new.new_notebook(cells=[cell]), name="one.md")
    assert '<div class="output"><div><table><tr><td>1</td></tr></table></div></div>' in page


def test_figures_have_the_colours_of_both_pages() -> None:
    sheet = style()
    for look in (LIGHT, DARK):
        assert all(colour in sheet for role, colour in look.items() if role != "paper")
    for role, colour in LIGHT.items():
        assert f"var(--figure-{role})" in recoloured(f'<svg viewBox="0 0 1 1"><path style="fill: {colour}"/></svg>', "")
        assert f"--figure-{role}:" in sheet


@pytest.mark.slow
def test_warnings_and_errors_are_not_passed_over(tmp_path: Path) -> None:
    from nbclient.exceptions import CellExecutionError

    page = tmp_path / "page.md"
    page.write_text("```python\nimport sys\nprint('careful', file=sys.stderr)\n```\n")
    with pytest.raises(WarnedError, match=r"page\.md, cell 1: careful"):
        run(page)
    page.write_text("```python\n1 / 0\n```\n")
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        run(page)


def test_last_digits_may_differ_and_nothing_else() -> None:
    one = made("loss 0.50, 9 of 12, trained in ... s").cells[1].outputs[0]
    for text, expected in {
        "loss 0.50, 9 of 12, trained in ... s": True,
        "loss 0.51, 9 of 12,  trained in ... s": True,
        "loss 0.56, 9 of 12, trained in ... s": False,
        "loss 0.50, 8 of 12, trained in ... s": False,
        "loss 0.50, 9 of 12, and more": False,
    }.items():
        other = copy.deepcopy(one)
        other.text = text
        assert same_output(one, other) is expected, text
