"""What a bag's label says about its count S, and its negative log-likelihood.

A weak label is a statement about S, the number of positives in a bag. Each class here is one kind of statement; its
`loss` is -log P(statement), one number for each bag, by the cheapest exact route to it.
"""

from kofn.targets._bounds import AtLeast, AtMost, Between, Exactly
from kofn.targets._class_counts import ClassCounts, ClassTarget, MarginalClassCounts
from kofn.targets._class_labels import class_counts_of_proportions, require_class_counts
from kofn.targets._discrete_laplace import DiscreteLaplace
from kofn.targets._labels import counts_of_proportions, from_bounds, from_counts, from_proportions
from kofn.targets._noisy import Noisy
from kofn.targets._sets import Distributed, OneOf
from kofn.targets._spread import Spread
from kofn.targets._sums import Sum
from kofn.targets._target import Statement, Target

__all__ = [
    "AtLeast",
    "AtMost",
    "Between",
    "ClassCounts",
    "ClassTarget",
    "DiscreteLaplace",
    "Distributed",
    "Exactly",
    "MarginalClassCounts",
    "Noisy",
    "OneOf",
    "Spread",
    "Statement",
    "Sum",
    "Target",
    "class_counts_of_proportions",
    "counts_of_proportions",
    "from_bounds",
    "from_counts",
    "from_proportions",
    "require_class_counts",
]
