"""Learning from counts: the law of the number of positives in a bag, exact, differentiable, in linear time."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kofn import batches, counts, losses, metrics, models, targets
from kofn.bags import Bags
from kofn.counts import count_posteriors, log_count_between, log_count_distribution, log_count_prob
from kofn.distributions import ConditionalBernoulli, PoissonBinomial
from kofn.losses import count_loss, mixture_proportion
from kofn.targets import AtLeast, AtMost, Between, Distributed, Exactly, Noisy, OneOf

if TYPE_CHECKING:
    from kofn import datasets, estimators, training
    from kofn.estimators import LLPClassifier, MILClassifier, PUClassifier

__version__ = "0.1.0.dev0"

__all__ = [
    "AtLeast",
    "AtMost",
    "Bags",
    "Between",
    "ConditionalBernoulli",
    "Distributed",
    "Exactly",
    "LLPClassifier",
    "MILClassifier",
    "Noisy",
    "OneOf",
    "PUClassifier",
    "PoissonBinomial",
    "batches",
    "count_loss",
    "count_posteriors",
    "counts",
    "datasets",
    "estimators",
    "log_count_between",
    "log_count_distribution",
    "log_count_prob",
    "losses",
    "metrics",
    "mixture_proportion",
    "models",
    "targets",
    "training",
]

# These need more than torch and numpy (the extra `train`), and are imported when they are first used.
_LATER = {
    "LLPClassifier": "kofn.estimators",
    "MILClassifier": "kofn.estimators",
    "PUClassifier": "kofn.estimators",
    "datasets": "",
    "estimators": "",
    "training": "",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'kofn' has no attribute {name!r}")
    module = import_module(_LATER[name] or f"kofn.{name}")
    return getattr(module, name) if _LATER[name] else module


def __dir__() -> list[str]:
    return sorted([*globals(), *_LATER])
