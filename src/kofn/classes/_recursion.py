"""The joint distribution of class counts by recursion over the instances, in log space.

P(K = k) is the coefficient of prod_c z_c^{k_c} in prod_i sum_c p_ic z_c. The factors are multiplied one after the
other; of the product so far only the coefficients with exponents j_c <= k_c are kept. The class with the largest count
needs no exponent of its own, because all of them sum to the number of instances so far: it is class 0 here. What is
left are prod_{c > 0} (k_c + 1) states, numbered by mixed radix. States that can no longer reach k are carried along:
they never come to the last one, which is k.
"""

from __future__ import annotations

from math import isqrt
from typing import NamedTuple

import torch
from torch import Tensor

from kofn.classes._sorted_bags import NEVER


class States(NamedTuple):
    """Where one more instance of a class leads to. `none`, one past the last state, is nowhere."""

    number: int
    final: Tensor  # (b, 1): the state of the wanted counts
    before: Tensor  # (b, c - 1, number): the state with one fewer of class 1, ..., c - 1
    after: Tensor  # with one more

    @classmethod
    def of(cls, counts: Tensor) -> States:
        """The states of counts (b, c)."""
        radix = counts[:, 1:] + 1
        stride = torch.cat([radix.new_ones(len(radix), 1), radix.cumprod(1)], 1)
        number = int(stride[:, -1].max())
        state = torch.arange(number, device=counts.device)
        step, radix = stride[:, :-1, None], radix.unsqueeze(-1)
        digit = state // step % radix
        there = state < stride[:, -1:, None]
        before = (state - step).masked_fill(~(there & (digit > 0)), number)
        after = (state + step).masked_fill(~(there & (digit < radix - 1)), number)
        return cls(number, stride[:, -1:] - 1, before, after)

    def first(self, like: Tensor) -> Tensor:
        """The table before any instance."""
        table = like.new_full((len(self.final), self.number), NEVER)
        table[:, 0] = 0.0
        return table

    def last(self, like: Tensor) -> Tensor:
        """The table of ways to the wanted counts after the last instance."""
        table = like.new_full((len(self.final), self.number), NEVER)
        return table.scatter(1, self.final, 0.0)


def _moved(table: Tensor, where: Tensor) -> Tensor:
    """The table (b, s) as each class finds it, (b, c, s): class 0, which has no digit, as it is."""
    padded = torch.cat([table, torch.full_like(table[:, :1], NEVER)], 1)
    others = padded.gather(1, where.flatten(1)).view(where.shape)
    return torch.cat([table.unsqueeze(1), others], 1)


def _advance(table: Tensor, states: States, log_p: Tensor) -> Tensor:
    """One more instance, log_p (b, c)."""
    return (_moved(table, states.before) + log_p.unsqueeze(-1)).logsumexp(1)


def log_prob(log_p: Tensor, counts: Tensor) -> Tensor:
    """log P(K = k) of sorted bags, (b, n, c) and (b, c) to (b,): plain operations, for autograd of any order."""
    states = States.of(counts)
    table = states.first(log_p)
    for instance in log_p.unbind(1):
        table = _advance(table, states, instance)
    return table.gather(1, states.final).squeeze(1)


def posteriors(log_p: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """log P(K = k), and P(y_i = c | K = k): (b,) and (b, n, c).

    With a(s) the probability of state s before instance i and b(s) that of coming from s to k after it,

        P(y_i = c, K = k) = p_ic sum_s a(s) b(s + one of c).

    Of the n tables a, about sqrt(n) are kept; those between are computed again on the way back.
    """
    states, n = States.of(counts), log_p.shape[1]
    stretch = max(1, isqrt(n))
    table, kept = states.first(log_p), []
    for i in range(n):
        if i % stretch == 0:
            kept.append(table)
        table = _advance(table, states, log_p[:, i])
    total = table.gather(1, states.final)
    out = torch.empty_like(log_p)
    back = states.last(log_p)
    for start in reversed(range(0, n, stretch)):
        tables = [kept.pop()]
        for i in range(start, min(start + stretch, n) - 1):
            tables.append(_advance(tables[-1], states, log_p[:, i]))
        for i, table in reversed(list(enumerate(tables, start))):
            ways = _moved(back, states.after)
            out[:, i] = (table.unsqueeze(1) + ways).logsumexp(2) + log_p[:, i] - total
            back = (ways + log_p[:, i].unsqueeze(-1)).logsumexp(1)
    return total.squeeze(1), out.exp_()
