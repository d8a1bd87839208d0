"""The joint probability of class counts of each bag: exactly where that is cheap, else by the local limit.

For any event A, d log P(A) / d x_ic = c_i (P(y_i = c | A) - P(y_i = c)) with c_i the copies of an instance: value and
gradient come together, from one node of autograd. The exact ones are those of the C++ core or, where it cannot look at
the logits, of the recursion in torch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import log, log1p
from typing import Literal

import torch
from torch import Tensor

from kofn import _require
from kofn.classes import _local_limit, _recursion
from kofn.classes._one_vs_rest import one_certain_class
from kofn.classes._recursion import joint_states
from kofn.classes._rows import Rows, cut, in_batches, join
from kofn.counts import Layout, _native, backend
from kofn.counts._closed import Solve, with_gradient
from kofn.counts._host import transformed
from kofn.counts._large_logits import any_large
from kofn.counts._layout import Ragged

Method = Literal["auto", "exact", "limit"]
"""How joint counts of classes are computed: see `kofn.log_class_count_prob`."""
Engine = Callable[[Rows], Tensor]

BUDGET = 10**6
"""The largest bag, in `joint_cells`, whose joint distribution is computed exactly by method="auto"."""
#: Frequencies of the characteristic function of so many classes, about.
FREQUENCIES = (1, 1, 40, 400, 6_000, 100_000)
_CUT = 3e7  # a class so far below another one never occurs in counts with log P > _LEAST
_LEAST = -1e7  # log P: of 1e7 float64 keeps nine digits after the point


def joint_cells(counts: Tensor) -> Tensor:
    """Size of the table from which the exact joint probability of class counts is computed, for each bag.

        n * min(states, frequencies),   states = prod_{c: all but the largest} (k_c + 1),   n = k_1 + ... + k_C,

    where `frequencies`, those of the characteristic function, are about 40, 400, 6,000 and 100,000 for two,
    three, four and five classes that occur, and infinitely many beyond: large bags of few classes are linear in n. Each
    cell costs about a nanosecond for each class that occurs, value and gradient together. Without the C++ core there
    are no frequencies: n * states.

    Args:
        counts: (..., C) integers.

    Returns:
        (...) float64.

    Examples:
        >>> import torch, kofn
        >>> kofn.classes.joint_cells(torch.tensor([[4, 1, 1, 2], [100, 0, 0, 0]]))
        tensor([ 96., 100.], dtype=torch.float64)
    """
    states = joint_states(counts)
    if backend() == "native":
        kinds = (counts > 0).sum(-1)
        known = torch.tensor(FREQUENCIES, dtype=torch.float64, device=counts.device)
        frequencies = torch.where(kinds < len(known), known[kinds.clamp(max=len(known) - 1)], torch.inf)
        states = torch.minimum(states, frequencies)
    return states * counts.clamp(min=0).sum(-1)


def log_prob(x: Tensor, layout: Layout, counts: Tensor, method: Method) -> Tensor:
    """log P(K = k) of each bag, of `layout.shape`, in the dtype of the logits.

    Args:
        x: logits (..., n, C) or (m, C), -inf in all classes where there is no instance.
        layout: of their instances.
        counts: int64 of `layout.shape` and then the classes.
        method: see `kofn.log_class_count_prob`.
    """
    return _answer(log_prob, _log_prob, x, layout, counts, method)


def posteriors(x: Tensor, layout: Layout, counts: Tensor, method: Method) -> Tensor:
    """P(y_i = c | K = k), of the shape and dtype of the logits; arguments as in `log_prob`."""
    return _answer(posteriors, _posteriors, x, layout, counts, method)


def _answer(
    again: Callable[..., Tensor],
    solve: Callable[..., Tensor],
    x: Tensor,
    layout: Layout,
    counts: Tensor,
    method: Method,
) -> Tensor:
    if torch.compiler.is_compiling():  # the size of a table depends on values: the graph breaks here
        outside: Tensor = torch.compiler.disable(again)(x, layout, counts, method)
        return outside
    if not any_large(x):
        return solve(x, layout, counts, method).to(x.dtype)
    # Of logits beyond 1e5 differences come first, and an answer that has too few digits left is refused.
    y = _differences(x)
    value = _log_prob(y if solve is _log_prob else y.detach(), layout, counts, method)
    fits = ~(value < _LEAST) | (value == -torch.inf)
    if not _require.holds(fits):
        raise ValueError(
            f"`logits` must not differ so much that joint class counts have a log-probability below {_LEAST:g}; got "
            f"{float(value[~fits].flatten()[0]):g}. An impossible class has the logit -inf; scale others down."
        )
    return (value if solve is _log_prob else solve(y, layout, counts, method)).to(x.dtype)


def _differences(logits: Tensor) -> Tensor:
    """Logits less the largest of their instance, in float64, where that is finite."""
    x = logits.double()
    top = x.detach().amax(-1, keepdim=True)
    below = (x.detach() - top.masked_fill(~top.isfinite(), 0.0)).clamp(min=-_CUT)
    # The values of the differences with the derivative of the logits, where these are finite.
    return torch.where(x.isfinite() & top.isfinite(), below + (x - x.detach()), x)


def _log_prob(x: Tensor, layout: Layout, counts: Tensor, method: Method) -> Tensor:
    exact = _exact(layout, counts, method)
    if exact is True and layout.copies is None and _native_takes(x):
        return _by_core(x, layout, counts)
    x, counts, bags = x.reshape(-1, x.shape[-1]), counts.reshape(-1, counts.shape[-1]), flat(layout)
    if isinstance(exact, bool):
        return _value(x, bags, counts, exact=exact).reshape(layout.shape)
    values = [_value(*_part(x, bags, counts, which), exact=which is exact) for which in (exact, ~exact)]
    return torch.cat(values)[_places(exact.flatten())].reshape(layout.shape)


def _posteriors(x: Tensor, layout: Layout, counts: Tensor, method: Method) -> Tensor:
    exact = _exact(layout, counts, method)
    rows, counts, bags = x.reshape(-1, x.shape[-1]), counts.reshape(-1, counts.shape[-1]), flat(layout)
    if isinstance(exact, bool):
        return _given(rows, bags, counts, exact=exact).reshape(x.shape)
    values = [_given(*_part(rows, bags, counts, which), exact=which is exact) for which in (exact, ~exact)]
    return torch.cat(values)[_places(bags.spread(exact.flatten()))].reshape(x.shape)


def flat(layout: Layout) -> Ragged:
    """The bags one after the other, whether they are rows or slices."""
    if isinstance(layout, Ragged):
        return layout
    bags, copies = layout.shape.numel(), None if layout.copies is None else layout.copies.flatten()
    offsets = torch.arange(bags + 1) * layout.length
    return Ragged(bags * layout.length, layout.device, offsets, copies)


def _exact(layout: Layout, counts: Tensor, method: Method) -> Tensor | bool:
    """Whether bags are computed exactly: each of them, or all."""
    _require.option("method", method, ("auto", "exact", "limit"))
    if method != "auto":
        return method == "exact"
    # Of all counts that sum to n, equal ones have the largest product: then there is no need to look at each.
    longest, classes = layout.longest, counts.shape[-1]
    if layout.copies is None and longest and log(longest) + classes * log1p(longest / classes) <= log(BUDGET):
        return True
    exact = joint_cells(counts) <= BUDGET
    return bool(exact.all()) or (exact if bool(exact.any()) else False)


def _part(x: Tensor, layout: Ragged, counts: Tensor, which: Tensor) -> tuple[Tensor, Ragged, Tensor]:
    """Some of the bags."""
    which = which.flatten()
    entries = layout.spread(which)
    sizes = layout.offsets.diff()[which.cpu()]
    copies = None if layout.copies is None else layout.copies[entries]
    offsets = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    return x[entries], Ragged(int(offsets[-1]), layout.device, offsets, copies), counts[which]


def _places(first: Tensor) -> Tensor:
    """Where each went, when those that are true came first."""
    return (~first).long().argsort(dim=0, stable=True).argsort()


def _value(x: Tensor, layout: Layout, counts: Tensor, *, exact: bool) -> Tensor:
    """log P(K = k), (b,), of flat logits: one node of autograd."""
    if exact and layout.copies is not None:  # a table of all counts is as long as there are people
        entries, layout = layout.people()
        x = x[entries]
    if exact and _native_takes(x):
        return _by_core(x, layout, counts)
    return with_gradient(x.double(), *_in_torch(layout, counts, exact=exact))


def _by_core(x: Tensor, layout: Layout, counts: Tensor) -> Tensor:
    """The exact log P(K = k), of `layout.shape`, by the C++ core."""

    def solve(x: Tensor, wanted: bool) -> tuple[Tensor, Tensor | None]:
        value, gradient, _ = _native.class_counts(x, layout.offsets, counts.contiguous(), gradient=wanted)
        return value, gradient

    def plain(x: Tensor) -> Tensor:
        each = counts.reshape(-1, counts.shape[-1])
        value = _in_torch(flat(layout), each, exact=True)[1](x.reshape(-1, x.shape[-1]))
        return value.reshape(layout.shape).to(x.dtype)

    return with_gradient(_computable(x), solve, plain, lambda grad: layout.spread(grad).unsqueeze(-1))


def _given(x: Tensor, layout: Layout, counts: Tensor, *, exact: bool) -> Tensor:
    """P(y_i = c | K = k), (m, C), of flat logits: the prior and the gradient."""
    higher = transformed() or (x.requires_grad and torch.is_grad_enabled())
    if exact and layout.copies is None and not higher and _native_takes(x):
        posterior: Tensor = _native.class_counts(_computable(x), layout.offsets, counts.contiguous(), posterior=True)[2]
        return posterior
    wide = x.double()
    with torch.enable_grad():
        nothing = torch.zeros_like(wide).requires_grad_()
        # Infinite logits say what they say: a gradient by them is 0.
        value = _value((wide if higher else wide.detach()) + nothing, layout, counts, exact=exact)
        value = value.masked_fill(value == -torch.inf, 0.0)
        (gradient,) = torch.autograd.grad(value.sum(), nothing, create_graph=higher)
    if layout.copies is not None:
        gradient = gradient / layout.copies.clamp(min=1).unsqueeze(-1)
    absent = (wide == -torch.inf).all(-1, keepdim=True)
    prior = one_certain_class(wide).masked_fill(absent, 0.0).softmax(-1)
    found = (prior + gradient).masked_fill(absent, 0.0).clamp(0.0, 1.0)
    return found / found.sum(-1, keepdim=True).masked_fill(absent, 1.0)


def _in_torch(
    layout: Layout, counts: Tensor, *, exact: bool
) -> tuple[Solve, Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]:
    """For `with_gradient`, of logits in float64: value and gradient, plain operations, and from bags to entries."""
    higher: Engine = _recursion.log_prob if exact else _local_limit.log_prob
    first: Engine = _recursion.log_prob if exact else partial(_local_limit.log_prob, steps=1)
    batches = _recursion.batches if exact else _local_limit.batches

    def plain(x: Tensor) -> Tensor:
        pieces = cut(x, layout, counts, absent_classes=False)
        return join(layout, [answer.value(in_batches(rows, batches(rows), higher)) for rows, answer in pieces])

    def solve(x: Tensor, wanted: bool) -> tuple[Tensor, Tensor | None]:
        with torch.set_grad_enabled(wanted):
            x = x.detach().requires_grad_(wanted)
            pieces = cut(x, layout, counts, absent_classes=False)
            found = [_by_batches(rows, batches(rows), first) for rows, _ in pieces]
            value = join(layout, [answer.value(v) for (v, _), (_, answer) in zip(found, pieces, strict=True)])
            if not wanted:
                return value, None
            sources = [rows.log_p for rows, _ in pieces]
            (gradient,) = torch.autograd.grad(sources, x, [by_log_p for _, by_log_p in found])
        # Impossible counts say nothing, and a NaN makes all of its bag NaN.
        entries = layout.spread(value.detach()).unsqueeze(-1)
        gradient = gradient.masked_fill(entries == -torch.inf, 0.0).masked_fill(entries.isnan(), torch.nan)
        return value.detach(), gradient

    return solve, plain, lambda grad: layout.spread(grad).unsqueeze(-1)


def _by_batches(rows: Rows, batches: list[Tensor], engine: Engine) -> tuple[Tensor, Tensor]:
    """log P(K = k), (b,), and its gradient by the log-probabilities, (b, n, C), so many bags at a time."""
    value, gradient = torch.empty_like(rows.counts[:, 0]), torch.zeros_like(rows.log_p)
    for bags in batches:
        part = rows.select(bags)
        if torch.is_grad_enabled():
            part = part._replace(log_p=part.log_p.detach().requires_grad_())
        found = engine(part)
        if torch.is_grad_enabled():
            (by_log_p,) = torch.autograd.grad(found.sum(), part.log_p)
            gradient[bags] = by_log_p
        value[bags] = found.detach()
    return value.detach(), gradient.detach()


def _native_takes(x: Tensor) -> bool:
    return backend() == "native" and not transformed() and _native.takes(x)


def _computable(x: Tensor) -> Tensor:
    """The logits as the C++ core reads them: float32 or float64, one after the other in memory."""
    return (x if x.dtype in _native.DTYPES else x.double()).contiguous().resolve_neg()
