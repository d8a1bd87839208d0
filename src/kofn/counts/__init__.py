"""The exact, differentiable law of S, the number of positives among instances that are scored independently."""

from kofn.counts._backend import backend, use
from kofn.counts._law import count_posteriors, log_count_between, log_count_distribution, log_count_prob

__all__ = ["backend", "count_posteriors", "log_count_between", "log_count_distribution", "log_count_prob", "use"]
