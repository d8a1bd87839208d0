"""Keeping the engine out of `torch.compile`'s graphs."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")


def eager(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function as it is inside a compiled one: the graph breaks around it, the program does not.

    How many steps a tilt takes and how many frequencies a law needs depends on the values, so there is no one graph
    of it. (`torch.compiler.disable` itself would import the compiler, 1.5 s, with every `import kofn`.)
    """

    @wraps(function)
    def outside(*args: P.args, **kwargs: P.kwargs) -> R:
        if torch.compiler.is_compiling():
            result: R = torch.compiler.disable(function)(*args, **kwargs)
            return result
        return function(*args, **kwargs)

    return outside
