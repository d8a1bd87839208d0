"""Which implementation computes the law of S."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

Backend = Literal["native", "torch"]


def backend() -> Backend:
    """The implementation that the count functions use: "torch", the only one so far.

    Example:
        >>> import kofn
        >>> kofn.counts.backend()
        'torch'
    """
    return "torch"


@contextmanager
def use(name: Backend) -> Iterator[None]:
    """Use a named implementation inside a `with` block.

    Raises:
        ValueError: an implementation that this installation does not have.

    Example:
        >>> import kofn
        >>> with kofn.counts.use("torch"):
        ...     kofn.counts.backend()
        'torch'
    """
    if name != "torch":
        raise ValueError(f"`name` must be an implementation of this installation, 'torch'; got {name!r}.")
    yield
