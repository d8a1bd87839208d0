"""The joint distribution of class counts by recursion over the instances, of probabilities or of their logarithms.

P(K = k) is the coefficient of prod_c z_c^{k_c} in prod_i sum_c p_ic z_c. The factors are multiplied one after the
other; of the product so far only the coefficients with exponents j_c <= k_c are kept. The class with the largest count
needs no exponent of its own, because all of them sum to the number of instances so far: it is class 0 here. What is
left are prod_{c > 0} (k_c + 1) states, numbered by mixed radix. States that can no longer reach k are carried along:
they never come to the last one, which is k.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import NamedTuple

import torch
from torch import Tensor

from kofn.classes._cost import require_table
from kofn.classes._sorted_bags import NEVER

_SAFE = 1e-200  # a sum of positive terms this large has lost nothing to underflow
_KEPT = 1 << 22  # numbers in all tables of a batch, before some are computed twice


class Arithmetic(NamedTuple):
    """How weights are combined: as probabilities, or as logarithms, which do not underflow."""

    never: float
    certain: float
    times: Callable[[Tensor, Tensor], Tensor]
    total: Callable[[Tensor, int], Tensor]
    over: Callable[[Tensor, Tensor], Tensor]


PLAIN = Arithmetic(0.0, 1.0, torch.mul, torch.sum, torch.div)
LOGS = Arithmetic(NEVER, 0.0, torch.add, torch.logsumexp, torch.sub)


class States(NamedTuple):
    """Where one more instance of a class leads to. `none`, one past the last state, is nowhere."""

    number: int
    final: Tensor  # (b, 1): the state of the wanted counts
    before: Tensor  # (b, c - 1, number): the state with one fewer of class 1, ..., c - 1
    after: Tensor  # with one more

    @classmethod
    def of(cls, counts: Tensor) -> States:
        """The states of counts (b, c)."""
        require_table(counts)
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

    def first(self, like: Tensor, by: Arithmetic) -> Tensor:
        """The table before any instance."""
        table = like.new_full((len(self.final), self.number), by.never)
        table[:, 0] = by.certain
        return table

    def last(self, like: Tensor, by: Arithmetic) -> Tensor:
        """The table of ways to the wanted counts after the last instance."""
        table = like.new_full((len(self.final), self.number), by.never)
        return table.scatter(1, self.final, by.certain)


def _moved(table: Tensor, where: Tensor, by: Arithmetic) -> Tensor:
    """The table (b, s) as each class finds it, (b, c, s): class 0, which has no digit, as it is."""
    padded = torch.cat([table, torch.full_like(table[:, :1], by.never)], 1)
    others = padded.gather(1, where.flatten(1)).view(where.shape)
    return torch.cat([table.unsqueeze(1), others], 1)


def _advance(table: Tensor, states: States, weights: Tensor, by: Arithmetic) -> Tensor:
    """One more instance, weights (b, c)."""
    return by.total(by.times(_moved(table, states.before, by), weights.unsqueeze(-1)), 1)


def log_prob(log_p: Tensor, counts: Tensor) -> Tensor:
    """log P(K = k) of sorted bags, (b, n, c) and (b, c) to (b,): plain operations, for autograd of any order."""
    states = States.of(counts)
    table = states.first(log_p, LOGS)
    for instance in log_p.unbind(1):
        table = _advance(table, states, instance, LOGS)
    return table.gather(1, states.final).squeeze(1)


def posteriors(log_p: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """log P(K = k), and P(y_i = c | K = k): (b,) and (b, n, c).

    Of probabilities first. Every term is positive, so what is not tiny has lost nothing to underflow; the others are
    computed again of logarithms.
    """
    total, by_class = _joint(log_p.exp(), counts, PLAIN)
    value = total.log()
    (again,) = (~(total > _SAFE)).nonzero(as_tuple=True)
    if len(again):
        value[again], logs = _joint(log_p[again], counts[again], LOGS)
        by_class[again] = logs.exp_()
    return value, by_class


def _joint(weights: Tensor, counts: Tensor, by: Arithmetic) -> tuple[Tensor, Tensor]:
    """P(K = k), (b,), and P(y_i = c | K = k), (b, n, c), in the arithmetic of the weights.

    With a(s) the probability of state s before instance i and b(s) that of coming from s to k after it,

        P(y_i = c, K = k) = p_ic sum_s a(s) b(s + one of c).

    Of the n tables a, about sqrt(n) are kept; those between are computed again on the way back.
    """
    states, n = States.of(counts), weights.shape[1]
    stretch = max(1, isqrt(n)) if n * states.number * len(counts) > _KEPT else max(1, n)
    table, kept = states.first(weights, by), []
    for i in range(n):
        if i % stretch == 0:
            kept.append([table])
        table = _advance(table, states, weights[:, i], by)
        if stretch >= n:
            kept[0].append(table)
    total = table.gather(1, states.final)
    out = torch.empty_like(weights)
    back = states.last(weights, by)
    for start in reversed(range(0, n, stretch)):
        tables = kept.pop()
        for i in range(start + len(tables) - 1, min(start + stretch, n) - 1):
            tables.append(_advance(tables[-1], states, weights[:, i], by))
        for i in reversed(range(start, min(start + stretch, n))):
            ways = by.times(_moved(back, states.after, by), weights[:, i].unsqueeze(-1))
            out[:, i] = by.over(by.total(by.times(tables[i - start].unsqueeze(1), ways), 2), total)
            back = by.total(ways, 1)
    return total.squeeze(1), out
