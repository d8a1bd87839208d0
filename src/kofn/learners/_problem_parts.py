"""A large problem in parts, one after the other, so that what is computed on the way stays small."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from kofn._io.mapped import in_order
from kofn.bags import Bags
from kofn.learners._objectives import BagObjective, CountObjective, ProportionObjective, TransportObjective
from kofn.learners._problem import Problem

ROWS = 1 << 18  # of a part, unless a bag has more
OF_ONE_BAG = (BagObjective, CountObjective, ProportionObjective, TransportObjective)  # losses that compare no bags


def parts_of(problem: Problem, rows: int = ROWS) -> list[tuple[slice, Problem]]:
    """Problems of consecutive bags, and where the rows of each are.

    Only bags that lie one after the other can be cut apart, and only a loss of single bags can; else the problem is the
    only part.

    Args:
        problem: whose loss is to be computed part by part.
        rows: of a part, about.

    Examples:
        >>> import numpy as np, torch, kofn
        >>> from kofn.learners import CountObjective
        >>> bags, counts = kofn.Bags.from_sizes([2, 2, 2, 1]), torch.tensor([1, 0, 2, 1])
        >>> x = np.zeros((7, 1), dtype=np.float32)
        >>> options = {"labels": counts, "objective": CountObjective(), "rate": 0.5, "proportions": counts / 2}
        >>> parts = parts_of(Problem(instances=x, bags=bags, **options), rows=4)
        >>> [(where.start, where.stop, part.labels.tolist()) for where, part in parts]
        [(0, 4, [1, 0]), (4, 7, [2, 1])]
    """
    n, offsets = len(problem.instances), problem.bags.offsets
    if n <= rows or not isinstance(problem.objective, OF_ONE_BAG) or not one_after_the_other(problem.bags):
        return [(slice(0, n), problem)]
    index = problem.bags.index
    starts = torch.cat([index.new_zeros(1), index[offsets[1:-1]], index.new_tensor([n])])  # rows of bags, and the end
    cuts = torch.searchsorted(starts, torch.arange(0, n + rows, rows).clamp(max=n)).unique()  # the first bags of parts
    same = torch.arange(int(starts[cuts].diff().max()))
    found = []
    for first, last in pairwise(cuts.tolist()):
        where, entries = slice(int(starts[first]), int(starts[last])), slice(int(offsets[first]), int(offsets[last]))
        positions = index[entries] - where.start
        # Most often the rows themselves, which need not be kept for each part.
        if torch.equal(positions, same[: len(positions)]):
            positions = same[: len(positions)]
        part = replace(
            problem,
            instances=problem.instances[where],
            bags=Bags(
                positions,
                offsets[first : last + 1] - entries.start,
                copies=None if problem.bags.copies is None else problem.bags.copies[entries],
            ),
            labels=problem.labels[first:last],
            proportions=problem.proportions[first:last],
            weight=None if problem.weight is None else problem.weight[first:last],
            together=None,
        )
        found.append((where, part))
    return found


def bag_after_bag(problem: Problem) -> tuple[Tensor, Problem]:
    """The rows of a problem in the order in which its bags have them, and the problem of these; all lie in a bag.

    The rows of a table in a file are sorted in another file beside it.
    """
    index = problem.bags.index.numpy()
    first = np.unique(index, return_index=True)[1]
    order = index[np.sort(first)]
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    bags = Bags(place[index], problem.bags.offsets, names=problem.bags.names, copies=problem.bags.copies)
    return torch.from_numpy(order), replace(problem, instances=in_order(problem.instances, order), bags=bags)


def mean_loss(parts: list[tuple[slice, Problem]], problem: Problem, logits: Tensor) -> Tensor:
    """The mean loss of a problem from logits of its instances, part by part."""
    return problem.mean(torch.cat([part.losses(logits[where]) for where, part in parts]))


def one_after_the_other(bags: Bags) -> bool:
    """Whether each bag's rows come in order, behind those of the bag before."""
    steps = bags.index.diff()
    if not len(bags) or bool((bags.offsets.diff() == 0).any()) or bool((steps < 0).any()):
        return False
    return bool((steps[bags.offsets[1:-1] - 1] > 0).all())
