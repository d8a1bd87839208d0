"""Learners: models that minimise a loss. Any of them goes with any task, since all it needs is the loss's gradient.

The parts of `Network` serve a training loop of your own: data sets and samplers of bags, a perceptron, attention.
"""

from kofn.learners import _require_train  # noqa: F401  # the requirement first
from kofn.learners._attention import AttentionMIL, AttentionPooling, GatedAttentionPooling
from kofn.learners._bag_dataset import BagDataset, Batch, Draw
from kofn.learners._bag_sampler import BagSampler, StepSampler
from kofn.learners._best_of import BestOf
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
    TransportObjective,
    between,
)
from kofn.learners._perceptron import Logit, mlp, start_at_rate
from kofn.learners._problem import Problem
from kofn.learners._pu_problem import PUProblem
from kofn.learners._stopping import ByLabelAccuracy, ByLoss, ByLossAndError, ByPredictedShare, StoppingRule
from kofn.learners._trees import Trees

__all__ = [
    "EM",
    "AttentionMIL",
    "AttentionPooling",
    "BagDataset",
    "BagObjective",
    "BagSampler",
    "Batch",
    "BestOf",
    "ByLabelAccuracy",
    "ByLoss",
    "ByLossAndError",
    "ByPredictedShare",
    "ContaminationObjective",
    "CountObjective",
    "Draw",
    "Fitted",
    "GatedAttentionPooling",
    "Learner",
    "Linear",
    "Logit",
    "Network",
    "Objective",
    "PUObjective",
    "PUProblem",
    "PooledObjective",
    "Problem",
    "Progress",
    "ProportionObjective",
    "StepSampler",
    "StoppingRule",
    "TransportObjective",
    "Trees",
    "between",
    "boosting_objective",
    "mlp",
    "start_at_rate",
]
