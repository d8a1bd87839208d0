"""``python -m kofn.experiments TABLE``: run a table of the paper."""

from __future__ import annotations

import argparse

from kofn.experiments import PRESETS, TABLES, reproduce


def main() -> None:
    """Parse, call `reproduce`, print the files."""
    parser = argparse.ArgumentParser(prog="python -m kofn.experiments", description="Run a table of the paper.")
    parser.add_argument("table", choices=[*TABLES, "all"])
    parser.add_argument("--only", nargs="+", default=[], metavar="KEY=VALUE", help="such as data=adult method=CL")
    parser.add_argument("--seeds", type=int, help="how many; by default as many as the paper has")
    parser.add_argument("--jobs", type=int, default=1, help="processes on this machine")
    parser.add_argument("--scheduler", help="address of a dask.distributed scheduler")
    parser.add_argument("--preset", choices=PRESETS, default="fast")
    parser.add_argument("--results", default="results", help="folder of the records")
    parser.add_argument("--report", action="store_true", help="write Markdown, HTML and figures too")
    for path in reproduce(**vars(parser.parse_args())):
        print(path)


if __name__ == "__main__":
    main()
