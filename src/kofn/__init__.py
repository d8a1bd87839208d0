"""Learning from counts: the law of the number of positives in a bag, exact, differentiable, in linear time."""

from kofn import counts
from kofn.counts import count_posteriors, log_count_between, log_count_distribution, log_count_prob

__version__ = "0.1.0.dev0"

__all__ = ["count_posteriors", "counts", "log_count_between", "log_count_distribution", "log_count_prob"]
