"""The whole distribution of S, right in every tail: log P(S = s) for every s, and its derivatives.

Far from the mean the untilted distribution is below anything that float64 can resolve. So the counts are cut into
about 0.6 sqrt(n) segments, and each is seen through a window tilted to its middle. Of a window only counts at
least 1e-2 as likely as its likeliest are taken; where a segment is wider than that, what is left of it gets windows
of its own, round by round, until every count has been seen near the middle of one. Each count remembers its tilt,
from which derivatives build the same windows again.

Small bags whose probabilities cannot underflow need none of this: one product tree has every count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor

from kofn.counts._characteristic import Window, radius
from kofn.counts._probability import Undecided
from kofn.counts._product_tree import LARGEST, Tree, never_underflows
from kofn.counts._tilt import Tilt, solve_tilt, untilt

_TAKEN = 1e-2  # of a window's largest probability: loses two digits of sixteen, and spans +-3 standard deviations
_EXPONENT = -math.log(_TAKEN)
_CARRIES = 1e-17  # of a bag's upstream weight: a window with less than that cannot be seen in the sum
_CELLS = 1 << 20  # rows x instances handled at once


def sweep(bags: Undecided) -> tuple[Tensor, Tensor]:
    """log P(S = s) of the undecided instances and the tilt each was computed with, both (b, n + 1).

    Counts above a bag's size have -inf. The tilt is NaN where no window was needed: at the ends, which are closed
    forms, and in bags computed by a product tree. It is inf where none was found, and the value NaN.
    """
    b, width = len(bags.z), bags.z.shape[-1] + 1
    counts = torch.arange(width, device=bags.z.device)
    values = torch.full((b, width), -torch.inf, dtype=bags.z.dtype, device=bags.z.device)
    tilts = torch.full_like(values, torch.nan)
    easy, hard = _split(bags)
    if len(easy):
        z = bags.z[easy]
        tree = Tree(z, torch.zeros_like(z[:, :1]), counts.expand(len(easy), -1))
        values[easy] = tree.probs.log()
    if len(hard):
        values[hard], tilts[hard] = _cover(bags.z[hard], bags.size[hard])
    logsigmoid = torch.nn.functional.logsigmoid
    values[:, 0] = logsigmoid(-bags.z).sum(-1)
    every = logsigmoid(bags.z.masked_fill(~bags.present, torch.inf)).sum(-1, keepdim=True)
    values = torch.where(counts == bags.size, every, values).masked_fill(counts > bags.size, -torch.inf)
    return values.masked_fill(bags.broken, torch.nan), tilts


def _split(bags: Undecided) -> tuple[Tensor, Tensor]:
    """Positions of the bags that a product tree computes and of those that need windows.

    Host read: how many of each; they are computed differently.
    """
    small = bags.z.shape[-1] <= LARGEST
    easy = never_underflows(bags.z, bags.size) if small else torch.zeros_like(bags.broken)
    return easy.squeeze(-1).nonzero().squeeze(-1), (~easy).squeeze(-1).nonzero().squeeze(-1)


def _segments(n: int) -> list[int]:
    """Where segments start, and n at the end. They widen as sqrt(s (n - s)), as for equal logits."""
    pieces = max(1, math.ceil(0.6 * math.sqrt(n)))
    starts = {max(1, round(n * math.sin(math.pi / 2 * k / pieces) ** 2)) for k in range(pieces + 1)}
    return sorted(starts)


def _cover(z: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """Values and tilts of counts 1 to n - 1 by windows, in (b, n + 1)."""
    b, n = z.shape
    starts = _segments(n)
    pieces = max(1, len(starts) - 1)
    width = max((j - i for i, j in pairwise(starts)), default=0)
    values = z.new_full((b, n + 1), -torch.inf)
    tilts = torch.full_like(values, torch.nan)
    if width == 0:
        return values, tilts
    first = torch.tensor(starts[:-1], device=z.device).repeat(b)
    stop = torch.minimum(
        torch.tensor(starts[1:], device=z.device).repeat(b), size.squeeze(-1).repeat_interleave(pieces)
    )
    bag = torch.arange(b, device=z.device).repeat_interleave(pieces)
    for rows in torch.arange(b * pieces, device=z.device).split(max(1, _CELLS // n)):
        _cover_rows(z, size, bag[rows], first[rows], stop[rows], width, values, tilts)
    return values, tilts


def _cover_rows(
    z: Tensor, size: Tensor, bag: Tensor, first: Tensor, stop: Tensor, width: int, values: Tensor, tilts: Tensor
) -> None:
    """Write values and tilts of the counts first <= s < stop of each row's bag."""
    steps = torch.arange(width, device=z.device)
    counts = first.unsqueeze(-1) + steps
    done = counts >= stop.unsqueeze(-1)
    while True:
        # Host read: which segments still have counts to see, because the number of rounds depends on the distribution.
        rows = (~done.all(-1)).nonzero().squeeze(-1)
        if not len(rows):
            return
        seen, here, owner = done[rows], counts[rows], bag[rows]
        begin = seen.long().argmin(-1, keepdim=True)  # the first run of unseen counts: from begin up to end
        after = seen & (steps > begin)
        end = torch.where(after.any(-1, keepdim=True), after.long().argmax(-1, keepdim=True), width)
        centre = here.gather(-1, (begin + end - 1) // 2)
        zs = z[owner]
        tilt = solve_tilt(zs, centre, size[owner])
        window = Window(zs, tilt, here, size=size[owner], exponent=_EXPONENT)
        reach = radius(tilt.variance.nan_to_num(0.0), _EXPONENT)
        far = (here - tilt.mean).abs() > reach
        probs = window.probs.masked_fill(far, 0.0)
        # Written so that a NaN is taken at once; the centre always is, so each round gets somewhere.
        taken = ~seen & (~(probs < _TAKEN * probs.amax(-1, keepdim=True)) | (here == centre))
        value = (window.probs.log() + untilt(zs, tilt.value, here)).clamp(max=0.0)
        where = taken.nonzero(as_tuple=True)
        values[owner[where[0]], here[where]] = value[where]
        tilts[owner[where[0]], here[where]] = tilt.value.nan_to_num(torch.inf)[where[0], 0]
        done[rows] = seen | taken


class Derivatives:
    """Derivatives of sum_s weights_s log P(S = s), which are weighted sums of posteriors given each count.

    Args:
        bags: the undecided instances of each bag.
        tilts: (b, n + 1), from `sweep`.
        weights: (b, n + 1) on the counts of the undecided instances.
    """

    def __init__(self, bags: Undecided, tilts: Tensor, weights: Tensor) -> None:
        self._bags, self._tilts = bags, tilts
        self._counts = torch.arange(weights.shape[-1], device=weights.device)
        # An impossible count has value -inf and derivative zero, whatever comes from upstream.
        self._weights = torch.where(self._counts <= bags.size, weights.double(), 0.0)
        self._p = torch.sigmoid(bags.z)

    def gradient(self) -> Tensor:
        """sum_s weights_s (P(y_i = 1 | S = s) - p_i): (b, n)"""
        out = -self._p * self._weights.sum(-1, keepdim=True)
        # Given S = 0 nobody is a one; given S = size all are.
        out += torch.where(self._bags.present, self._weights.gather(-1, self._bags.size), 0.0)
        for bag, view, counts, inner in self._cheapest_views():
            ratio = torch.where(inner, self._weights[bag].gather(-1, counts) / view.probs, 0.0)
            out.index_add_(0, bag, view.pull(ratio))
        return out.masked_fill(_lost(self._tilts), torch.nan)

    def along(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Derivatives of <gradient, values> by the weights, (b, n + 1), and by the logits, (b, n).

        The first is d log P(S = s) in direction `values`, sum_i values_i (P(y_i = 1 | S = s) - p_i); the second is
        the Hessian times `values`: covariances given each count, less the prior variances.
        """
        p = self._p
        by_weights = torch.zeros_like(self._weights)
        total = torch.where(self._bags.present, values, 0.0).sum(-1, keepdim=True)
        by_weights.scatter_(-1, self._bags.size, total)
        by_logits = -p * torch.sigmoid(-self._bags.z) * values * self._weights.sum(-1, keepdim=True)
        tilts = self._all_tilts()
        for bag, view, counts, inner in self._windows(tilts, every=True):
            mean = torch.where(inner, view.push(values[bag]) / view.probs, 0.0)
            by_weights.index_put_((bag.unsqueeze(-1).expand_as(counts), counts), mean, accumulate=True)
            ratio = torch.where(inner, self._weights[bag].gather(-1, counts) / view.probs, 0.0)
            by_logits.index_add_(0, bag, view.correlate(ratio, values[bag]) - view.pull(ratio * mean))
        by_weights = by_weights - (p * values).sum(-1, keepdim=True)
        return by_weights.masked_fill(_lost(tilts), torch.nan), by_logits.masked_fill(_lost(tilts), torch.nan)

    def _cheapest_views(self) -> Iterator[tuple[Tensor, Tree | Window, Tensor, Tensor]]:
        """Views of the inner counts that carry weight: (bags, view, counts, which of the counts are to be used)."""
        easy, hard = _split(self._bags)
        if len(easy):
            z, size = self._bags.z[easy], self._bags.size[easy]
            counts = self._counts.expand(len(easy), -1)
            tree = Tree(z, torch.zeros_like(size, dtype=z.dtype), counts)
            yield easy, tree, counts, (counts > 0) & (counts < size)
        if len(hard):
            yield from self._windows(self._tilts, every=False)

    def _all_tilts(self) -> Tensor:
        """The tilts, with those of bags that a tree computed in the first place: only windows know covariances."""
        easy, _ = _split(self._bags)
        if not len(easy):
            return self._tilts
        _, tilts = _cover(self._bags.z[easy], self._bags.size[easy])
        return self._tilts.index_copy(0, easy, tilts)

    def _windows(self, tilts: Tensor, *, every: bool) -> Iterator[tuple[Tensor, Window, Tensor, Tensor]]:
        """The windows of a sweep: runs of counts that share a tilt. Unless `every`, only those that carry weight."""
        inner = tilts.isfinite()
        before = torch.cat([tilts[:, :1], tilts[:, :-1]], -1)  # the tilt of count 0 is NaN, and NaN != NaN
        starts = inner & (tilts != before)
        run = starts.flatten().cumsum(0)[inner.flatten()] - 1
        bag, first = starts.nonzero(as_tuple=True)
        length = torch.bincount(run, minlength=len(bag))
        carried = torch.zeros(len(bag), dtype=tilts.dtype, device=tilts.device)
        carried.index_add_(0, run, self._weights.abs()[inner])
        enough = _CARRIES * self._weights.abs().sum(-1)
        # Host read: which windows matter. Skipping those that do not is worth far more than the wait.
        kept = (~(carried <= enough[bag]) | every).nonzero().squeeze(-1)
        if not len(kept):
            return
        steps = torch.arange(int(length[kept].max()), device=tilts.device)
        rows = max(1, _CELLS // max(self._bags.z.shape[-1], 32 * len(steps)))
        for part in kept.split(rows):
            owner = bag[part]
            counts = first[part].unsqueeze(-1) + steps
            used = steps < length[part].unsqueeze(-1)
            counts = torch.where(used, counts, first[part].unsqueeze(-1))
            zs = self._bags.z[owner]
            tilt = Tilt.at(zs, tilts[owner, first[part]].unsqueeze(-1))
            view = Window(zs, tilt, counts, size=self._bags.size[owner], exponent=_EXPONENT)
            yield owner, view, counts, used


def _lost(tilts: Tensor) -> Tensor:
    """Bags of which a tilt was not found: (b, 1) bool."""
    return tilts.isinf().any(-1, keepdim=True)


def to_bag(values: Tensor, bags: Undecided, absent: float) -> Tensor:
    """From counts of the undecided instances to counts of the bag: up by the number of sure ones."""
    source = torch.arange(values.shape[-1], device=values.device) - bags.ones
    return values.gather(-1, source.clamp(min=0)).masked_fill(source < 0, absent)


def from_bag(values: Tensor, bags: Undecided) -> Tensor:
    """The transpose of `to_bag`; counts that no bag can have get zero."""
    source = torch.arange(values.shape[-1], device=values.device) + bags.ones
    last = values.shape[-1] - 1
    return values.gather(-1, source.clamp(max=last)).masked_fill(source > last, 0.0)
