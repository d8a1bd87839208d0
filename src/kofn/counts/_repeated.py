"""Bags in which equal logits lie side by side, as the copies of a row do: sums over them take each logit once."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import forward_ad

from kofn.counts._layout import Layout, Ragged


class Repeated(Ragged):
    """The layout of the first entries of runs, whose sums count each entry of a run.

    Attributes:
        times: (runs,) how many entries each run has, float64.
    """

    def __init__(self, offsets: Tensor, times: Tensor) -> None:
        super().__init__(len(times), times.device, offsets)
        self.times = times

    @property
    def sizes(self) -> Tensor:
        return super().sum(self.times).long()

    def sum(self, values: Tensor) -> Tensor:
        return super().sum(values * self.times)

    def repeat(self, values: Tensor) -> Tensor:
        """A value for each entry of the runs, from one for each run."""
        return values.repeat_interleave(self.times.long())


def without_repetition(x: Tensor, layout: Layout) -> tuple[Tensor, Layout]:
    """The first logit of each run of equal ones in a bag, and their layout; both as they are if that saves little.

    Nor is anything changed for logits that a gradient is wanted of, or in a transform of `torch.func`.

    Examples:
        >>> import torch, kofn
        >>> dist = kofn.CountDistribution(torch.tensor([1.0, 1, 1, 2, 2, 2]), offsets=torch.tensor([0, 4, 6]))
        >>> x, layout = without_repetition(dist.logits, dist.instance_layout)
        >>> x, layout.sum(x), layout.sizes
        (tensor([1., 2., 2.]), tensor([5., 4.], dtype=torch.float64), tensor([4, 2]))
    """
    plain = not (torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0)
    if not plain or layout.offsets is None or torch.compiler.is_compiling() or x.requires_grad or len(x) < 2:
        return x, layout
    first = torch.ones(len(x), dtype=torch.bool, device=x.device)
    first[1:] = x[1:] != x[:-1]
    starts = layout.offsets[:-1][layout.offsets.diff() > 0].to(x.device)  # an empty bag begins nowhere
    first[starts] = True
    place = first.nonzero().flatten()
    if len(place) > len(x) // 2:
        return x, layout
    times = torch.cat([place, place.new_tensor([len(x)])]).diff().double()
    return x[place], Repeated(torch.searchsorted(place, layout.offsets.to(x.device)).cpu(), times)
