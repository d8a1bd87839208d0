"""Training on bags with Lightning: one module, one data module, the paper's stopping rules, one call to fit."""

from kofn.training import _require_lightning  # noqa: F401  # first
from kofn.training._data_module import CountData
from kofn.training._module import CountModule
from kofn.training._objectives import (
    BagObjective,
    ContaminationObjective,
    CountObjective,
    Objective,
    PooledObjective,
    ProportionObjective,
    PUObjective,
    between,
)
from kofn.training._stopping import ByLoss, ByLossAndError, ByPrior, StoppingRule
from kofn.training._trainer import fit

__all__ = [
    "BagObjective",
    "ByLoss",
    "ByLossAndError",
    "ByPrior",
    "ContaminationObjective",
    "CountData",
    "CountModule",
    "CountObjective",
    "Objective",
    "PUObjective",
    "PooledObjective",
    "ProportionObjective",
    "StoppingRule",
    "between",
    "fit",
]
