"""Bags whose instances lie on several processes, as when one bag is too large for one of them.

Whatever is asked of a bag is put together from sums and products over its instances: the moments under a tilt, and the
characteristic function at some frequencies. Each process has those of its own instances; `torch.distributed` gathers
them, about five times for each bag, at most 129 numbers, and all processes go on with the same totals. The C++ core
does it as it does a large bag on several threads (native/src/large_bag.h).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch import distributed as processes

from kofn.counts import CountDistribution, _native
from kofn.counts._closed import with_gradient


@dataclass(frozen=True)
class _Team:
    """The processes of a group: how many, and what collects bytes from all of them, in their order."""

    size: int
    gather: Callable[[bytes], list[bytes]]


def log_count_prob(
    logits: Tensor,
    counts: Tensor | int,
    *,
    mask: Tensor | None = None,
    offsets: Tensor | None = None,
    group: Any = None,
) -> Tensor:
    """log P(S = count) of bags whose instances lie on several processes.

        S = sum over processes r and their instances i of y_ri,    d log P(S = s) / d x_ri = P(y_ri = 1 | S = s) - p_ri

    All processes of the group make this call, each with its own instances of every bag. A bag may have any number of
    them anywhere, also none: dense logits differ in their last dimension, ragged ones in their offsets. All have the
    same value, equal to that of one process to about 1e-12, and each has the gradient by its own logits; the backward
    pass does not communicate. So a loss of these values is one loss that every process knows, and its gradients by
    parameters that processes share are to be added up over them, not averaged.

    It needs the C++ core, and is computed on the CPU, where logits on other devices are copied. There are first
    derivatives only.

    Args:
        logits: (..., n) log-odds of this process's instances; (m,) with `offsets`.
        counts: integers that broadcast to one for each bag, or one int for all; the same on every process.
        mask: (..., n) bool, True where an instance exists. Only for dense logits.
        offsets: (b + 1,) int64 from 0 to m.
        group: of `torch.distributed`, one that moves CPU tensors; None for all processes.

    Returns:
        One number for each bag, in the dtype of the logits; -inf with gradient zero where the count is impossible.

    Raises:
        RuntimeError: torch.distributed was not initialised; the C++ core is not there; a process is gone.
        ValueError: not the same number of bags, or not the same counts, on every process; shapes that do not fit.

    Examples:
        >>> import torch, kofn.contrib.shared_bags
        >>> store = torch.distributed.HashStore()  # a group of one process, in place of torchrun
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> kofn.contrib.shared_bags.log_count_prob(torch.zeros(4), 2).exp()
        tensor(0.3750)
        >>> torch.distributed.destroy_process_group()
    """
    return _log_shared(CountDistribution(logits, mask=mask, offsets=offsets), ("counts", counts), None, group)


def log_count_between(
    logits: Tensor,
    low: Tensor | int,
    high: Tensor | int,
    *,
    mask: Tensor | None = None,
    offsets: Tensor | None = None,
    group: Any = None,
) -> Tensor:
    """log P(low <= S <= high) of bags whose instances lie on several processes; see `log_count_prob`.

        P(low <= S <= high) = sum_{s = low}^{high} P(S = s)

    Args:
        logits: (..., n) log-odds of this process's instances; (m,) with `offsets`.
        low: smallest allowed counts that broadcast to one for each bag, or one int; the same on every process.
        high: largest allowed counts, included.
        mask: (..., n) bool, True where an instance exists. Only for dense logits.
        offsets: (b + 1,) int64 from 0 to m.
        group: of `torch.distributed`, one that moves CPU tensors; None for all processes.

    Returns:
        One number for each bag, in the dtype of the logits; -inf with gradient zero for an interval without a possible
        count, 0 with gradient zero for one that allows all.

    Raises:
        RuntimeError: as `log_count_prob` does.
        ValueError: as `log_count_prob` does.

    Examples:
        >>> import torch, kofn.contrib.shared_bags
        >>> store = torch.distributed.HashStore()  # a group of one process, in place of torchrun
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> kofn.contrib.shared_bags.log_count_between(torch.zeros(4), 1, 4).exp()
        tensor(0.9375)
        >>> torch.distributed.destroy_process_group()
    """
    return _log_shared(CountDistribution(logits, mask=mask, offsets=offsets), ("low", low), ("high", high), group)


def _log_shared(
    dist: CountDistribution, low: tuple[str, Tensor | int], high: tuple[str, Tensor | int] | None, group: Any
) -> Tensor:
    layout = dist.instance_layout
    first = layout.whole_numbers(*low).cpu().contiguous()
    last = None if high is None else layout.whole_numbers(*high).cpu().contiguous()
    team = _team_of(group)
    _require_the_same(team, first, last)
    x = layout.present(dist.logits, -torch.inf)
    x = (x if x.dtype in _native.DTYPES else x.double()).cpu()
    solve = partial(_solve, offsets=layout.offsets, low=first, high=last, team=team)
    return with_gradient(x, solve, _no_higher_derivative, layout.spread).to(dist.logits)


def _solve(
    x: Tensor, gradient: bool, *, offsets: Tensor | None, low: Tensor, high: Tensor | None, team: _Team
) -> tuple[Tensor, Tensor | None]:
    x = x.contiguous().resolve_neg()
    return _native.shared_event(x, offsets, low, high, team.size, team.gather, gradient=gradient)


def _no_higher_derivative(_: Tensor) -> NoReturn:
    raise RuntimeError(
        "counts of bags on several processes have first derivatives only, outside of torch.func; call backward or grad "
        "without create_graph=True."
    )


def _team_of(group: Any) -> _Team:
    """Require the core, and a group that has this process and moves CPU tensors."""
    if not _native.available:
        raise RuntimeError(
            "a bag on several processes needs the C++ core of kofn, which is not built here. Install kofn with a C++ "
            "compiler, or from a wheel; kofn.counts.backend() then says 'native'."
        )
    if not (processes.is_available() and processes.is_initialized()):
        raise RuntimeError(
            "a bag on several processes needs torch.distributed. Start the processes with torchrun and call "
            "torch.distributed.init_process_group('gloo') first."
        )
    size, moves = processes.get_world_size(group), processes.get_backend_config(group)
    if size < 1 or "cpu:" not in moves:
        raise ValueError(
            f"`group` must have this process in it and move CPU tensors; got one of {moves!r}. "
            "Beside NCCL make another: torch.distributed.new_group(backend='gloo')."
        )

    def gather(mine: bytes) -> list[bytes]:
        sent = torch.frombuffer(bytearray(mine), dtype=torch.uint8)
        got = [torch.empty_like(sent) for _ in range(size)]
        processes.all_gather(got, sent, group=group)
        return [part.numpy().tobytes() for part in got]

    return _Team(size, gather)


def _require_the_same(team: _Team, low: Tensor, high: Tensor | None) -> None:
    """Require as many bags, and the same counts, on every process: all of them raise, or none."""
    bags = [int.from_bytes(part, "little") for part in team.gather(low.numel().to_bytes(8, "little"))]
    if len(set(bags)) > 1:
        raise ValueError(
            f"`logits` must be of the same bags on every process; in their order these have {bags} bags. "
            "A bag without an instance here is an empty row, or two equal offsets."
        )
    asked = low if high is None else torch.stack([low, high])
    parts = team.gather(asked.numpy().tobytes()) if bags[0] else []
    for rank, part in enumerate(parts):
        if part != parts[0]:
            raise ValueError(
                f"`counts`, or `low` and `high`, must be the same on every process; those of process {rank} are not "
                "those of process 0. They are of the whole bag: add up counts of its parts first."
            )
