"""Which implementation computes the distribution of S."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, get_args

from kofn.counts import _native_library

Backend = Literal["native", "torch"]


def _installed(name: str) -> Backend:
    if name == "native" and not _native_library.available:
        raise ValueError(
            "`native` must have been built when kofn was installed; this installation has none. Install again with a "
            "C++ compiler (KOFN_NATIVE=1 pip install ... says why it fails), or use 'torch'."
        )
    if name not in get_args(Backend):
        raise ValueError(f"`name` must be one of {', '.join(get_args(Backend))}; got {name!r}.")
    return "native" if name == "native" else "torch"


_default: Backend = _installed(os.environ.get("KOFN_BACKEND", "native" if _native_library.available else "torch"))
# One per thread and task, so that `use` in one does not change the others.
_current: ContextVar[Backend] = ContextVar("kofn backend")


def backend() -> Backend:
    """The implementation that the count functions use for CPU tensors: "native", the C++ core, or "torch".

    It is "native" when the core was built with the installation, unless the environment variable `KOFN_BACKEND` says
    "torch". Tensors on other devices, and tensors inside `torch.func` transforms, always go through "torch".

    Examples:
        >>> import kofn
        >>> kofn.counts.backend() in ("native", "torch")
        True
    """
    return _current.get(_default)


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
