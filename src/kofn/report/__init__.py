"""A report of what was learned: one page that needs no network, from plain data or a fitted estimator."""

from kofn.estimators._verdicts import Verdict
from kofn.report._build import metrics_of, report_of
from kofn.report._column_contents import ColumnEffect, Importance, RowCurves
from kofn.report._contents import (
    BagDistribution,
    BagTable,
    Binomial,
    Calibration,
    Comparison,
    Confusion,
    ExampleBag,
    Instance,
    Method,
    Metric,
    Report,
)
from kofn.report._detail_contents import BagDetail, BagDetails, RowTable
from kofn.report._page import render, write
from kofn.report._paired import comparison_of
from kofn.report._paired_contents import PairedBags

__all__ = [
    "BagDetail",
    "BagDetails",
    "BagDistribution",
    "BagTable",
    "Binomial",
    "Calibration",
    "ColumnEffect",
    "Comparison",
    "Confusion",
    "ExampleBag",
    "Importance",
    "Instance",
    "Method",
    "Metric",
    "PairedBags",
    "Report",
    "RowCurves",
    "RowTable",
    "Verdict",
    "comparison_of",
    "metrics_of",
    "render",
    "report_of",
    "write",
]
