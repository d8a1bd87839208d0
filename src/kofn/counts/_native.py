"""The C++ core as an engine (temporary face until kofn_event)."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from kofn.counts import _native_library
from kofn.counts._large_logits import any_large

DTYPES, available, takes = _native_library.DTYPES, _native_library.available, _native_library.takes


def scale(gradient: Tensor, offsets: Tensor, by: Tensor) -> Tensor:
    return _native_library.scale(gradient, offsets, _plain(by.to(gradient.dtype)))


def _plain(tensor: Any) -> Any:
    return tensor if tensor is None else tensor.contiguous().resolve_neg()


def _computable(x: Tensor) -> Tensor:
    return _plain(x if x.dtype in DTYPES else x.double())


class NativeEngine:
    @staticmethod
    def event(x, layout, low, high, sigma, weight, *, gradient):
        if sigma is not None or layout.copies is not None:
            from kofn.counts._engines import TorchEngine

            return TorchEngine.event(x, layout, low, high, sigma, weight, gradient=gradient)
        value, by_x = _native_library.interval(
            _computable(x), layout.offsets, _plain(low), _plain(high), weight, slope=gradient
        )
        return value, by_x, None, any_large(x)

    @staticmethod
    def posteriors(x, layout, low, high):
        if layout.copies is not None:
            from kofn.counts._engines import TorchEngine

            return TorchEngine.posteriors(x, layout, low, high)
        return _native_library.posteriors(_computable(x), layout.offsets, _plain(low), _plain(high))

    @staticmethod
    def all_counts(x, layout, *, tilts):
        value, tilts = _native_library.log_probs(_computable(x), layout.offsets, tilts=tilts)
        return value.to(x.dtype), tilts

    @staticmethod
    def all_counts_gradient(x, layout, tilts, weights):
        return _native_library.log_probs_gradient(_computable(x), layout.offsets, tilts, _plain(weights))
