"""The C++ core, `native/`: loaded with ctypes, called on plain CPU tensors.

The library is built when kofn is installed; where that was not possible there is none, and `available` is False.
`KOFN_LIBRARY` names another build of it, such as one with sanitizers.
Nothing here knows of autograd. ctypes lets go of the GIL while a call runs; the core keeps nothing between calls.
"""

from __future__ import annotations

import ctypes
import os
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import torch
from torch import Tensor

from kofn.counts._layout import Layout

_Maybe = TypeVar("_Maybe", Tensor, Tensor | None)
DTYPES = {torch.float32: 0, torch.float64: 1}
_NUMBER = {dtype: torch.zeros((), dtype=dtype) for dtype in DTYPES}  # one number
_POINTER, _INT64, _INT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
_INTERFACE, _LARGE_LOGITS = 9, 5  # KOFN_INTERFACE and KOFN_LARGE_LOGITS in kofn.h
_BAGS: list[Any] = [_INT, _POINTER, _POINTER, _INT64, _INT64]  # dtype, logits, offsets or NULL, n, b
_OPTIONS: list[Any] = [_INT, _INT]  # level, threads
_GATHER: Any = ctypes.CFUNCTYPE(_INT, _POINTER, _INT64, _POINTER)  # kofn_gather


def _load() -> Any:
    path = os.environ.get("KOFN_LIBRARY") or _built()
    if path is None:
        return None
    library = ctypes.CDLL(str(path))
    # A stale build, left by an editable install or named by KOFN_LIBRARY, would read its arguments wrongly.
    if not hasattr(library, "kofn_interface") or library.kofn_interface() != _INTERFACE:
        raise ImportError(
            f"{path} was built for another version of kofn; build it again: pip install -e . (or make test)"
        )
    library.kofn_event.argtypes = [_INT, *[_POINTER] * 3, _INT64, _INT64, *[_POINTER] * 3, ctypes.c_double]
    library.kofn_event.argtypes += [*[_POINTER] * 5, *_OPTIONS]
    library.kofn_shared_event.argtypes = [*_BAGS, *[_POINTER] * 5, _INT64, _GATHER, *_OPTIONS]
    library.kofn_scale.argtypes = [*_BAGS, *[_POINTER] * 2]
    library.kofn_all_counts.argtypes = [*_BAGS, *[_POINTER] * 2, *_OPTIONS]
    library.kofn_all_counts_gradient.argtypes = [*_BAGS, *[_POINTER] * 3, *_OPTIONS]
    library.kofn_class_counts.argtypes = [*_BAGS, _INT64, *[_POINTER] * 4, *_OPTIONS]
    return library


def _built() -> Path | None:
    # An editable install has two folders in the package's path: the sources, and where the build put its results.
    spec = find_spec("kofn.counts")
    for folder in (spec and spec.submodule_search_locations) or []:
        for path in Path(folder).glob("libkofn.*"):
            if path.suffix in {".so", ".dylib", ".dll"}:
                return path
    return None


_library = _load()
available = _library is not None


def levels() -> list[int]:
    """The instruction sets that this build has and this machine can run: 1 baseline, 2 AVX2, 4 AVX-512."""
    mask = int(_library.kofn_levels()) if available else 0
    return [bit for bit in (1, 2, 4) if mask & bit]


def _wanted_level(text: str) -> int:
    """The level that an environment variable names; the best, with a warning, if this machine has none of that name."""
    allowed = {"": 0, "0": 0, **{str(bit): bit for bit in levels()}}
    if text.strip() not in allowed:
        warnings.warn(
            f"KOFN_LEVEL must be 0, for the best instruction set, or one that this machine has: "
            f"{', '.join(map(str, levels())) or 'none'}; got {text!r}, which is ignored. Correct or unset it.",
            RuntimeWarning,
            stacklevel=2,
        )
    return allowed.get(text.strip(), 0)


#: The instruction set that the core is made to use: one of `levels()`, or 0 for the best.
level = _wanted_level(os.environ.get("KOFN_LEVEL", ""))


def takes(logits: Tensor) -> bool:
    """Whether the core can look at this tensor: on the CPU, with memory of its own (or no numbers at all)."""
    try:
        return logits.is_cpu and (logits.data_ptr() != 0 or not logits.numel())
    except RuntimeError:  # a tensor that stands for another, as in torch's tracers
        return False


def event(
    logits: Tensor,
    copies: Tensor | None,
    offsets: Tensor | None,
    low: Tensor,
    high: Tensor | None,
    sigma: Tensor | None = None,
    weight: float | None = None,
    *,
    gradient: bool = False,
    by_sigma: bool = False,
    posterior: bool = False,
) -> tuple[Tensor, Any, Any, Any, bool]:
    """log P(low <= S <= high) of each bag, or with a weight that times their sum; what is wanted of the rest, or None.

    That is the gradient by the logits, that by sigma, and P(y_i = 1 | low <= S <= high). Value and gradient are in the
    dtype of the logits, float32 or float64, the others in float64. Last, whether some finite logit is too large for the
    answers to have all their digits.

    Logits are (..., n), or (m,) with offsets (b + 1,); copies int64 of the logits' shape, how many alike people each
    row stands for; low and high int64, one for each bag, high None for one count; sigma float64, the standard deviation
    of each bag's random effect, for one count. All tensors are contiguous.
    """
    value = torch.empty_like(low, dtype=logits.dtype) if weight is None else torch.empty_like(_NUMBER[logits.dtype])
    by_logits = torch.empty_like(logits) if gradient else None
    of_sigma = torch.empty_like(low, dtype=torch.float64) if by_sigma else None
    given = torch.empty_like(logits, dtype=torch.float64) if posterior else None
    # Spelt out rather than through `_run`: on small batches every microsecond of Python shows.
    code = _library.kofn_event(
        DTYPES[logits.dtype],
        logits.data_ptr(),
        None if copies is None else copies.data_ptr(),
        None if offsets is None else offsets.data_ptr(),
        logits.shape[-1],
        low.numel(),
        low.data_ptr(),
        None if high is None else high.data_ptr(),
        None if sigma is None else sigma.data_ptr(),
        1.0 if weight is None else weight,
        None if weight is None else value.data_ptr(),
        value.data_ptr() if weight is None else None,
        None if by_logits is None else by_logits.data_ptr(),
        None if of_sigma is None else of_sigma.data_ptr(),
        None if given is None else given.data_ptr(),
        level,
        torch.get_num_threads(),
    )
    if code and code != _LARGE_LOGITS:
        _fail(code)
    return value, by_logits, of_sigma, given, code == _LARGE_LOGITS


def shared_event(
    logits: Tensor,
    offsets: Tensor | None,
    low: Tensor,
    high: Tensor | None,
    processes: int,
    gather: Callable[[bytes], list[bytes]],
    *,
    gradient: bool,
) -> tuple[Tensor, Any]:
    """Value and gradient of bags that lie on several processes; `gather` gives what each gave it, in their order."""
    failures: list[BaseException] = []

    def call(mine: int, number: int, everywhere: int) -> int:
        try:
            ctypes.memmove(everywhere, b"".join(gather(ctypes.string_at(mine, number))), number * processes)
        except BaseException as error:  # none can pass through C: it is raised below
            failures.append(error)
        return len(failures)

    value = torch.empty_like(low, dtype=logits.dtype)
    by_logits = torch.empty_like(logits) if gradient else None
    answers = (value, by_logits, None)
    try:
        _run(_library.kofn_shared_event, logits, offsets, low.numel(), low, high, *answers, processes, _GATHER(call))
    except RuntimeError as error:
        raise (failures or [error])[0] from None
    return value, by_logits


def scale(gradient: Tensor, offsets: Tensor, by: Tensor) -> Tensor:
    """gradient (m,) times the number of its bag, by (b,)."""
    by = _plain(by.to(gradient.dtype))
    out = torch.empty_like(gradient)
    bags = len(offsets) - 1
    code = _library.kofn_scale(
        DTYPES[gradient.dtype], gradient.data_ptr(), offsets.data_ptr(), 0, bags, by.data_ptr(), out.data_ptr()
    )
    if code:
        _fail(code)
    return out


def all_counts(logits: Tensor, offsets: Tensor | None, *, tilts: bool) -> tuple[Tensor, Any, bool]:
    """log P(S = 0..n) of each bag, float64, and if wanted the tilts that `all_counts_gradient` asks for, both alike.

    Last, whether some finite logit is too large for the answers to have all their digits.
    """
    if offsets is None:
        bags = logits.shape[:-1].numel()
        value = torch.empty(*logits.shape[:-1], logits.shape[-1] + 1, dtype=torch.float64)
    else:
        bags = len(offsets) - 1
        value = torch.empty(len(logits) + bags, dtype=torch.float64)
    used = torch.empty_like(value) if tilts else None
    large = _run(_library.kofn_all_counts, logits, offsets, bags, value, used)
    return value, used, large


def all_counts_gradient(logits: Tensor, offsets: Tensor | None, tilts: Tensor, weights: Tensor) -> Tensor:
    """The gradient of sum_s weights_s log P(S = s) by the logits, float64."""
    out = torch.empty(logits.shape, dtype=torch.float64)
    bags = logits.shape[:-1].numel() if offsets is None else len(offsets) - 1
    _run(_library.kofn_all_counts_gradient, logits, offsets, bags, tilts, weights, out)
    return out


class NativeEngine:
    """The C++ core as an `Engine`, for CPU tensors."""

    @staticmethod
    def event(
        x: Tensor,
        layout: Layout,
        low: Tensor,
        high: Tensor | None,
        sigma: Tensor | None,
        weight: float | None,
        *,
        gradient: bool,
    ) -> tuple[Tensor, Any, Any, bool]:
        value, by_x, by_sigma, _, large = event(
            _computable(x),
            _plain(layout.copies),
            layout.offsets,
            low.contiguous(),
            None if high is None else high.contiguous(),
            _plain(sigma),
            weight,
            gradient=gradient,
            by_sigma=gradient and sigma is not None,
        )
        return value, by_x, by_sigma, large

    @staticmethod
    def posteriors(x: Tensor, layout: Layout, low: Tensor, high: Tensor | None) -> Tensor:
        given: Tensor = event(
            _computable(x), _plain(layout.copies), layout.offsets, _plain(low), _plain(high), posterior=True
        )[3]
        return given

    @staticmethod
    def all_counts(x: Tensor, layout: Layout, *, tilts: bool) -> tuple[Tensor, Any, bool]:
        value, used, large = all_counts(_computable(x), layout.offsets, tilts=tilts)
        return value.to(x.dtype), used, large

    @staticmethod
    def all_counts_gradient(x: Tensor, layout: Layout, tilts: Any, weights: Tensor) -> Tensor:
        return all_counts_gradient(_computable(x), layout.offsets, tilts, _plain(weights))


def _computable(x: Tensor) -> Tensor:
    """Logits as the core reads them: float32 or float64, one after the other in memory."""
    return _plain(x if x.dtype in DTYPES else x.double())


def _plain(tensor: _Maybe) -> _Maybe:
    """Contiguous memory that holds the values themselves, not their negatives (torch's lazy negative bit)."""
    return tensor if tensor is None else tensor.contiguous().resolve_neg()


def class_counts(
    logits: Tensor, offsets: Tensor | None, counts: Tensor, *, gradient: bool = False, posterior: bool = False
) -> tuple[Tensor, Any, Any]:
    """log P(K = k) of class counts (b, C), or (..., C), and if wanted its gradient and the posteriors, in float64.

    Logits are (..., n, C), or (m, C) with offsets. All tensors are contiguous.
    """
    value = torch.empty(counts.shape[:-1], dtype=logits.dtype)
    by_logits = torch.empty_like(logits) if gradient else None
    given = torch.empty(logits.shape, dtype=torch.float64) if posterior else None
    code = _library.kofn_class_counts(
        DTYPES[logits.dtype],
        logits.data_ptr(),
        None if offsets is None else offsets.data_ptr(),
        logits.shape[-2],
        value.numel(),
        logits.shape[-1],
        counts.data_ptr(),
        value.data_ptr(),
        None if by_logits is None else by_logits.data_ptr(),
        None if given is None else given.data_ptr(),
        level,
        torch.get_num_threads(),
    )
    if code:
        _fail(code)
    return value, by_logits, given


def _run(function: Any, logits: Tensor, offsets: Tensor | None, bags: int, *rest: Any) -> bool:
    """Call a function of the core; whether some finite logit was too large for it."""
    start = None if offsets is None else offsets.data_ptr()
    plain = [part.data_ptr() if isinstance(part, Tensor) else part for part in rest]
    code = function(
        DTYPES[logits.dtype], logits.data_ptr(), start, logits.shape[-1], bags, *plain, level, torch.get_num_threads()
    )
    if code and code != _LARGE_LOGITS:
        _fail(code)
    return bool(code)


def _fail(code: int) -> NoReturn:
    if code == 2:
        raise MemoryError("the C++ core of kofn could not get the memory for this batch of bags.")
    raise RuntimeError(f"the C++ core of kofn failed with code {code} (KOFN_LEVEL={level}, levels {levels()}).")
