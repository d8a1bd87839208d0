"""The log-odds of each class against all others, with which everything that is said of a count is said of a class."""

from __future__ import annotations

import torch
from torch import Tensor

from kofn import _require


def one_vs_rest(logits: Tensor) -> Tensor:
    """Log-odds of each class against all others, with the classes before the instances.

        log P(y_i = c) / P(y_i != c) = x_ic - log sum_{d != c} e^{x_id},

    stable for logits of any size. The count of a class is a count of positives under these log-odds, so that every
    target (`AtLeast`, `Between`, `Noisy`, ...) can be stated of any class.

    Args:
        logits: (..., n, C) unnormalised log-probabilities of the classes; ragged: (m, C).

    Returns:
        (..., C, n); ragged: (C, m). In the dtype of `logits`.

    Raises:
        TypeError, ValueError: logits that are not floating point, or have fewer than two dimensions.

    Examples:
        >>> import torch, kofn
        >>> logits = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]).log()  # two instances, three classes
        >>> kofn.one_vs_rest(logits).sigmoid()
        tensor([[0.5000, 0.1000],
                [0.2500, 0.1000],
                [0.2500, 0.8000]])
        >>> kofn.count_loss(kofn.one_vs_rest(logits)[2], kofn.AtLeast(1)).neg().exp()  # some instance is of class 2
        tensor(0.8500)
    """
    x = one_certain_class(require_class_logits(logits).double())
    if x.shape[-1] < 2:
        return torch.full_like(logits, torch.inf).transpose(-1, -2)  # the only class is certain
    # With e_c = e^{x_c - max}, the rest of any class but the likeliest, sum_d e_d - e_c, still has the 1 of the
    # likeliest in it: nothing cancels. The rest of the likeliest is summed without it, in log space: it may underflow.
    top = x.argmax(-1, keepdim=True)
    likeliest = torch.zeros_like(x, dtype=torch.bool).scatter(-1, top, True)
    x = x - x.gather(-1, top)
    e = x.exp()
    rest = (e.sum(-1, keepdim=True) - e).masked_fill(likeliest, 1.0).log()
    others = x.masked_fill(likeliest, -torch.inf)
    alone = (others == -torch.inf).all(-1, keepdim=True)  # filled before and after: no infinite derivative
    runners_up = others.masked_fill(alone, 0.0).logsumexp(-1, keepdim=True).masked_fill(alone, -torch.inf)
    return (x - torch.where(likeliest, runners_up, rest)).to(logits.dtype).transpose(-1, -2)


def one_certain_class(x: Tensor) -> Tensor:
    """Logits (..., C) in which a class of logit +inf is the only one possible; NaN where there are two of them."""
    certain = x == torch.inf
    several = certain.sum(-1, keepdim=True) > 1
    known = torch.where(certain, 0.0, -torch.inf).to(x.dtype).masked_fill(several, torch.nan)
    return torch.where(certain.any(-1, keepdim=True), known, x)


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
