"""kofn predict: probabilities of rows, or distributions of the counts of bags."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kofn.cli import _options as options
from kofn.cli._app import as_json
from kofn.cli._outputs import Force, require_writable
from kofn.cli._screen_text import line


def predict(
    model: options.Model,
    data: options.Data,
    output: Annotated[Path, options.output_option("OUT", "The table to write: CSV or Parquet, by its extension.")],
    bag: Annotated[
        str | None,
        options.text_option("COLUMNS", "Write one line per bag: the distribution of its count."),
    ] = None,
    copies: options.CopiesAsTrained = None,
    keep: Annotated[
        str | None,
        options.text_option("COLUMNS", "Columns of DATA to copy to the output, separated by commas."),
    ] = None,
    posterior: Annotated[
        bool,
        typer.Option("--posterior", help="Also write P(positive | the label of the row's bag), which DATA must have."),
    ] = False,
    interval: options.Interval = None,
    force: Force = False,
    json: options.Json = False,
) -> None:
    """Write the probability of each row, or the counts of bags.

    Without --bag, the output has the probability that each row is positive. With --bag, it has the distribution of
    each bag's count of positive rows.

    With --posterior, a row's line also has the probability given what is known of its bag: in a bag whose count is
    known, they add up to that count. Bags, labels and copies are in the columns of training.

    A bag's line has its size, the mean of its count of positive rows, the ends (low, high) of its central 90 %
    interval, and the probability that at least one row is positive. A model of multiple instances (kofn fit mil) gives
    only the size and the last: labels that say "at least one" do not tell how many rows are positive.

    With --interval, the lines also have confidence intervals, which say how far another sample of bags could have moved
    the model: the ends low and high of a row's probability, and mean_low and mean_high of a bag's mean. The model must
    have been fitted with --bootstrap. Posteriors have no intervals: --posterior and --interval exclude each other.

    With several classes, there is a column for each of them, such as probability_CLASS and mean_CLASS.

    \b
    Examples:
      kofn predict model new.csv --keep id -o rows.csv
      kofn predict model new.parquet --bag county -o counties.csv
      kofn predict model votes.csv --posterior --keep id -o rows.csv
      kofn predict model votes.csv --interval 0.9 --keep id -o rows.csv
    """  # noqa: D301  # \b keeps the lines of the example
    if bag is not None and keep is not None:
        raise ValueError("--keep copies columns of rows, and --bag writes one line per bag. Leave one of them out.")
    if bag is not None and posterior:
        raise ValueError("--posterior is about rows, and --bag writes one line per bag. Leave one of them out.")
    if bag is None and copies is not None:
        raise ValueError("--copies is about the count of a bag. Name the column of bags with --bag, or leave it out.")
    from kofn.tables import TableFile, TableModel, check_output, predict_bags, predict_rows

    check_output(output)
    require_writable(output, force=force, inputs=(model, data))
    TableFile(data)
    loaded = TableModel.load(model)
    if bag is None:
        lines = predict_rows(loaded, data, output, keep=keep, posterior=posterior, interval=interval)
    else:
        lines = predict_bags(loaded, data, output, bag=bag, copies=copies, interval=interval)
    what = "rows" if bag is None else "bags"
    if json:
        as_json({"output": str(output), what: lines})
    else:
        line(f"{output}: {lines:,} {what}")
