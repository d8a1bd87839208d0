"""The distribution of S when the bags differ by more than their instances explain: a common shift of a bag's logits.

A bag has a shift u ~ N(0, sigma^2) of its own, and given u its labels are independent with logits x_i + u. Because a
common shift is an exponential tilt,

    P(S = s | u) = e^{u s} P(S = s | u = 0) / M(u),  M(u) = E[e^{u S}] = prod_i (q_i + p_i e^u),

one question to the engine is enough for all u, and what is left is an integral in one dimension: with K = log M,

    log P(S = s) = log P(S = s | u = 0) + log E_u[e^{u s - K(u)}].

Given S the shift says nothing more of the labels: P(y_i = 1 | S = s) is what it is without a shift.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn.functional import logsigmoid

from kofn.counts._layout import Layout
from kofn.counts._repeated import without_repetition

# The integrand over z = u / sigma is e^g, g(z) = sigma z s - K(sigma z) - z^2 / 2, log-concave with g'' <= -1. It is
# summed by the trapezoid rule, which converges exponentially for an analytic integrand, over all z at which it is
# above e^-DROP of its largest value. Halving the step squares the error. So the sum over every other node is compared
# with that over all, and nodes are doubled until both agree to TOLERANCE: the error of the sum over all is about
# its square, and below 1e-9.
_DROP, _TOLERANCE, _FIRST, _MOST, _SEARCHES = 37.0, 1e-6, 32, 4096, 60
_WIDEST = math.sqrt(2 * _DROP)  # from the mode to where the integrand is e^-DROP of it, at most, because g'' <= -1
_ENTRIES = 1 << 21  # instances times nodes that are worked on at a time
_COUNTS = 1 << 12  # counts of a table that are
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


def moments(x: Tensor, layout: Layout, sigma: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of S: E[E(S | u)], and E[var(S | u)] + var(E(S | u)), of logits in float64."""
    x, layout = without_repetition(x, layout)
    # sigmoid(x + sigma z) has its poles at a distance of pi / sigma: the step shrinks with sigma.
    finest = max(1.0, float(sigma.detach().max())) if sigma.numel() else 1.0
    steps = torch.linspace(-_WIDEST, _WIDEST, math.ceil(48 * finest), dtype=x.dtype, device=x.device)
    z = steps.reshape(-1, *(1 for _ in layout.shape))
    weight = (-z.square() / 2).exp()
    weight = weight / weight.sum()
    first = second = torch.zeros(layout.shape, dtype=x.dtype, device=x.device)
    for node, share in zip(z, weight, strict=True):
        p = torch.sigmoid(x + layout.spread(sigma * node))
        mean = layout.sum(p)
        first = first + share * mean
        second = second + share * (layout.sum(p * (1 - p)) + mean.square())
    return first, second - first.square()


def log_shift(x: Tensor, layout: Layout, counts: Tensor, sigma: Tensor) -> Tensor:
    """log E_u[e^{u s - K(u)}] of one count of each bag: of `layout.shape`, for logits in float64."""
    return _terms_of_count(x, layout, counts, sigma)[1].logsumexp(0).masked_fill(sigma == 0, 0.0)


def log_shift_slopes(x: Tensor, layout: Layout, counts: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`log_shift` and its gradients by the logits and by sigma, without a graph."""
    # With the terms of the sum as weights, d/dx_i = p_i - E[sigmoid(x_i + u)] and d/d sigma = E[z (s - E[S | u])].
    with torch.no_grad():
        z, terms = _terms_of_count(x, layout, counts, sigma)
        weight = terms.softmax(0).masked_fill(sigma == 0, 0.0)
        by_x, by_sigma = torch.sigmoid(x) * layout.spread(weight.sum(0)), torch.zeros_like(sigma)
        for node, share in zip(_parts(z, layout, x), _parts(weight, layout, x), strict=True):
            p = torch.sigmoid(x + layout.spread(sigma * node))
            by_x = by_x - (layout.spread(share) * p).sum(0)
            by_sigma = by_sigma + (share * node * (counts - layout.sum(p))).sum(0)
        return terms.logsumexp(0).masked_fill(sigma == 0, 0.0), by_x, by_sigma


def _terms_of_count(x: Tensor, layout: Layout, counts: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
    """The nodes of the integral of one count, and the logarithms of the terms of its sum."""
    wanted = torch.minimum(counts.clamp(min=0), layout.sizes).double()
    with torch.no_grad():
        low, high = _range(x.detach(), layout, sigma.detach(), wanted, wanted)

    def integrand(z: Tensor) -> Tensor:
        u = sigma * z
        return u * wanted - cumulants(x, layout, u)

    return _terms(integrand, low, high)


def log_shifts(x: Tensor, layout: Layout, sigma: Tensor) -> Tensor:
    """log E_u[e^{u s - K(u)}] of every count: laid out as `CountDistribution.log_probs` is.

    The counts of a bag share its nodes, and K is computed once for each of these. A large bag has thousands of nodes,
    but each count takes dozens of them, those near its mode. Some counts are worked on at a time.
    """
    every = layout.of_counts()
    place = every.place()
    bag = every.spread(torch.arange(layout.shape.numel(), device=x.device).reshape(layout.shape))
    owner = bag.expand(torch.broadcast_shapes(bag.shape, place.shape))
    shape, place, owner = owner.shape, place.expand(owner.shape).flatten(), owner.flatten()
    if not len(place):
        return sigma.new_zeros(shape)
    x, layout = without_repetition(x, layout)
    sizes = layout.sizes.double()
    counts = torch.minimum(place.double(), sizes.flatten()[owner])  # a count past the size of its bag is impossible
    with torch.no_grad():
        low, high = _range(x.detach(), layout, sigma.detach(), torch.zeros_like(sizes), sizes)
        nodes, most = _first_nodes(low, high, sigma.detach(), sizes), 3 * _FIRST
    while True:
        z, weight = _nodes(low, high, nodes)
        u = sigma * z
        slopes, heights = (each.reshape(nodes + 1, -1).T.contiguous() for each in (u, weight - cumulants(x, layout, u)))
        sums = []
        for bags, some in zip(owner.split(_COUNTS), counts.split(_COUNTS), strict=True):
            value, enough = _sum(_near_mode(slopes, heights, bags, some, most))
            if nodes < _MOST and not enough:
                break
            sums.append(value)
        else:
            return torch.cat(sums).reshape(shape).masked_fill(every.spread(sigma == 0), 0.0)
        nodes, most = 2 * nodes, 2 * most


def _first_nodes(low: Tensor, high: Tensor, sigma: Tensor, sizes: Tensor) -> int:
    """How many nodes to begin with: as many as the narrowest integrand takes.

    It is about a normal density of variance 1 / (1 + sigma^2 var S), and var S <= n / 4. The sums over all nodes and
    over every other one agree to TOLERANCE where a step is at most half of its standard deviation.
    """
    steps = (high - low) * (1 + sigma.square() * sizes / 4).sqrt() / 0.5
    wanted = float(steps.max()) / _FIRST if steps.numel() else 1.0
    return min(_MOST, _FIRST * 2 ** max(0, math.ceil(math.log2(wanted)))) if math.isfinite(wanted) else _FIRST


def _near_mode(slopes: Tensor, heights: Tensor, owner: Tensor, counts: Tensor, most: int) -> Tensor:
    """Logarithms of the terms of some counts, those above e^-DROP of the largest: (nodes of a count, m).

    A count at the edge of its bag, or of a small bag, has a wide integrand: of its nodes every second, fourth, ... is
    taken, so that they are at most `most` and one more.

    Args:
        slopes: (bags, nodes) what a count is multiplied by.
        heights: (bags, nodes) what is then added.
        owner: (m,) the bag of each count.
        counts: (m,).
        most: nodes of a count.
    """
    last = slopes.shape[1] - 1
    first, slope, height = owner * (last + 1), slopes.flatten(), heights.flatten()

    def at(node: Tensor) -> Tensor:
        return slope[first + node] * counts + height[first + node]

    with torch.no_grad():
        zero = torch.zeros_like(first)
        mode = _largest(zero, zero + last, lambda node: at(node) >= at(node - 1))  # concave: up to it terms rise
        least = at(mode) - _DROP
        left = mode - _largest(zero, mode, lambda steps: at(mode - steps) >= least)
        right = mode + _largest(zero, last - mode, lambda steps: at(mode + steps) >= least)
        stride = 2 ** ((right - left).clamp(min=1) / most).log2().ceil().clamp(min=0).long()
        steps = torch.arange(int(((right - left) // stride).max()) + 1, device=left.device).unsqueeze(1)
        node = left + stride * steps
    return at(node.clamp(max=last)).masked_fill(node > last, -torch.inf) + stride.log()


def _largest(low: Tensor, high: Tensor, holds: Callable[[Tensor], Tensor]) -> Tensor:
    """The largest number from low to high for which something holds, where it holds for no larger one than that."""
    for _ in range(int((high - low).max()).bit_length()):
        middle = (low + high + 1) // 2
        true = holds(middle) | (low == high)
        low, high = torch.where(true, middle, low), torch.where(true, high, middle - 1)
    return low


def _terms(log_integrand: Callable[[Tensor], Tensor], low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Nodes from low to high, and logarithms of what they add to the integral of e^log_integrand times the density."""
    nodes = _FIRST
    while True:
        z, weight = _nodes(low, high, nodes)
        terms = log_integrand(z) + weight
        if nodes >= _MOST or _sum(terms.detach())[1]:
            return z, terms
        nodes *= 2


def _nodes(low: Tensor, high: Tensor, nodes: int) -> tuple[Tensor, Tensor]:
    """Nodes from low to high, one more than their number says, and logarithms of their weights times the density."""
    k = torch.arange(nodes + 1, dtype=low.dtype, device=low.device).reshape(-1, *(1 for _ in low.shape))
    z = low + (high - low) * (k / nodes)
    return z, -z.square() / 2 - _LOG_SQRT_2PI + ((high - low) / nodes).log()


def _sum(terms: Tensor) -> tuple[Tensor, bool]:
    """The logarithm of the sum over nodes, and whether that over every other node is the same."""
    fine, coarse = terms.logsumexp(0), terms.detach()[::2].logsumexp(0) + math.log(2)
    return fine, not bool(((fine.detach() - coarse).abs() > _TOLERANCE).any())


def _range(x: Tensor, layout: Layout, sigma: Tensor, least: Tensor, most: Tensor) -> tuple[Tensor, Tensor]:
    """The z outside of which the integrand of no count from `least` to `most` is above e^-DROP of its largest value."""
    ends = []
    for counts, side in ((least, -1.0), (most, 1.0)):
        mode = _mode(x, layout, sigma, counts)
        height = _g(x, layout, sigma, counts, mode)[0] - _DROP
        # g is concave: Newton's steps from outside approach the place where it falls below `height` from outside.
        z = mode + side * _WIDEST
        for _ in range(_SEARCHES):
            value, slope = _g(x, layout, sigma, counts, z)
            outside = value < height - 0.1 * _DROP
            if not bool(outside.any()):
                break
            z = torch.where(outside, z - (value - height) / slope, z)
        ends.append(z)
    return ends[0], ends[1]


def _g(x: Tensor, layout: Layout, sigma: Tensor, counts: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    u = sigma * z
    shifted = layout.sum(torch.sigmoid(x + layout.spread(u)))
    return u * counts - cumulants(x, layout, u) - z.square() / 2, sigma * (counts - shifted) - z


def _mode(x: Tensor, layout: Layout, sigma: Tensor, counts: Tensor) -> Tensor:
    """Where g is largest, about: Newton's method, by halves where it would leave the interval that holds it.

    Also where a step is not half as long as the one before: else two steps may follow each other in a circle.
    """
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
    return z


def cumulants(x: Tensor, layout: Layout, u: Tensor) -> Tensor:
    """K(u) = sum_i log(q_i + p_i e^u) for shifts (..., *bags) of each bag: of the shape of u."""
    if torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0:
        return _cumulants(x, layout, u)  # these have rules for plain operations
    value: Tensor = _Cumulants.apply(x, u, layout)
    return value


def _cumulants(x: Tensor, layout: Layout, u: Tensor) -> Tensor:
    # log(q + p e^u) = softplus(x + u) - softplus(x); u itself for a certain positive, where that would be inf - inf.
    sure = x == torch.inf
    x = x.masked_fill(sure, -torch.inf)
    return layout.sum(logsigmoid(-x) - logsigmoid(-(x + layout.spread(u)))) + u * layout.sum(sure.double())


class _Cumulants(torch.autograd.Function):
    """`_cumulants` in linear memory: K'(u) = sum_i sigmoid(x_i + u), dK/dx_i = sigmoid(x_i + u) - sigmoid(x_i)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, u: Tensor, layout: Layout) -> Tensor:
        ctx.save_for_backward(x, u)
        ctx.layout = layout
        parts = [_cumulants(x, layout, part) for part in _parts(u, layout, x)]
        return torch.cat(parts) if len(parts) > 1 else parts[0]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, u = ctx.saved_tensors
        by_x, by_u = torch.zeros_like(x), []
        p = torch.sigmoid(x)
        for shift, upstream in zip(_parts(u, ctx.layout, x), _parts(grad, ctx.layout, x), strict=True):
            shifted = torch.sigmoid(x + ctx.layout.spread(shift))
            by_x = by_x + (ctx.layout.spread(upstream) * (shifted - p)).reshape(-1, *x.shape).sum(0)
            by_u.append(upstream * ctx.layout.sum(shifted))
        return by_x, torch.cat(by_u) if len(by_u) > 1 else by_u[0], None


def _parts(per_node: Tensor, layout: Layout, x: Tensor) -> tuple[Tensor, ...]:
    """Nodes in parts, so that instances times nodes fit into memory; one part where there is a single shift."""
    if per_node.dim() == len(layout.shape):
        return (per_node,)
    parts: tuple[Tensor, ...] = per_node.split(max(1, _ENTRIES // max(1, x.numel())))
    return parts
