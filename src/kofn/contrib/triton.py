"""Probabilities of counts by a Triton kernel, on a CUDA device. Experimental: nobody has run it on one.

One launch computes the value and its gradient, so that backward is one multiplication. Derivatives of higher order are
those of `kofn.log_count_between`, in torch.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor
from triton.runtime.interpreter import InterpretedFunction

from kofn.contrib._triton_kernel import interval_kernel
from kofn.counts import CountDistribution, Counts
from kofn.counts._closed import with_gradient

#: Triton was imported with TRITON_INTERPRET=1: kernels run as Python, on CPU tensors.
INTERPRETED = isinstance(interval_kernel, InterpretedFunction)
_SMALL = 16.0  # instances: bags up to this size, on average, are a block


def log_count_prob(
    logits: Tensor, counts: Counts, *, mask: Tensor | None = None, offsets: Tensor | None = None
) -> Tensor:
    """`kofn.log_count_prob` by the Triton kernel: log P(S = count) of each bag.

    Raises:
        ValueError: logits that are not on a CUDA device; otherwise as `kofn.log_count_prob` does.
    """
    dist = CountDistribution(logits, mask=mask, offsets=offsets)
    wanted = dist.instance_layout.whole_numbers("counts", counts)
    return _log_interval(dist, wanted, None, lambda again: again.log_prob(wanted))


def log_count_between(
    logits: Tensor, low: Counts, high: Counts, *, mask: Tensor | None = None, offsets: Tensor | None = None
) -> Tensor:
    """`kofn.log_count_between` by the Triton kernel: log P(low <= S <= high) of each bag.

    Raises:
        ValueError: logits that are not on a CUDA device; otherwise as `kofn.log_count_between` does.
    """
    dist = CountDistribution(logits, mask=mask, offsets=offsets)
    first, last = dist.instance_layout.whole_numbers("low", low), dist.instance_layout.whole_numbers("high", high)
    return _log_interval(dist, first, last, lambda again: again.log_prob_between(first, last))


def _log_interval(
    dist: CountDistribution, low: Tensor, high: Tensor | None, plain: Callable[[CountDistribution], Tensor]
) -> Tensor:
    layout, dtype = dist.instance_layout, dist.logits.dtype
    _require_device(dist.logits)
    x = layout.present(dist.logits, -torch.inf)
    wide = x if dtype in (torch.float32, torch.float64) else x.double()
    solve = partial(_launch, offsets=layout.offsets, low=low, high=high)
    value = with_gradient(wide, solve, lambda again: plain(dist.with_logits(again)), layout.spread)
    return value.to(dtype)


def _require_device(logits: Tensor) -> None:
    """Require logits that the kernel can be launched on."""
    if not (logits.is_cpu if INTERPRETED else logits.is_cuda):
        there = "the CPU, in Triton's interpreter," if INTERPRETED else "a CUDA device"
        raise ValueError(
            f"`logits` must be on {there} for kofn.contrib.triton; they are on {logits.device}. Move them, or use "
            f"kofn.log_count_prob. On the CPU, Triton only runs in its interpreter, for tests: set TRITON_INTERPRET=1 "
            f"before Python starts."
        )


def plan(*, one: bool, size: float) -> dict[str, Any]:
    """How the kernel is compiled and launched for one count or an interval, of bags of this size on average."""
    frequencies = 32 if one else 64
    block = 16 if size <= _SMALL else 64 if one else 32
    return {
        "ONE": one,
        "FREQUENCIES": frequencies,
        "BLOCK": block,
        "num_warps": block * frequencies // 256,  # with more than eight numbers for a thread, registers run out
        "enable_fp_fusion": False,  # rounded as in the interpreter, in which it is tested
    }


def _launch(
    logits: Tensor, gradient: bool, *, offsets: Tensor | None, low: Tensor, high: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """The value of each bag and, if wanted, its gradient, both in the logits' dtype: float32 or float64."""
    logits, bags = logits.contiguous().resolve_neg(), low.numel()
    value = torch.empty(low.shape, dtype=logits.dtype, device=logits.device)
    by_logits = torch.empty_like(logits) if gradient else None
    if not bags:
        return value, by_logits
    low = low.contiguous()
    with nullcontext() if INTERPRETED else torch.cuda.device(logits.device):
        interval_kernel[(bags,)](
            logits,
            low if offsets is None else offsets.to(logits.device),
            logits.shape[-1],
            low,
            low if high is None else high.contiguous(),
            value,
            value if by_logits is None else by_logits,
            RAGGED=offsets is not None,
            GRADIENT=gradient,
            **plan(one=high is None, size=logits.numel() / bags),
        )
    return value, by_logits
