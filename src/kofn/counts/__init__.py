"""The exact, differentiable distribution of S, the number of positives among independently scored instances."""

from kofn.counts._backend import backend, use
from kofn.counts._distribution import CountDistribution
from kofn.counts._functions import count_posteriors, log_count_between, log_count_distribution, log_count_prob
from kofn.counts._layout import Layout
from kofn.counts._shared_bags import log_shared_count_between, log_shared_count_prob

__all__ = [
    "CountDistribution",
    "Layout",
    "backend",
    "count_posteriors",
    "log_count_between",
    "log_count_distribution",
    "log_count_prob",
    "log_shared_count_between",
    "log_shared_count_prob",
    "use",
]
