"""The exact, differentiable distribution of S, the number of positives among independently scored instances."""

from kofn.counts._distribution import CountDistribution, Counts
from kofn.counts._engines import backend, use
from kofn.counts._functions import count_posteriors, log_count_between, log_count_distribution, log_count_prob
from kofn.counts._layout import Layout
from kofn.counts._sum_distribution import SumDistribution, log_sum_prob

__all__ = [
    "CountDistribution",
    "Counts",
    "Layout",
    "SumDistribution",
    "backend",
    "count_posteriors",
    "log_count_between",
    "log_count_distribution",
    "log_count_prob",
    "log_sum_prob",
    "use",
]
