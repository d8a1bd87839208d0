"""Losses for count-based weak labels: one for each task of the paper, and the baselines that it compares with."""

from kofn.losses._class_llp import class_proportion_loss, transport_loss
from kofn.losses._count import count_loss
from kofn.losses._llp import llp_loss, mutual_contamination_loss, pair_bags, proportion_loss
from kofn.losses._mil import mil_loss, pooled_bag_loss
from kofn.losses._modules import CountLoss, LLPLoss, MILLoss, PULoss
from kofn.losses._pu import cvir_loss, mixture_proportion, nnpu_loss, pu_loss, upu_loss

__all__ = [
    "CountLoss",
    "LLPLoss",
    "MILLoss",
    "PULoss",
    "class_proportion_loss",
    "count_loss",
    "cvir_loss",
    "llp_loss",
    "mil_loss",
    "mixture_proportion",
    "mutual_contamination_loss",
    "nnpu_loss",
    "pair_bags",
    "pooled_bag_loss",
    "proportion_loss",
    "pu_loss",
    "transport_loss",
    "upu_loss",
]
