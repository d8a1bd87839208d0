"""The part of a problem that is learned from."""

from __future__ import annotations

import torch
from torch import Tensor

from kofn._io.mapped import mapping_of
from kofn.learners import Problem, PUProblem
from kofn.learners._problem_parts import bag_after_bag, one_after_the_other


def used_bags(problem: Problem) -> tuple[Tensor, Tensor, Problem]:
    """Bags that have a weight, rows that lie in them, and the problem of these alone: the others are as if absent.

    Of a table in a file the rows are those of one bag after the other, so that a bag is read in one go.
    """
    units = torch.arange(len(problem.strata))
    if isinstance(problem, PUProblem):  # deals all rows
        return units, torch.arange(len(problem.instances)), problem
    if problem.weight is not None:
        units = problem.weight.nonzero().flatten()
        problem = problem if len(units) == len(problem.bags) else problem.take(units)
    rows, problem = problem.compact()
    if mapping_of(problem.instances) is not None and not one_after_the_other(problem.bags):
        order, problem = bag_after_bag(problem)
        rows = rows[order]
    return units, rows, problem
