"""The joint distribution of class counts by recursion over the instances, in plain torch: the reference.

P(K = k) is the coefficient of prod_c z_c^{k_c} in prod_i sum_c p_ic z_c. The factors are multiplied one after the
other; of the product so far only the coefficients with exponents j_c <= k_c are kept. The class with the largest count
needs no exponent of its own, because all of them sum to the number of instances so far: it is class 0 here. What is
left are prod_{c > 0} (k_c + 1) states, numbered by mixed radix. States that can no longer reach k are carried along:
they never come to the last one, which is k.

Under the tilt of `_class_tilt` the counts are never unlikely, and all terms are positive: no logarithms are needed.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kofn import _require
from kofn.classes._class_tilt import moved, solve_tilt
from kofn.classes._rows import NEVER, Rows
from kofn.counts._host import transformed

LARGEST_TABLE = 2**32  # states, one row of which takes 32 GB (`most_states` of native/src/class_counts.cpp)
_CELLS = 1 << 22  # states, instances and classes of a batch


def joint_states(counts: Tensor) -> Tensor:
    """prod (k_c + 1) over all classes but the one with the largest count: (..., C) to (...) float64."""
    k = counts.double().clamp(min=0)
    return (k + 1).prod(-1) / (k.amax(-1) + 1)


def batches(rows: Rows) -> list[Tensor]:
    """Bags of about equal tables, so that they may share one shape, and not too many at once."""
    states = joint_states(rows.counts)
    if not _require.holds(states <= LARGEST_TABLE):
        raise MemoryError(
            'there is no memory for the joint distribution of `counts`. Use method="limit", whose error is small in '
            "large bags, kofn.MarginalClassCounts, or smaller bags."
        )
    if transformed() or not len(states):
        return [torch.arange(len(states), device=states.device)]
    order = states.argsort()
    octave = states[order].log2().ceil().clamp(min=6)  # small tables cost less than another batch
    number = torch.cumsum(octave.exp2() * rows.log_p[0].numel(), 0).div(_CELLS, rounding_mode="floor")
    _, sizes = torch.stack([octave, number], 1).unique_consecutive(dim=0, return_counts=True)
    return list(order.split(sizes.tolist()))


def log_prob(rows: Rows) -> Tensor:
    """log P(K = k), (b,), NEVER or less if impossible, for rows that stand for one instance each or none.

    Of plain operations, with derivatives of every order.
    """
    order = rows.counts.argsort(dim=-1, descending=True, stable=True)
    kinds = max(1, int((rows.counts > 0).sum(-1).max())) if len(rows.counts) else 1
    order = order[:, :kinds]
    log_p = rows.log_p.gather(2, order.unsqueeze(1).expand(*rows.log_p.shape[:2], kinds))
    rows = rows._replace(log_p=log_p, counts=rows.counts.gather(1, order))
    z, constant = moved(rows, solve_tilt(rows))
    there = rows.weight > 0
    # An instance that is not there is of the first class for certain, whose count is not used.
    nothing = torch.zeros_like(z[:, :1])
    nothing[..., 0] = 1.0
    p = torch.where(there.unsqueeze(-1), z.softmax(-1), nothing)
    radix = rows.counts[:, 1:].long() + 1
    stride = torch.cat([radix.new_ones(len(radix), 1), radix.cumprod(1)], 1)
    number = int(stride[:, -1].max()) if len(stride) else 1
    state = torch.arange(number, device=p.device)
    reachable = (state // stride[:, :-1, None] % radix.unsqueeze(-1) > 0) & (state < stride[:, -1:, None])
    before = (state - stride[:, :-1, None]).masked_fill(~reachable, number).flatten(1)  # one past the last is nowhere
    table = p.new_zeros(len(p), number + 1)
    table[:, 0] = 1.0
    for instance in p.unbind(1):
        others = table.gather(1, before).unflatten(1, (kinds - 1, number))
        advanced = table[:, :-1] * instance[:, :1] + (others * instance[:, 1:, None]).sum(1)
        table = torch.nn.functional.pad(advanced, (0, 1))
    total = table.gather(1, stride[:, -1:] - 1).squeeze(1)
    possible = total > 0
    f = torch.where(there, z.logsumexp(-1), 0.0).sum(1) + constant
    return torch.where(possible, total.masked_fill(~possible, 1.0).log() + f, NEVER)
