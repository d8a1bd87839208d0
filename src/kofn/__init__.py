"""Learning from counts: the law of the number of positives in a bag, exact, differentiable, in linear time."""

from kofn import counts, losses, metrics, models, targets
from kofn.bags import Bags
from kofn.counts import count_posteriors, log_count_between, log_count_distribution, log_count_prob
from kofn.distributions import ConditionalBernoulli, PoissonBinomial
from kofn.losses import count_loss, mixture_proportion
from kofn.targets import AtLeast, AtMost, Between, Distributed, Exactly, Noisy, OneOf

__version__ = "0.1.0.dev0"

__all__ = [
    "AtLeast",
    "AtMost",
    "Bags",
    "Between",
    "ConditionalBernoulli",
    "Distributed",
    "Exactly",
    "Noisy",
    "OneOf",
    "PoissonBinomial",
    "count_loss",
    "count_posteriors",
    "counts",
    "log_count_between",
    "log_count_distribution",
    "log_count_prob",
    "losses",
    "metrics",
    "mixture_proportion",
    "models",
    "targets",
]
