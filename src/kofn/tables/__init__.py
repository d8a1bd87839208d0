"""Tables in CSV and Parquet: train on them, predict them, measure on them."""

from kofn.tables._encoder import TableEncoder
from kofn.tables._evaluate import evaluate_bags, evaluate_rows
from kofn.tables._files import TableFile
from kofn.tables._fit import fit_table
from kofn.tables._model import TableModel, check_model_target
from kofn.tables._predict import laws, predict_bags, predict_rows
from kofn.tables._report import report_table
from kofn.tables._writing import check_output, write_table

__all__ = [
    "TableEncoder",
    "TableFile",
    "TableModel",
    "check_model_target",
    "check_output",
    "evaluate_bags",
    "evaluate_rows",
    "fit_table",
    "laws",
    "predict_bags",
    "predict_rows",
    "report_table",
    "write_table",
]
