"""What the distributions of a count, of a sum and of class counts have in common: logits, and whose they are."""

from __future__ import annotations

from copy import copy
from typing import TypeVar

import torch
from torch import Tensor

from kofn import _require
from kofn.counts._layout import Layout

Self = TypeVar("Self", bound="BagDistribution")


class BagDistribution:
    """A distribution for each bag, made of the logits of its instances.

    Attributes:
        logits: as given.
        instance_layout: which instance belongs to which bag, and sums over the instances of each bag.
    """

    logits: Tensor
    instance_layout: Layout
    _labels = ""  # of an instance, in words

    @property
    def shape(self) -> torch.Size:
        """Of a tensor with one number for each bag."""
        return self.instance_layout.shape

    @property
    def sizes(self) -> Tensor:
        """Number of instances in each bag, copies included: int64, of `shape`."""
        return self.instance_layout.sizes

    def with_logits(self: Self, logits: Tensor) -> Self:
        """The distribution of the same bags with other logits, of the same shape.

        Examples:
            >>> import torch, kofn
            >>> dist = kofn.CountDistribution(torch.zeros(4), copies=[1, 1, 1, 7])
            >>> dist.with_logits(dist.logits + 1).mean
            tensor(7.3106)
        """
        dist = copy(self)
        dist.logits = logits
        return dist

    def double(self: Self) -> Self:
        """The same distribution with results in float64."""
        return self if self.logits.dtype == torch.float64 else self.with_logits(self.logits.double())

    def __repr__(self) -> str:
        kind = "ragged" if self.instance_layout.offsets is not None else "dense"
        return f"{type(self).__name__}({kind}{self._labels}, shape={tuple(self.shape)}, dtype={self.logits.dtype})"


def require_known(name: str, value: object, like: Tensor, last: int) -> Tensor:
    """Require labels of single instances, from -1 for an unknown one to `last`: int64 of the shape of `like`."""
    labels = _require.numbers(name, value).to(like.device)
    if labels.is_floating_point() or labels.is_complex():
        raise TypeError(f"`{name}` must be integers, -1 for a label that is not known; got {labels.dtype}.")
    try:
        labels = labels.long().expand(like.shape)
    except RuntimeError:
        raise ValueError(
            f"`{name}` must have a label for each instance, shape {tuple(like.shape)}, -1 where it is not known; got "
            f"{tuple(labels.shape)}."
        ) from None
    if not _require.holds((labels >= -1) & (labels <= last)):
        worst = int(labels.max()) if int(labels.max()) > last else int(labels.min())
        raise ValueError(f"`{name}` must be labels from 0 to {last}, or -1 where one is not known; got {worst}.")
    return labels


def one_certain_class(x: Tensor) -> Tensor:
    """Logits (..., C) in which a class of logit +inf is the only one possible; NaN where there are two of them."""
    certain = x == torch.inf
    several = certain.sum(-1, keepdim=True) > 1
    known = torch.where(certain, 0.0, -torch.inf).to(x.dtype).masked_fill(several, torch.nan)
    return torch.where(certain.any(-1, keepdim=True), known, x)


def given_classes(logits: Tensor, layout: Layout, known: object) -> tuple[Tensor, Tensor]:
    """Logits (*entries, C) given the classes of some instances, and the log-probability of these classes in each bag.

    Args:
        logits: of the classes.
        layout: of the instances.
        known: integers of the layout's entries: the class of an instance, or -1 where it is not known.
    """
    labels = require_known("known", known, logits[..., 0], logits.shape[-1] - 1).unsqueeze(-1)
    told, is_class = labels >= 0, torch.arange(logits.shape[-1], device=logits.device) == labels
    there = layout.present(logits.movedim(-1, 0), 0.0).movedim(0, -1)  # layouts know of instances in the last dimension
    log_p = one_certain_class(there.double()).log_softmax(-1)
    log_known = layout.sum(torch.where(is_class, log_p, 0.0).sum(-1))
    sure = torch.where(is_class, 0.0, -torch.inf).to(logits.dtype)
    return torch.where(told, sure, logits), log_known.to(logits.dtype)
