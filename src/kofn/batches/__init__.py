"""Batches of bags: gathered in one go, the same in every run, on one process or many.

A sampler plans an epoch from its seed and the epoch's number alone, so that every process of a distributed run knows
the whole plan and takes its part of each step, and a run that was cut off goes on as if nothing had happened. Each
batch carries its share of its step's bags; weighted by it, the gradients of processes and of accumulated batches add
up to the gradient of the whole step, however uneven the parts are.
"""

from kofn.batches._datasets import BagDataset, Batch, Draw
from kofn.batches._samplers import BagSampler, StepSampler

__all__ = ["BagDataset", "BagSampler", "Batch", "Draw", "StepSampler"]
