"""What kind of value each fact of a model file is, so that a forged one is refused when it is read, and not later."""

from __future__ import annotations

from types import NoneType
from typing import Any

NUMBER = (int, float)
TEXT_OR_NONE = (str, NoneType)
WIDEST_INT = 2**64  # beyond what numpy and torch hold; JSON has integers of any length
NUMBER_OR_NONE = (int, float, NoneType)


def require_shape(name: str, value: Any, shape: Any) -> None:
    """Require a value of plain JSON of this shape.

    Args:
        name: of the value, for errors.
        value: what was read.
        shape: a type or several; a list of one shape, that of all items; or a dict from names that must be there to the
            shapes of their values, where ... stands for all names.

    Raises:
        TypeError: it has another, or an integer beyond 64 bits.
        KeyError: a name is missing.

    Examples:
        >>> require_shape("history", [{"epoch": 1, "train_loss": 0.5}], [{...: NUMBER}])
        >>> require_shape("history", [{"epoch": "first"}], [{...: NUMBER}])
        Traceback (most recent call last):
        TypeError: its history[0].epoch is a str
    """
    kinds = type(shape) if isinstance(shape, (list, dict)) else shape
    if not isinstance(value, kinds) or (isinstance(value, bool) and shape is not bool):
        raise TypeError(f"its {name} is a {type(value).__name__}")
    if isinstance(value, int) and abs(value) >= WIDEST_INT:
        raise TypeError(f"its {name} is beyond 64 bits")
    if isinstance(shape, list):
        for place, item in enumerate(value):
            require_shape(f"{name}[{place}]", item, shape[0])
    elif isinstance(shape, dict):
        for key, inner in shape.items():
            for chosen in value if key is ... else [key]:
                require_shape(f"{name}.{chosen}", value[chosen], inner)
