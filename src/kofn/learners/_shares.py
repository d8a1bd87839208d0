"""A problem in shares of whole bags, one for each process of a fit, and how the rows reach that process."""

from __future__ import annotations

import mmap
import os
import socket
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kofn._io.mapped import mapping_of
from kofn.bags import Bags
from kofn.learners._problem import Floats, Problem
from kofn.learners._pu_problem import PUProblem
from kofn.learners._splits import Split


@dataclass(frozen=True)
class MappedFile:
    """A matrix in a file, to be opened by whoever sees the file: a memory map itself would be sent with all its values.

    Attributes:
        path: of the file, which every process must see.
        dtype: of the values.
        shape: of the matrix.
        offset: of its first byte.
    """

    path: str
    dtype: str
    shape: tuple[int, ...]
    offset: int

    def open(self) -> Floats:
        """The matrix, read when it is looked at.

        Raises:
            FileNotFoundError: this machine does not have it.
        """
        if not os.path.exists(self.path):
            raise FileNotFoundError(
                f"every worker must see the file {self.path}, in which the table lies during the fit; "
                f"{socket.gethostname()} does not. Write the model to a folder that all machines have in common."
            )
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape)


@dataclass(frozen=True, eq=False)
class Share:
    """The part of a problem that one process learns from and judges on.

    Attributes:
        problem: of the share's bags, without instances; its positions are those of `rows`.
        rows: (n,) positions of the share's instances in the whole table, ascending.
        splits: bags of the share to learn from and to judge on, for each split of the whole problem.
        table: the share's instances, or the file that the whole table is in.
    """

    problem: Problem
    rows: Tensor
    splits: list[Split]
    table: Floats | MappedFile

    def opened(self) -> Problem:
        """The problem with its instances. Rows of a file that follow each other are not copied."""
        table = self.table
        if isinstance(table, MappedFile):
            table = rows_of(table.open(), self.rows)
        return replace(self.problem, instances=table)


def shares_of(problem: Problem, splits: list[Split], number: int) -> list[Share]:
    """Cut a problem into shares of about as many instances, in each of which there is something to learn from.

    Bags stay whole, and a share is a run of them, as they come. Of a problem that needs some of each stratum, labelled
    positives and unlabelled instances, a share has its part of each, and deals its own bags.

    Raises:
        ValueError: a share would have no bag to learn from.

    Examples:
        >>> import torch, kofn
        >>> from kofn.learners import CountObjective
        >>> problem = Problem(
        ...     instances=np.zeros((8, 1), dtype=np.float32),
        ...     bags=kofn.Bags.from_sizes([3, 1, 2, 2]),
        ...     labels=torch.tensor([1, 0, 1, 1]),
        ...     objective=CountObjective(),
        ...     rate=0.5,
        ...     proportions=torch.tensor([0.3, 0.0, 0.5, 0.5]),
        ... )
        >>> [share.rows.tolist() for share in shares_of(problem, [], 2)]
        [[0, 1, 2, 3], [4, 5, 6, 7]]
    """
    strata = _needed(problem)
    owner = _owner_of_units(problem, strata, number)
    everything = torch.arange(len(owner))
    for train in [train for train, _ in splits] or [everything]:
        if not all(_has_each(strata, train[owner[train] == rank]) for rank in range(number)):
            raise ValueError(
                f"`cluster` must have so few workers that each has bags to learn from; it has {number}, too many for "
                f"{len(owner)} {'rows' if isinstance(problem, PUProblem) else 'bags'}. Use fewer, or one process."
            )
    file = file_of(problem.instances)
    shares = []
    for rank in range(number):
        units = (owner == rank).nonzero().flatten()
        mine = []
        for train, held in splits:
            judged = held[owner[held] == rank]
            judged = judged if _has_each(strata, judged) else judged[:0]  # the others judge without this one
            mine.append((torch.searchsorted(units, train[owner[train] == rank]), torch.searchsorted(units, judged)))
        rows, part = _without_instances(problem.take(units))
        shares.append(Share(part, rows, mine, file or rows_of(problem.instances, rows)))
    return shares


def file_of(instances: Floats) -> MappedFile | None:
    """The place in a file that instances are a memory map of; None for instances in memory."""
    owner, mapping = _memory_map(instances), mapping_of(instances)
    if owner is None or mapping is None or not instances.flags.c_contiguous:
        return None
    # numpy maps whole pages of a file; where in them a view begins, only its address tells.
    page = owner.offset - owner.offset % mmap.ALLOCATIONGRANULARITY
    begin = _address(instances) - _address(np.frombuffer(mapping, np.uint8))
    return MappedFile(str(owner.filename), instances.dtype.str, instances.shape, page + begin)


def _memory_map(array: Any) -> Any:
    """The memory map that an array is, or is a view of; None for an array in memory."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and array.filename is not None:
            return array
        array = array.base
    return None


def _address(array: NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])


def rows_of(instances: Floats, rows: Tensor) -> Floats:
    """Some of the instances, by ascending positions; a view of those that follow each other."""
    if len(rows) and int(rows[-1] - rows[0]) + 1 == len(rows):
        return instances[int(rows[0]) : int(rows[-1]) + 1]
    chosen: NDArray[Any] = instances[rows.numpy()]
    return chosen


def _needed(problem: Problem) -> Tensor:
    """(units,) the strata of which each share must have some; one for all where that does not matter."""
    return problem.strata if problem.needs_each_stratum else torch.zeros_like(problem.strata)


def _has_each(strata: Tensor, units: Tensor) -> bool:
    return len(strata[units].unique()) == len(strata.unique())


def _owner_of_units(problem: Problem, strata: Tensor, number: int) -> Tensor:
    """(units,) which share each unit goes to: the one in which the middle of its instances falls."""
    sizes = torch.ones_like(strata) if isinstance(problem, PUProblem) else problem.bags.sizes
    owner = torch.empty_like(strata)
    for stratum in strata.unique():
        members = strata == stratum
        ends = sizes[members].cumsum(0)
        owner[members] = ((2 * ends - sizes[members]) * number // (2 * ends[-1].clamp(min=1))).clamp(max=number - 1)
    return owner


def _without_instances(problem: Problem) -> tuple[Tensor, Problem]:
    """The instances that lie in a bag, and the problem of these, which are yet to be filled in."""
    rows, index = problem.bags.index.unique(return_inverse=True)
    nothing = np.empty((len(rows), 0), dtype=np.float32)
    if isinstance(problem, PUProblem):
        chosen = torch.searchsorted(rows, problem.chosen)
        problem = replace(problem, labeled=problem.labeled[rows], chosen=chosen)
    return rows, replace(problem, instances=nothing, bags=Bags(index, problem.bags.offsets, copies=problem.bags.copies))
