"""Errors of each contender against 50 digits, in the bulk and in the tails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from sys import path

import numpy as np
import torch
from torch import Tensor

import kofn
from bench import contenders

path.append(str(Path(__file__).parent.parent / "tests"))
from oracles import mpmath_gradient, mpmath_log_prob

Errors = dict[str, tuple[float, float | None]]  # log p: relative to max(1, |log p|); gradient: absolute, or none


def cases() -> Iterator[tuple[str, Errors]]:
    """Each case: its name, and for each contender its two errors."""
    rng = np.random.default_rng(0)
    # Logits that float32 holds exactly: no contender is charged for rounding its input.
    mild = rng.normal(0, 1.5, 200).astype(np.float32).astype(float)
    steep = rng.normal(0, 50, 200).astype(np.float32).astype(float)
    middle = int(torch.sigmoid(torch.from_numpy(mild)).sum())
    yield "n = 200, in the bulk", errors(mild, middle)
    yield "n = 200, 6 standard deviations out", errors(mild, middle + 36)
    yield "n = 200, far tail (all but two positive)", errors(mild, 198)
    yield "n = 200, logits of +-100, one more than likely", errors(steep, int((steep > 0).sum()) + 1)
    yield "n = 200, logits of +-100, far tail", errors(steep, 190)


def without_core(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The same function with kofn's C++ core turned off."""

    def in_torch(x: Tensor) -> Tensor:
        with kofn.counts.use("torch"):
            return function(x)

    return in_torch


def errors(logits: np.ndarray, count: int) -> Errors:
    value = mpmath_log_prob(logits.tolist(), count)
    gradient = np.array(mpmath_gradient(logits.tolist(), count))
    counts = torch.tensor([count])

    def of(found: float, by: np.ndarray | None) -> tuple[float, float | None]:
        return abs(found - value) / max(1, abs(value)), None if by is None else float(np.abs(by - gradient).max())

    def torch_run(dtype: torch.dtype, function: Callable[[Tensor], Tensor]) -> tuple[float, float | None]:
        x = torch.from_numpy(logits).to(dtype).unsqueeze(0).requires_grad_()
        out = function(x)
        (by,) = torch.autograd.grad(out.sum(), x)
        return of(out.item(), by[0].double().numpy())

    probs = torch.sigmoid(torch.from_numpy(logits)).numpy()
    return {
        "kofn, float64": torch_run(torch.float64, lambda x: kofn.log_count_prob(x, counts)),
        "kofn, float32": torch_run(torch.float32, lambda x: kofn.log_count_prob(x, counts)),
        "kofn in torch, float64": torch_run(torch.float64, without_core(lambda x: kofn.log_count_prob(x, counts))),
        "algorithm 1, float64": torch_run(torch.float64, lambda x: contenders.algorithm_1_one_count(x, counts)),
        "algorithm 1, float32": torch_run(torch.float32, lambda x: contenders.algorithm_1_one_count(x, counts)),
        "scipy": of(float(contenders.scipy_log_probs(probs, np.array(count))), None),
        "fast-poibin": of(float(contenders.fast_poibin_log_probs(probs, np.array(count))), None),
    }
