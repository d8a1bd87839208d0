"""Random effects: bags that differ by more than their instances explain, by a common shift of their logits.

A bag has a shift u ~ N(0, sigma^2) of its own, and given u its labels are independent with logits x_i + u. Because a
common shift is an exponential tilt, P(S = s | c + v) is P(S = s | c) e^{v s} / prod_i (q_i + p_i e^v), with p_i those
of the logits y_i = x_i + c. So one question to the engine, at whatever c, is enough for all u, and what is left is an
integral in one dimension,

    log P(S = s) = log P(S = s | c) + log int phi(u / sigma) / sigma e^{v s - K(v)} dv,  u = c + v,
    K(v) = sum_i log(q_i + p_i e^v).

With c where the integrand is largest, nothing that is added here is ever large beside the result. Given S the shift
says nothing more of the labels: P(y_i = 1 | S = s) is what it is without a shift.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from kofn import _require
from kofn.counts._host import transformed
from kofn.counts._large_logits import asked_one_by_one
from kofn.counts._layout import Layout

# The integrand over z = u / sigma, written with zeta = z - c / sigma, is log-concave: g'' <= -1. It is integrated where
# it is above e^-DROP of its largest value, by Gauss' rule of ORDER nodes on panels, each as wide as the rule allows for
# an error below 1e-11 of the whole (`_panels`). A wide plateau is a panel or a few: the cost hardly grows with sigma.
_DROP, _SEARCHES, _ORDER = 37.0, 100, 16
_WIDEST = math.sqrt(2 * _DROP)  # from the mode to where the integrand is e^-DROP of it, at most, because g'' <= -1
_DEVIATIONS = 6.0  # standard deviations of a normal density in a panel
_FROM_POLE, _AWAY = 4.0, 0.6  # in a panel of u at the logistic functions' own scale; of the distance, far from them all
_EVEN = np.polynomial.legendre.leggauss(_ORDER)
_ENTRIES = 1 << 21  # instances times nodes that are worked on at a time
_COUNTS = 1 << 9  # counts of a table that are; neighbours have nodes in common, so that few are left unused
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_DIGITS = 1e5  # log P without a shift, as a multiple of the result, that leaves the result ten digits

#: log P(S = count) of each bag without a random effect, from logits, their layout and counts; differentiable.
LogProb = Callable[[Tensor, Layout, Tensor], Tensor]


def log_prob(
    log_event: LogProb, x: Tensor, layout: Layout, counts: Tensor, sigma: Tensor, *, still: Tensor | None = None
) -> Tensor:
    """log P(S = count) of each bag, in float64, of plain operations: that of the likeliest shift, and what all add.

    Args:
        log_event: as of bags without a random effect.
        x: logits, float64, -inf for absent instances.
        layout: of the logits.
        counts: (b,) or (...), int64.
        sigma: standard deviations of the shifts, float64, one for each bag.
        still: the same logits for what the shift adds, where derivatives by x are to know nothing of it; None for x.
    """
    if still is None:
        centre = mode(x, layout, counts, sigma)
        y = x + layout.spread(sigma * centre)
        return _add(log_event(y, layout, counts), log_shift(y, layout, counts, sigma, centre))
    centre = mode(still, layout, counts, sigma)
    moved = layout.spread(sigma * centre)
    y = still + moved
    # Of logits x, d log P(S = s) / dx_i is P(y_i = 1 | S = s) - sigmoid(x_i), not - sigmoid(y_i).
    nothing = (x - still).nan_to_num(0.0)
    alone = log_event(x + moved, layout, counts) + layout.sum(nothing * (torch.sigmoid(y) - torch.sigmoid(still)))
    return _add(alone, log_shift(y, layout, counts, sigma, centre))


def event(
    alone: Callable[[Tensor, Layout, Tensor], tuple[Tensor, Tensor]],
    x: Tensor,
    layout: Layout,
    counts: Tensor,
    sigma: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """`log_prob` and its gradients by the logits and by sigma, without a graph: of `alone`, value and gradient."""
    centre = mode(x, layout, counts, sigma)
    y = x + layout.spread(sigma * centre)
    value, gradient = alone(y, layout, counts)
    shift, more, by_sigma = log_shift_gradients(y, layout, counts, sigma, centre)
    possible = value != -torch.inf
    by_x = (gradient + more).masked_fill(~layout.spread(possible), 0.0)
    # y moves with sigma, too: the same at all instances of a bag.
    by_sigma = (by_sigma + centre * layout.add(by_x)).masked_fill(~possible, 0.0)
    return _add(value, shift), by_x, by_sigma


def log_all_counts(
    log_event: LogProb, alone: Tensor, x: Tensor, layout: Layout, sigma: Tensor, *, still: Tensor | None = None
) -> Tensor:
    """log P(S = s) for every s, laid out as `Layout.of_counts` says, from those of independent labels: float64."""
    table = _add(alone, log_shifts(x if still is None else still, layout, sigma))
    # Where logits are so large that log P(S = s) is all but undone by the shift, too few digits are left: such counts
    # are asked for one by one.
    lost = (alone > -torch.inf) & (alone < _DIGITS * table.detach().clamp(max=-1.0))
    if not _require.holds(~lost):

        def ask(rows: Tensor, part: Layout, counts: Tensor, bags: Tensor) -> Tensor:
            same = None if still is None else layout.to_rows(still, -torch.inf).reshape(-1, rows.shape[-1])[bags]
            return log_prob(log_event, rows, part, counts, sigma.flatten()[bags], still=same)

        table = asked_one_by_one(table, lost, x, layout, ask)
    return table


def _add(alone: Tensor, shift: Tensor) -> Tensor:
    """log P with a shift, from that without; an impossible count stays impossible, without a gradient."""
    return torch.where(alone == -torch.inf, alone, alone + shift)


def moments(x: Tensor, layout: Layout, sigma: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of S: E[E(S | u)], and E[var(S | u)] + var(E(S | u)), of logits in float64."""
    with torch.no_grad():
        end = torch.full(layout.shape, _WIDEST, dtype=x.dtype, device=x.device)
        z, weight = _nodes(*_panels(x.detach(), layout, sigma.detach(), -end, end, densities=False))
        weight = (weight - z.square() / 2).softmax(0)
    mean = first = torch.zeros(layout.shape, dtype=x.dtype, device=x.device)
    second = first
    parts = list(zip(_parts(z, x), _parts(weight, x), strict=True))
    given = []
    for node, share in parts:
        p = torch.sigmoid(x + layout.spread(sigma * node))
        given.append(layout.sum(p))
        mean = mean + (share * given[-1]).sum(0)
        second = second + (share * layout.sum(p * (1 - p))).sum(0)
    for (_, share), each in zip(parts, given, strict=True):
        second = second + (share * (each - mean).square()).sum(0)
    return mean, second


def mode(x: Tensor, layout: Layout, counts: Tensor, sigma: Tensor) -> Tensor:
    """The z = u / sigma at which P(S = count | u) times the density of u is largest, about, of each bag; no gradient.

    Newton's method, by halves where it would leave the interval that holds it; also where a step is not half as long as
    the one before: else two steps may follow each other in a circle.
    """
    with torch.no_grad():
        x, counts, sigma = x.detach(), _possible(counts, layout), sigma.detach()
        # g' = sigma (s - E[S | u]) - z, and E[S | u] lies between 0 and n.
        low, high = sigma * (counts - layout.sizes), sigma * counts
        z, moved = torch.zeros_like(low), high - low
        for _ in range(_SEARCHES):
            p = torch.sigmoid(x + layout.spread(sigma * z))
            slope = sigma * (counts - layout.sum(p)) - z
            curvature = 1 + sigma.square() * layout.sum(p * (1 - p))
            # A tenth of the width of the integrand is near enough: all that is wanted is how high it is.
            away = slope.square() > 0.01 * curvature
            if not bool(away.any()):
                break
            low, high = torch.where(slope > 0, z, low), torch.where(slope > 0, high, z)
            newton = z + slope / curvature
            trusted = (newton > low) & (newton < high) & (2 * (newton - z).abs() < moved)
            step = torch.where(trusted, newton, (low + high) / 2)
            moved, z = (step - z).abs(), torch.where(away, step, z)
        return z.nan_to_num(0.0)  # a NaN comes out through the logits


def log_shift(y: Tensor, layout: Layout, counts: Tensor, sigma: Tensor, centre: Tensor) -> Tensor:
    """log of the integral for one count of each bag, from logits y = x + sigma centre in float64: of `layout.shape`."""
    return _terms(y, layout, counts, sigma, centre)[1].logsumexp(0).masked_fill(sigma == 0, 0.0)


def log_shift_gradients(
    y: Tensor, layout: Layout, counts: Tensor, sigma: Tensor, centre: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """`log_shift` and its gradients by the logits y and by sigma, without a graph."""
    # With the terms of the sum as weights, d/dy_i = p_i - E[sigmoid(y_i + v)], d/d sigma = E[zeta (s - E[S | u])].
    with torch.no_grad():
        zeta, terms = _terms(y, layout, counts, sigma, centre)
        weight = terms.softmax(0).masked_fill(sigma == 0, 0.0)
        by_y, by_sigma = torch.sigmoid(y) * layout.spread(weight.sum(0)), torch.zeros_like(sigma)
        for node, share in zip(_parts(zeta, y), _parts(weight, y), strict=True):
            p = torch.sigmoid(y + layout.spread(sigma * node))
            by_y = by_y - (layout.spread(share) * p).sum(0)
            by_sigma = by_sigma + (share * node * (counts - layout.sum(p))).sum(0)
        by_y = by_y if layout.copies is None else by_y * layout.copies
        return terms.logsumexp(0).masked_fill(sigma == 0, 0.0), layout.present(by_y, 0.0), by_sigma


def _terms(y: Tensor, layout: Layout, counts: Tensor, sigma: Tensor, centre: Tensor) -> tuple[Tensor, Tensor]:
    """The nodes of the integral of one count, and the logarithms of the terms of its sum."""
    wanted = _possible(counts, layout)
    with torch.no_grad():
        still = y.detach(), layout, sigma.detach()
        low, high = (_end(still[0], layout, wanted, still[2], centre, side) for side in (-1.0, 1.0))
        zeta, weight = _nodes(*_panels(*still, low, high))
    return zeta, _g(y, layout, wanted, sigma, centre, zeta) + weight - centre.square() / 2 - _LOG_SQRT_2PI


def log_shifts(x: Tensor, layout: Layout, sigma: Tensor) -> Tensor:
    """log of the integral for every count, with c = 0: laid out as `CountDistribution.log_probs` is.

    The counts of a bag share its nodes, and K is computed once for each of these. How wide a panel may be, g'' decides,
    which is that of all counts. Each count takes the nodes near its mode. Some counts are worked on at a time.
    """
    every = layout.of_counts()
    place = every.place()
    bag = every.spread(torch.arange(layout.shape.numel(), device=x.device).reshape(layout.shape))
    owner = bag.expand(torch.broadcast_shapes(bag.shape, place.shape))
    shape, place, owner = owner.shape, place.expand(owner.shape).flatten(), owner.flatten()
    if not len(place):
        return sigma.new_zeros(shape)
    sizes = layout.sizes.double()
    counts = torch.minimum(place.double(), sizes.flatten()[owner])  # a count past the size of its bag is impossible
    with torch.no_grad():
        still, ends = sigma.detach(), []
        for wanted, side in ((torch.zeros_like(sizes), -1.0), (sizes, 1.0)):
            top = mode(x, layout, wanted, still)
            ends.append(top + _end(x.detach() + layout.spread(still * top), layout, wanted, still, top, side))
        left, width = _panels(x.detach(), layout, still, *ends)
        edges = torch.cat([left, ends[1].unsqueeze(0)])
        z, weight = _nodes(left, width)

    def line(z: Tensor) -> list[Tensor]:
        """u and m at z, and what u (s - m) is added to for a count s, with m ones likeliest: (bags, nodes) of each."""
        u = sigma * z
        rest = -z.square() / 2 - _excess(x, layout, u, shifted=True)
        ones = torch.cat([_ones(x.detach() + layout.spread(part.detach()), layout) for part in _parts(u, x)])
        return [part.reshape(len(z), -1).T.contiguous() for part in (u, ones, rest)]

    with torch.no_grad():
        u_of_edge, ones_of_edge, height_of_edge = line(edges)
    slopes, ones, heights = line(z)
    heights = heights + weight.reshape(len(z), -1).T - _LOG_SQRT_2PI

    def sums(bags: Tensor, some: Tensor) -> Tensor:
        if len(bags) > _COUNTS:  # by halves: what is kept of parts is soon one piece, and does not splinter the memory
            halves = zip(bags.tensor_split(2), some.tensor_split(2), strict=True)
            return torch.cat([sums(*half) for half in halves])
        node, there = _near_mode(u_of_edge, ones_of_edge, height_of_edge, bags, some)
        at = bags * slopes.shape[1] + node
        terms = slopes.flatten()[at] * (some - ones.flatten()[at]) + heights.flatten()[at]
        return terms.masked_fill(~there, -torch.inf).logsumexp(0)

    return sums(owner, counts).reshape(shape).masked_fill(every.spread(sigma == 0), 0.0)


def _near_mode(slopes: Tensor, ones: Tensor, heights: Tensor, owner: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """The nodes of the panels in which the terms of some counts are above e^-DROP of the largest: twice (nodes, m).

    A panel is left out if both its ends are below that, and the end beside the mode is none of these.

    Args:
        slopes: (bags, edges) what a count less the likeliest one is multiplied by at the edges of the panels.
        ones: (bags, edges) that likeliest count.
        heights: (bags, edges) what is then added.
        owner: (m,) the bag of each count.
        counts: (m,).

    Returns:
        The nodes of each count, filled up with its last, and which of them are its own.
    """
    last = slopes.shape[1] - 1
    first, slope, likeliest, height = owner * (last + 1), slopes.flatten(), ones.flatten(), heights.flatten()

    def at(edge: Tensor) -> Tensor:
        place = first + edge
        return slope[place] * (counts - likeliest[place]) + height[place]

    zero = torch.zeros_like(first)
    top = _largest(zero, zero + last, lambda edge: at(edge) >= at(edge - 1))  # concave: up to it terms rise
    least = at(top) - _DROP
    left = top - _largest(zero, top, lambda steps: at(top - steps) >= least) - 1
    right = top + _largest(zero, last - top, lambda steps: at(top + steps) >= least)
    left, right = left.clamp(min=0) * _ORDER, (right + 1).clamp(max=last) * _ORDER - 1
    node = left + torch.arange(int((right - left).max()) + 1, device=left.device).unsqueeze(1)
    return torch.minimum(node, right), node <= right


def _largest(low: Tensor, high: Tensor, holds: Callable[[Tensor], Tensor]) -> Tensor:
    """The largest number from low to high for which something holds, where it holds for no larger one than that."""
    for _ in range(int((high - low).max()).bit_length()):
        middle = (low + high + 1) // 2
        true = holds(middle) | (low == high)
        low, high = torch.where(true, middle, low), torch.where(true, high, middle - 1)
    return low


def _possible(counts: Tensor, layout: Layout) -> Tensor:
    """The nearest counts that a bag of its size can have, float64."""
    return torch.minimum(counts.clamp(min=0), layout.sizes).double()


def _g(y: Tensor, layout: Layout, counts: Tensor, sigma: Tensor, centre: Tensor, zeta: Tensor) -> Tensor:
    """The logarithm of the integrand, less its value at zeta = 0, at nodes (..., *bags)."""
    # v s - K(v) is what an integrand of v would have; the likeliest labels, ones where y > 0, are counted rather than
    # summed, and set against s and the centre at once: nothing large is subtracted from anything large.
    slope = sigma * (counts - _ones(y, layout)) - centre
    return zeta * slope - zeta.square() / 2 - _excess(y, layout, sigma * zeta, shifted=False)


def _end(y: Tensor, layout: Layout, counts: Tensor, sigma: Tensor, centre: Tensor, side: float) -> Tensor:
    """The zeta on one side at which the integrand has fallen to e^-DROP of its largest value, about."""
    # g is concave: Newton's steps from outside approach the place from outside.
    zeta = torch.full_like(sigma, side * _WIDEST)
    for _ in range(_SEARCHES):
        value = _g(y, layout, counts, sigma, centre, zeta.unsqueeze(0)).squeeze(0)
        outside = value < -1.1 * _DROP
        if not bool(outside.any()):
            break
        slope = sigma * (counts - layout.sum(torch.sigmoid(y + layout.spread(sigma * zeta)))) - centre - zeta
        zeta = torch.where(outside, zeta - (value + _DROP) / slope, zeta)
    return zeta


def _panels(
    y: Tensor, layout: Layout, sigma: Tensor, low: Tensor, high: Tensor, *, densities: bool = True
) -> tuple[Tensor, Tensor]:
    """Panels from low to high for bags of logits y: where each begins and how wide it is, twice (panels, *bags).

    A function of u that is a product of powers of sigmoid(+-(y_i + u)) has its singularities at u = -y_i +- i pi. So a
    panel is as wide as FROM_POLE near a y_i and AWAY times the distance to the nearest far from all; and not wider than
    DEVIATIONS standard deviations of the normal density.

    With `densities` the logarithm of the function has the second derivative -V(u), V(u) = var(S | u), as e^{v s - K(v)}
    has for every s. For a density of that curvature a panel is at most DEVIATIONS / sqrt(V) wide for the largest V in
    it, for which V(u) e^width stands: |d log V / du| <= 1. Bags with fewer panels than others have some of width 0.
    """
    at, done = low, []
    while bool((at < high).any()):
        u = y + layout.spread(sigma * at)
        distance = -layout.max(-u.abs())
        width = torch.maximum(_AWAY * distance, torch.full_like(distance, _FROM_POLE))
        if densities:
            p = torch.sigmoid(u)
            width = torch.minimum(width, _steady(layout.sum(p * (1 - p))))
        width = torch.minimum(width / sigma, torch.full_like(width, _DEVIATIONS))
        width = torch.maximum(width, 1e-14 * at.abs())  # else logits of 1e15, with few digits left, would stop it
        done.append((at, torch.minimum(width, high - at).clamp(min=0.0)))
        at = torch.maximum(at, torch.minimum(at + width, high))
    if not done:
        return low.unsqueeze(0), torch.zeros_like(low).unsqueeze(0)
    return torch.stack([left for left, _ in done]), torch.stack([width for _, width in done])


def _steady(variance: Tensor) -> Tensor:
    """The w with w^2 V e^w = DEVIATIONS^2; infinite where V underflows, which the distance knows better."""
    level = 2 * math.log(_DEVIATIONS) - variance.log()
    # For a = log w it is the root of the convex 2 a + e^a = level. Newton's steps from above stay above.
    a = torch.minimum(level / 2, level.clamp(min=1.0).log())
    for _ in range(4):
        a = a - (2 * a + a.exp() - level) / (2 + a.exp())
    return a.exp().masked_fill(variance < 1e-250, torch.inf)


def _nodes(left: Tensor, width: Tensor) -> tuple[Tensor, Tensor]:
    """Nodes of Gauss' rule on panels (panels, *bags), and logarithms of their weights: (ORDER panels, *bags)."""
    x, w = (torch.as_tensor(part, device=left.device).reshape(1, -1, *(1 for _ in left.shape[1:])) for part in _EVEN)
    left, width = left.unsqueeze(1), width.unsqueeze(1)
    return (left + width * (x / 2 + 0.5)).flatten(0, 1), (width.log() + (w / 2).log()).flatten(0, 1)


def _excess(y: Tensor, layout: Layout, v: Tensor, *, shifted: bool) -> Tensor:
    """K(v) less v for each of the likeliest labels that is a one, those of y or, with `shifted`, of y + v.

    Which is taken is a matter of digits: the other part of v s - K(v), v times a difference of integers, must not be
    large beside it. Of the shape of v, (nodes, *bags).
    """
    if transformed():
        return _plain_excess(y, layout, v, shifted)  # these have rules for plain operations
    value: Tensor = _Excess.apply(y, v, layout, shifted)
    return value


def _plain_excess(y: Tensor, layout: Layout, v: Tensor, shifted: bool) -> Tensor:
    x = y + layout.spread(v)
    sign = torch.where((x if shifted else y) > 0, 1.0, -1.0)
    return layout.sum(logsigmoid(sign * y) - logsigmoid(sign * x))


def _ones(y: Tensor, layout: Layout) -> Tensor:
    """How many of the likeliest labels are ones."""
    return layout.sum((y > 0).double())


class _Excess(torch.autograd.Function):
    """`_excess` in linear memory: d/dv = sum_i c_i sigmoid(y_i + v) - ones, d/dy_i = c_i (sigmoid(y_i + v) - p_i)."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, v: Tensor, layout: Layout, shifted: bool) -> Tensor:
        ctx.save_for_backward(y, v)
        ctx.known = layout, shifted
        return torch.cat([_plain_excess(y, layout, part, shifted) for part in _parts(v, y)])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        y, v = ctx.saved_tensors
        layout, shifted = ctx.known
        by_y, by_v, p = torch.zeros_like(y), [], torch.sigmoid(y)
        for shift, upstream in zip(_parts(v, y), _parts(grad, y), strict=True):
            x = y + layout.spread(shift)
            moved = torch.sigmoid(x)
            by_y = by_y + (layout.spread(upstream) * (moved - p)).sum(0)
            by_v.append(upstream * (layout.sum(moved) - _ones(x if shifted else y, layout)))
        by_y = by_y if layout.copies is None else by_y * layout.copies
        return layout.present(by_y, 0.0), torch.cat(by_v), None, None


def _parts(per_node: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    """Nodes (nodes, *bags) in parts, so that instances times nodes fit into memory."""
    parts: tuple[Tensor, ...] = per_node.split(max(1, _ENTRIES // max(1, x.numel())))
    return parts
