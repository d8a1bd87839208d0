"""Learning from counts: the distribution of the number of positives in a bag, exact, differentiable, in linear time."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kofn import (
        classes,
        counts,
        datasets,
        distributions,
        estimators,
        learners,
        losses,
        metrics,
        model_selection,
        report,
        tables,
        targets,
    )
    from kofn.bags import Bags
    from kofn.classes import class_count_posteriors, log_class_count_prob, one_vs_rest
    from kofn.counts import (
        CountDistribution,
        count_posteriors,
        log_count_between,
        log_count_distribution,
        log_count_prob,
        log_sum_prob,
    )
    from kofn.distributions import ConditionalBernoulli, PoissonBinomial
    from kofn.estimators import LLPClassifier, MILClassifier, PUClassifier, estimate_mixture
    from kofn.learners import EM, Linear, Network, Trees
    from kofn.losses import count_loss, mixture_proportion
    from kofn.targets import (
        AtLeast,
        AtMost,
        Between,
        ClassCounts,
        Distributed,
        Exactly,
        MarginalClassCounts,
        Noisy,
        OneOf,
        Sum,
    )

__version__ = "0.1.0"

# Where each public name lives. It is imported when it is first asked for, so that `kofn --help` need not wait for
# torch, nor the distribution of a count for scikit-learn.
_HOME = {
    "AtLeast": "targets",
    "AtMost": "targets",
    "Bags": "bags",
    "Between": "targets",
    "ClassCounts": "targets",
    "ConditionalBernoulli": "distributions",
    "CountDistribution": "counts",
    "Distributed": "targets",
    "EM": "learners",
    "Exactly": "targets",
    "LLPClassifier": "estimators",
    "Linear": "learners",
    "MILClassifier": "estimators",
    "MarginalClassCounts": "targets",
    "Network": "learners",
    "Noisy": "targets",
    "OneOf": "targets",
    "PUClassifier": "estimators",
    "PoissonBinomial": "distributions",
    "Sum": "targets",
    "Trees": "learners",
    "class_count_posteriors": "classes",
    "count_loss": "losses",
    "count_posteriors": "counts",
    "estimate_mixture": "estimators",
    "log_class_count_prob": "classes",
    "log_count_between": "counts",
    "log_count_distribution": "counts",
    "log_count_prob": "counts",
    "log_sum_prob": "counts",
    "mixture_proportion": "losses",
    "one_vs_rest": "classes",
}
_MODULES = (
    "classes", "counts", "datasets", "distributions", "estimators", "learners", "losses", "metrics",
    "model_selection", "report", "tables", "targets",
)  # fmt: skip

__all__ = [
    "EM",
    "AtLeast",
    "AtMost",
    "Bags",
    "Between",
    "ClassCounts",
    "ConditionalBernoulli",
    "CountDistribution",
    "Distributed",
    "Exactly",
    "LLPClassifier",
    "Linear",
    "MILClassifier",
    "MarginalClassCounts",
    "Network",
    "Noisy",
    "OneOf",
    "PUClassifier",
    "PoissonBinomial",
    "Sum",
    "Trees",
    "class_count_posteriors",
    "classes",
    "count_loss",
    "count_posteriors",
    "counts",
    "datasets",
    "distributions",
    "estimate_mixture",
    "estimators",
    "learners",
    "log_class_count_prob",
    "log_count_between",
    "log_count_distribution",
    "log_count_prob",
    "log_sum_prob",
    "losses",
    "metrics",
    "mixture_proportion",
    "model_selection",
    "one_vs_rest",
    "report",
    "tables",
    "targets",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"kofn.{name}")  # which makes it an attribute of kofn
    if name not in _HOME:
        raise AttributeError(f"module 'kofn' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"kofn.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
