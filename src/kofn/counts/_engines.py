"""What computes probabilities of counts: the C++ core where it can look at the logits, torch everywhere else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, Protocol, cast, get_args

import torch
from torch import Tensor

from kofn.counts import _native, _random_effect
from kofn.counts._all_counts import Derivatives, from_bag, sweep, to_bag
from kofn.counts._large_logits import any_large
from kofn.counts._layout import Layout
from kofn.counts._probability import Interval, Undecided

Backend = Literal["native", "torch"]


def _installed(name: str) -> Backend:
    if name not in get_args(Backend):
        raise ValueError(f"`name` must be one of {', '.join(get_args(Backend))}; got {name!r}.")
    if name == "native" and not _native.available:
        raise ValueError(
            "`native` must have been built when kofn was installed; this installation has none. Install again with a "
            "C++ compiler (KOFN_NATIVE=1 pip install ... says why it fails), or use 'torch'."
        )
    return cast(Backend, name)


_default: Backend = _installed(os.environ.get("KOFN_BACKEND", "native" if _native.available else "torch"))
# One per thread and task, so that `use` in one does not change the others.
_current: ContextVar[Backend] = ContextVar("kofn backend", default=_default)


def backend() -> Backend:
    """The implementation that the count functions use: "native", the C++ core, or "torch".

    It is "native" when the core was built with the installation, unless the environment variable `KOFN_BACKEND` says
    otherwise. Tensors that the core does not take, such as those on other devices, go through "torch".

    Examples:
        >>> import kofn
        >>> kofn.counts.backend() in ("native", "torch")
        True
    """
    return _current.get()


@contextmanager
def use(name: Backend) -> Iterator[None]:
    """Use a named implementation inside a `with` block, in this thread.

    Raises:
        ValueError: an implementation that does not exist or that this installation does not have.

    Examples:
        >>> import kofn
        >>> with kofn.counts.use("torch"):
        ...     kofn.counts.backend()
        'torch'
    """
    token = _current.set(_installed(name))
    try:
        yield
    finally:
        _current.reset(token)


class Engine(Protocol):
    """What computes values and gradients, without a graph, of plain tensors.

    Logits have -inf where there is no instance; their layout says which belong to which bag, and their copies. `high`
    None means one count, `low`. Values are in the dtype of the logits, gradients of their shape and dtype.
    """

    def event(
        self,
        x: Tensor,
        layout: Layout,
        low: Tensor,
        high: Tensor | None,
        sigma: Tensor | None,
        weight: float | None,
        *,
        gradient: bool,
    ) -> tuple[Tensor, Any, Any, bool]:
        """log P(low <= S <= high) of each bag, or with a weight that times their sum; its gradients if wanted.

        These are by the logits and, with standard deviations sigma of a random effect, by sigma. Last, whether some
        finite logits are so large that the answers are not to be trusted: see `_large_logits`.
        """

    def posteriors(self, x: Tensor, layout: Layout, low: Tensor, high: Tensor | None) -> Tensor:
        """P(y_i = 1 | low <= S <= high), float64; P(y_i = 1) where that is impossible."""

    def all_counts(self, x: Tensor, layout: Layout, *, tilts: bool) -> tuple[Tensor, Any, bool]:
        """log P(S = s) for every s, laid out as `layout.of_counts`, and what `all_counts_gradient` wants back.

        Last, whether some finite logits are too large, as of `event`.
        """

    def all_counts_gradient(self, x: Tensor, layout: Layout, tilts: Any, weights: Tensor) -> Tensor:
        """The gradient of sum_s weights_s log P(S = s), float64."""


def engine_for(x: Tensor) -> Engine:
    """The engine that takes these logits."""
    return _native.NativeEngine if _current.get() == "native" and _native.takes(x) else TorchEngine


class TorchEngine:
    """Pure torch, on any device: bags are laid out in rectangles, results put back in order."""

    @classmethod
    def event(
        cls,
        x: Tensor,
        layout: Layout,
        low: Tensor,
        high: Tensor | None,
        sigma: Tensor | None,
        weight: float | None,
        *,
        gradient: bool,
    ) -> tuple[Tensor, Any, Any, bool]:
        by_x = by_sigma = None
        if sigma is not None:
            value, by_x, by_sigma = _random_effect.event(cls._one_count, x.double(), layout, low, sigma)
        elif gradient:
            value, by_x = cls._interval(x, layout, low, high)
        else:
            pieces, intervals = cls._intervals(x, layout, low, high)
            value = pieces.join([interval.log_prob() for interval in intervals])
        if weight is not None:
            value = value.sum() * weight
            by_x, by_sigma = (None if part is None else part * weight for part in (by_x, by_sigma))
        return value.to(x), None if by_x is None or not gradient else by_x.to(x), by_sigma, any_large(x)

    @classmethod
    def _one_count(cls, x: Tensor, layout: Layout, counts: Tensor) -> tuple[Tensor, Tensor]:
        return cls._interval(x, layout, counts, None)

    @classmethod
    def _interval(cls, x: Tensor, layout: Layout, low: Tensor, high: Tensor | None) -> tuple[Tensor, Tensor]:
        """log P(low <= S <= high), and its gradient c_i (P(y_i = 1 | low <= S <= high) - p_i): float64."""
        pieces, intervals = cls._intervals(x, layout, low, high)
        gradient = pieces.join_entries([interval.gradient() for interval in intervals])
        return pieces.join([interval.log_prob() for interval in intervals]), gradient

    @classmethod
    def posteriors(cls, x: Tensor, layout: Layout, low: Tensor, high: Tensor | None) -> Tensor:
        pieces, intervals = cls._intervals(x, layout, low, high)
        given: Tensor = pieces.join_entries([interval.posteriors() for interval in intervals])
        return given.to(x.device)

    @classmethod
    def hessian_product(cls, x: Tensor, layout: Layout, low: Tensor, high: Tensor | None, values: Tensor) -> Tensor:
        """sum_j d^2 log P(low <= S <= high) / dx_i dx_j values_j, float64.

        d P(y_i = 1 | A) / d x_j = c_j Cov(y_i, y_j | A), one of all pairs of copies being of one and the same.
        """
        pieces, intervals = cls._intervals(x, layout, low, high, second_order=True)
        parts = pieces.cut_entries(values.to(_device_of(x)).double(), 0.0)
        covariances = [interval.covariance(part) for interval, part in zip(intervals, parts, strict=True)]
        p = torch.sigmoid(x.to(_device_of(x)).double())
        product = pieces.join_entries(covariances) - p * (1 - p) * values.to(p)
        if layout.copies is not None:
            product = layout.present(product * layout.copies, 0.0)
        by_x: Tensor = product.to(x.device)
        return by_x

    @staticmethod
    def _intervals(
        x: Tensor, layout: Layout, low: Tensor, high: Tensor | None, *, second_order: bool = False
    ) -> tuple[Any, list[Interval]]:
        device, pieces = _device_of(x), layout.rectangles()
        rows = pieces.cut_entries(x.to(device), -torch.inf)
        lows = pieces.cut(low.to(device))
        highs = [None] * len(rows) if high is None else pieces.cut(high.to(device))
        copies = (
            [None] * len(rows) if layout.copies is None else pieces.cut_entries(layout.copies.to(device).double(), 0.0)
        )
        return pieces, [
            Interval(*part, second_order=second_order) for part in zip(rows, lows, highs, copies, strict=True)
        ]

    @classmethod
    def all_counts(cls, x: Tensor, layout: Layout, *, tilts: bool) -> tuple[Tensor, Any, bool]:
        pieces, found, leans = layout.rectangles(), [], []
        for bags in map(Undecided.of, pieces.cut_entries(x.to(_device_of(x)), -torch.inf)):
            values, lean = sweep(bags)
            found.append(to_bag(values, bags, -torch.inf))
            leans.append(lean)
        return pieces.join_entries(found, extra=1).to(x), leans, any_large(x)

    @classmethod
    def all_counts_gradient(cls, x: Tensor, layout: Layout, tilts: Any, weights: Tensor) -> Tensor:
        each = cls._derivatives(x, layout, tilts, weights)
        return layout.rectangles().join_entries([part.gradient() for _, part in each]).to(x.device)

    @classmethod
    def all_counts_second(cls, x: Tensor, layout: Layout, weights: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """The derivatives of sum_i values_i all_counts_gradient_i by the weights and by the logits, float64."""
        pieces = layout.rectangles()
        each = cls._derivatives(x, layout, cls.all_counts(x, layout, tilts=True)[1], weights)
        along = pieces.cut_entries(values.to(_device_of(x)).double(), 0.0)
        by_weights, by_x = [], []
        for (bags, derivatives), part in zip(each, along, strict=True):
            first, second = derivatives.along(part)
            by_weights.append(to_bag(first, bags, 0.0))
            by_x.append(second)
        return pieces.join_entries(by_weights, extra=1).to(x.device), pieces.join_entries(by_x).to(x.device)

    @staticmethod
    def _derivatives(x: Tensor, layout: Layout, tilts: Any, weights: Tensor) -> list[tuple[Undecided, Derivatives]]:
        device, pieces = _device_of(x), layout.rectangles()
        rows = [Undecided.of(part) for part in pieces.cut_entries(x.to(device), -torch.inf)]
        each = zip(rows, tilts, pieces.cut_entries(weights.to(device), 0.0, extra=1), strict=True)
        return [(bags, Derivatives(bags, lean, from_bag(part, bags))) for bags, lean, part in each]


def _device_of(x: Tensor) -> torch.device:
    """Where bags are computed: on the device of the logits, unless that has no float64."""
    return torch.device("cpu") if x.device.type == "mps" else x.device
