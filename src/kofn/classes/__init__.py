"""The differentiable distribution of the counts of several classes among independently scored instances."""

from kofn.classes._class_distribution import ClassCountDistribution
from kofn.classes._class_functions import class_count_posteriors, log_class_count_prob
from kofn.classes._joint import BUDGET, Method, joint_cells
from kofn.classes._one_vs_rest import one_vs_rest

__all__ = [
    "BUDGET",
    "ClassCountDistribution",
    "Method",
    "class_count_posteriors",
    "joint_cells",
    "log_class_count_prob",
    "one_vs_rest",
]
