"""Which implementation computes the distribution of S."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from typing import Literal, cast, get_args

from kofn.counts import _native_library

Backend = Literal["native", "torch", "triton"]


def _installed(name: str) -> Backend:
    if name not in get_args(Backend):
        raise ValueError(f"`name` must be one of {', '.join(get_args(Backend))}; got {name!r}.")
    if name == "native" and not _native_library.available:
        raise ValueError(
            "`native` must have been built when kofn was installed; this installation has none. Install again with a "
            "C++ compiler (KOFN_NATIVE=1 pip install ... says why it fails), or use 'torch'."
        )
    if name == "triton" and find_spec("triton") is None:
        raise ValueError(
            "`triton` must be installed to be used; it is not. PyTorch for CUDA on Linux brings it along; otherwise: "
            "pip install triton."
        )
    return cast(Backend, name)


_default: Backend = _installed(os.environ.get("KOFN_BACKEND", "native" if _native_library.available else "torch"))
# One per thread and task, so that `use` in one does not change the others.
_current: ContextVar[Backend] = ContextVar("kofn backend")


def backend() -> Backend:
    """The implementation that the count functions use: "native", the C++ core, "torch", or "triton".

    It is "native" when the core was built with the installation, unless the environment variable `KOFN_BACKEND` says
    otherwise. Tensors that the core does not take, on other devices and inside `torch.func` transforms, go through
    "torch". "triton" is experimental and never chosen by itself: see `use`.

    Examples:
        >>> import kofn
        >>> kofn.counts.backend() in ("native", "torch")
        True
    """
    return _current.get(_default)


@contextmanager
def use(name: Backend) -> Iterator[None]:
    """Use a named implementation inside a `with` block, in this thread.

    "triton" is experimental: one kernel for value and gradient of one count or one interval, for tensors on a CUDA
    device. All other questions go through "torch", as do second derivatives and compiled graphs.

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
