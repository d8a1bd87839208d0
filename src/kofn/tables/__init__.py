"""Tables in CSV and Parquet: train on them, predict them, measure on them."""

from kofn.estimators._columns import Columns
from kofn.estimators._measures import count_summaries
from kofn.tables._compare_table import compare_tables
from kofn.tables._cross_validation import cross_validate_table
from kofn.tables._effect_figure import draw_effect
from kofn.tables._effect_table import Effect, effect_of
from kofn.tables._evaluate_table import evaluate_bags, evaluate_rows
from kofn.tables._fit_table import fit_table
from kofn.tables._predict_table import predict_bags, predict_rows
from kofn.tables._report_table import report_table
from kofn.tables._table_file import TableFile
from kofn.tables._table_model import TableModel, check_model_target
from kofn.tables._table_warning import TableWarning
from kofn.tables._writing import check_output, write_table

__all__ = [
    "Columns",
    "Effect",
    "TableFile",
    "TableModel",
    "TableWarning",
    "check_model_target",
    "check_output",
    "compare_tables",
    "count_summaries",
    "cross_validate_table",
    "draw_effect",
    "effect_of",
    "evaluate_bags",
    "evaluate_rows",
    "fit_table",
    "predict_bags",
    "predict_rows",
    "report_table",
    "write_table",
]
