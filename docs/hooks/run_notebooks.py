"""Run the tutorials and keep their notebooks: `make tutorials`.

A notebook is its page, executed. Everything in it is the same on every run but the time that things took, which is
taken out. Anything on stderr is an error: a reader of a tutorial should not meet a warning that it does not explain.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from notebook_cells import FOLDER, cells_of, pages
from outputs import SECONDS

from kofn._io.atomic_write import atomic_write

# Before the first cell: figures as PNG, which GitHub shows, and as SVG in the colours of `docs/figures/drawing.py`,
# which the site turns into those of a dark page.
PROLOGUE = """
import sys
sys.path.insert(0, {figures!r})
import matplotlib, torch, tqdm, warnings
warnings.filterwarnings("ignore", category=tqdm.TqdmWarning)  # accelerate's bars, which nobody sees, want widgets
from drawing import LOOKS, settings
from matplotlib_inline.backend_inline import set_matplotlib_formats
sys.path.pop(0)
torch.set_num_threads(1)
%matplotlib inline
matplotlib.rcParams.update(settings(LOOKS["light"]) | {{"savefig.transparent": False, "figure.dpi": 110}})
set_matplotlib_formats("png", "svg", metadata={{"Date": None}})
"""


class WarnedError(Exception):
    """A cell wrote to stderr."""


def run(page: Path) -> Any:
    """Execute a page, in an empty folder.

    Returns:
        The notebook, an `nbformat.NotebookNode`.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell raised an error.
        WarnedError: a cell wrote to stderr.
    """
    new = nbformat.v4
    notebook = new.new_notebook(
        cells=[new.new_code_cell(PROLOGUE.format(figures=str(FOLDER.parent / "figures"))), *_cells(page)],
        metadata={
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
    )
    environment = {
        **os.environ,
        # The commands of this environment, without colours and progress bars, as wide as a page.
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "COLUMNS": "100",
        "OMP_NUM_THREADS": "1",
    }
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as sockets:
        client = NotebookClient(notebook, timeout=600, startup_timeout=300, resources={"metadata": {"path": folder}})
        manager = client.create_kernel_manager()
        manager.transport, manager.ip = "ipc", f"{sockets}/kernel"  # sockets of this user's, not ports of the machine
        client.execute(env=environment)
    del notebook.cells[0]
    number = 0
    for cell in notebook.cells:
        if cell.cell_type == "code":
            number += 1
            cell.execution_count, cell.metadata = number, {}
            cell.outputs = _joined(cell.outputs)
            for output in cell.outputs:
                _settle(output, page, number)
    return notebook


def _cells(page: Path) -> list[Any]:
    cells = []
    for position, cell in enumerate(cells_of(page.read_text())):
        make: Any = nbformat.v4.new_markdown_cell if cell.kind == "markdown" else nbformat.v4.new_code_cell
        cells.append(make(cell.source, id=f"cell-{position}"))
    return cells


def _joined(outputs: list[Any]) -> list[Any]:
    """Text that was printed in several pieces, which depends on the moment, as one."""
    joined: list[Any] = []
    for output in outputs:
        if joined and "text" in output and output.name == joined[-1].get("name"):
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def _settle(output: Any, page: Path, number: int) -> None:
    """Take out of an output what differs from run to run, and what nobody reads."""
    if output.get("name") == "stderr":
        raise WarnedError(f"{page.name}, cell {number}: {output.text}")
    if "text" in output:
        output.text = SECONDS.sub("... s", output.text.replace("\r\n", "\n"))
    if "execution_count" in output:
        output.execution_count = number
    if "metadata" in output:
        output.metadata = {}


def main() -> None:
    """Execute all tutorials, or those that are named, and write their notebooks beside them."""
    wanted = sys.argv[1:]
    for page in pages():
        if not wanted or page.stem in wanted:
            notebook = run(page)
            with atomic_write(page.with_suffix(".ipynb")) as part:
                part.write_text(nbformat.writes(notebook) + "\n")
            print(f"ran {page.name}")


if __name__ == "__main__":
    main()
