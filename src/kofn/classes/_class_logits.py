"""The arguments of a distribution of class counts, checked here and nowhere below."""

from __future__ import annotations

from torch import Tensor

from kofn import _require


def require_class_logits(value: object) -> Tensor:
    """Require floating point logits with a dimension for the instances and one for the classes."""
    logits = _require.dense_tensor("logits", value)
    if not logits.is_floating_point():
        raise TypeError(
            f"`logits` must be floating point scores of the classes; got {logits.dtype}. Labels are no logits; "
            f"scores of another dtype convert with logits.float()."
        )
    if logits.dim() < 2 or not logits.shape[-1]:
        raise ValueError(
            f"`logits` must have shape (..., instances, classes), with at least one class; got {tuple(logits.shape)}. "
            f"Log-odds of one class, (..., instances), go with kofn.CountDistribution and its targets."
        )
    return logits


def require_flat(logits: Tensor) -> None:
    """Require logits (m, C), as offsets do."""
    if logits.dim() != 2:
        raise ValueError(
            f"`logits` must have shape (m, C) when `offsets` are given; got {tuple(logits.shape)}. Dense logits "
            f"(..., n, C) take no offsets; ragged ones come concatenated: torch.cat(bags)."
        )
