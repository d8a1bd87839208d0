"""Learners: what is fitted to a loss. Any of them goes with any task, since all it needs is the loss's gradient."""

from kofn.learners import _require_train  # noqa: F401  # the requirement first
from kofn.learners._boosting_objective import boosting_objective
from kofn.learners._em import EM
from kofn.learners._learner import Fitted, Learner, Progress
from kofn.learners._linear import Linear
from kofn.learners._network import Network
from kofn.learners._objectives import (
    BagObjective,
    ContaminationObjective,
    CountObjective,
    Objective,
    PooledObjective,
    ProportionObjective,
    PUObjective,
    between,
)
from kofn.learners._problem import Problem, PUProblem
from kofn.learners._stopping import ByLoss, ByLossAndError, ByPrior, StoppingRule
from kofn.learners._trees import Trees

__all__ = [
    "EM",
    "BagObjective",
    "ByLoss",
    "ByLossAndError",
    "ByPrior",
    "ContaminationObjective",
    "CountObjective",
    "Fitted",
    "Learner",
    "Linear",
    "Network",
    "Objective",
    "PUObjective",
    "PUProblem",
    "PooledObjective",
    "Problem",
    "Progress",
    "ProportionObjective",
    "StoppingRule",
    "Trees",
    "between",
    "boosting_objective",
]
