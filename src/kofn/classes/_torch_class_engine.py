"""The distribution of class counts in pure torch, on any device, with derivatives of every order.

The first derivative is a posterior less a prior, computed beside the value without a tape. Where autograd asks for more
(a graph of the backward pass, forward mode, a transform of torch.func) the same recursion is left to autograd.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from kofn.classes import _fourier, _recursion
from kofn.classes._cost import FREQUENCIES, LARGEST_TABLE, joint_states
from kofn.classes._sorted_bags import SortedBags

_WORTH_A_TILT = 1.5  # states to a frequency, beyond which a bag is solved by these
_CELLS = 1 << 21  # of the tables of a batch


def log_prob(logits: Tensor, offsets: Tensor | None, counts: Tensor) -> Tensor:
    """log P(K = k) of each bag: (...) or (b,), in the dtype of the logits."""
    x, k = _rectangle(logits, offsets), counts.reshape(-1, counts.shape[-1])
    transformed = torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0
    value = _on_tape(x, k) if transformed else _log_prob(x, k)
    return value.reshape(counts.shape[:-1]).to(logits.dtype)


def posteriors(logits: Tensor, offsets: Tensor | None, counts: Tensor) -> Tensor:
    """P(y_i = c | K = k), of the shape and dtype of the logits."""
    x, k = _rectangle(logits, offsets), counts.reshape(-1, counts.shape[-1])
    value = _posteriors_on_tape(x, k) if x.requires_grad and torch.is_grad_enabled() else _solve(x, k)[1]
    if offsets is not None:
        value = value[_owner_and_place(offsets, logits)]
    return value.reshape(logits.shape).to(logits.dtype)


class _LogProb(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: Tensor) -> Tensor:
        ctx.save_for_backward(x, counts)
        value, posterior, prior = _solve(x, counts)
        ctx.slope = posterior - prior
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        x, counts = ctx.saved_tensors
        if torch.is_grad_enabled():
            return torch.autograd.grad(_on_tape(x, counts), x, grad, create_graph=True)[0], None
        return ctx.slope * grad[:, None, None], None


_log_prob: Callable[[Tensor, Tensor], Tensor] = _LogProb.apply


def _on_tape(x: Tensor, counts: Tensor) -> Tensor:
    """log P(K = k) of bags (b, n, C), recorded by autograd where it records."""
    batches = _batches(counts, x)
    if not batches:
        return x.sum((1, 2))
    bags = [SortedBags.of(x[which], counts[which]) for which in batches]
    values = [each.value(_recursion.log_prob(each.log_p, each.counts)) for each in bags]
    return torch.cat(values)[torch.cat(batches).argsort()]


def _posteriors_on_tape(x: Tensor, counts: Tensor) -> Tensor:
    """The derivative, which says nothing where counts are impossible, and the prior."""
    value = _on_tape(x, counts)
    (slope,) = torch.autograd.grad(value.masked_fill(value == -torch.inf, 0.0).sum(), x, create_graph=True)
    return slope + SortedBags.of(x, counts).prior


def _solve(x: Tensor, counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """log P(K = k), posteriors and priors of bags (b, n, C): (b,) and twice (b, n, C)."""
    value, posterior, prior = x.new_empty(len(x)), torch.empty_like(x), torch.empty_like(x)
    with torch.no_grad():
        for which in _batches(counts, x):
            bags = SortedBags.of(x[which], counts[which])
            total, by_class = _joint(bags)
            value[which], prior[which] = bags.value(total), bags.prior
            posterior[which] = bags.posteriors(total, by_class)
    return value, posterior, prior


def _joint(bags: SortedBags) -> tuple[Tensor, Tensor]:
    """log P(K = k) and posteriors of sorted bags, (b,) and (b, n, c), each by the cheaper route."""
    value, posterior = bags.log_p.new_empty(len(bags.log_p)), torch.zeros_like(bags.log_p)
    left = []
    for j, by_frequencies in enumerate(_worth_a_tilt(bags).tolist()):
        kinds = int((bags.counts[j] > 0).sum()) if by_frequencies else 0
        most = min(float(joint_states(bags.counts[j])), LARGEST_TABLE) / 2
        found = _fourier.posteriors(bags.log_p[j, :, :kinds], bags.counts[j, :kinds], most) if by_frequencies else None
        if found is None:
            left.append(j)
        else:
            value[j], posterior[j, :, :kinds] = found
    if left:
        value[left], posterior[left] = _recursion.posteriors(bags.log_p[left], bags.counts[left])
    return value, posterior


def _worth_a_tilt(bags: SortedBags) -> Tensor:
    """Large bags of few classes, which the characteristic function may solve with fewer frequencies than states."""
    kinds = (bags.counts > 0).sum(-1)
    few = kinds < len(FREQUENCIES)
    usual = torch.tensor(FREQUENCIES, device=kinds.device)[kinds.masked_fill(~few, 0)]
    return few & (joint_states(bags.counts) > _WORTH_A_TILT * usual) & bags.possible & ~bags.broken


def _batches(counts: Tensor, x: Tensor) -> list[Tensor]:
    """Bags of about equal tables, so that they may share one shape, and not too many at once."""
    states = joint_states(counts)
    order = states.argsort()
    octave = states[order].log2().ceil().clamp(min=6)  # small tables cost less than another batch
    width = octave.exp2() * x.shape[-1]
    number = torch.cumsum(width, 0).div(_CELLS, rounding_mode="floor")
    kind = torch.stack([octave, number], 1)
    _, sizes = kind.unique_consecutive(dim=0, return_counts=True)
    return list(order.split(sizes.tolist()))


def _rectangle(logits: Tensor, offsets: Tensor | None) -> Tensor:
    """Bags (b, n, C) in float64; instances that are not there have -inf in all classes."""
    x = logits.double()
    if offsets is None:
        return x.reshape(x.shape[:-2].numel(), *x.shape[-2:])
    longest = int(offsets.diff().max()) if len(offsets) > 1 else 0
    empty = x.new_full((len(offsets) - 1, longest, x.shape[-1]), -torch.inf)
    return empty.index_put(_owner_and_place(offsets, logits), x)


def _owner_and_place(offsets: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
    """Bag of each instance, and its place there."""
    sizes = offsets.diff()
    owner = torch.arange(len(sizes)).repeat_interleave(sizes)
    place = torch.arange(len(logits)) - offsets[:-1][owner]
    return owner.to(logits.device), place.to(logits.device)
