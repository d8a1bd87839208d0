"""The paper's tables as data, one run of a cell, the grid of runs, and the report made of the records."""

from kofn.experiments._cells import Cell, Run, cells, runs
from kofn.experiments._grid import run_grid
from kofn.experiments._paper_figures import figures
from kofn.experiments._records import collect, load_records
from kofn.experiments._report import report
from kofn.experiments._reproduce import reproduce
from kofn.experiments._run import run_cell
from kofn.experiments._summary import Row, markdown, summary

__all__ = [
    "Cell",
    "Row",
    "Run",
    "cells",
    "collect",
    "figures",
    "load_records",
    "markdown",
    "report",
    "reproduce",
    "run_cell",
    "run_grid",
    "runs",
    "summary",
]
