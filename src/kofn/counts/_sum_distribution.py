"""The distribution of a total: the sum of integer values that the categories, or the positives, of a bag have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from kofn import _require
from kofn.counts import _sum_event
from kofn.counts._bag_distribution import BagDistribution, given_classes, one_certain_class
from kofn.counts._distribution import Counts, require_logits
from kofn.counts._layout import lay_out


class SumDistribution(BagDistribution):
    """The distribution of the sum of the values of the instances of each bag, exact and differentiable.

        T = v_1(y_1) + ... + v_n(y_n),  y_i ~ Categorical(softmax(x_i)) independent,  v_i integers;
        of two classes T = w_1 y_1 + ... + w_n y_n,  y_i ~ Bernoulli(sigmoid(x_i)).

    Args:
        logits: (..., n, C) unnormalised log-probabilities of the categories, (m, C) with `offsets`; of two classes
            (..., n) log-odds, (m,) with `offsets`. -inf is an impossible category, +inf a certain one.
        values: integers. Of categories (C,), or one for each category of each instance, of the shape of the logits or
            one that broadcasts to it; of two classes the weights of positives, that broadcast to the logits.
        categories: whether the last dimension of the logits is that of the categories.
        mask: (..., n) bool, True where an instance exists. Only for dense logits.
        offsets: (b + 1,) int64 from 0 to m; bag j is ``logits[offsets[j]:offsets[j + 1]]``.
        copies: integers, 0 or more, one for each instance: how many alike instances, independent of each other, it
            stands for.

    Attributes:
        logits: as given.
        categories: as given.
        shape: of one number for each bag: (...) or (b,).
        instance_layout: which instance belongs to which bag, and sums over the instances of each bag.

    Raises:
        TypeError: a tensor of the wrong kind, values that are not integers.
        ValueError: shapes that do not fit, both `mask` and `offsets`, offsets that do not run from 0 to m.

    Examples:
        >>> import torch, kofn
        >>> dice = kofn.counts.SumDistribution(torch.zeros(2, 6), [1, 2, 3, 4, 5, 6], categories=True)
        >>> dice.log_prob(7).exp(), dice.mean, dice.variance  # two dice
        (tensor(0.1667), tensor(7.), tensor(5.8333))
    """

    def __init__(
        self,
        logits: Tensor,
        values: Tensor | Sequence[Any] | int,
        *,
        categories: bool,
        mask: Tensor | None = None,
        offsets: Tensor | None = None,
        copies: Tensor | Sequence[int] | None = None,
    ) -> None:
        self.logits = require_logits(logits)
        self.categories = categories
        self._labels = ", categories" if categories else ", two classes"
        if categories and (logits.dim() < 2 or not logits.shape[-1]):
            raise ValueError(
                f"`logits` of categories must have shape (..., instances, categories), with at least one category; got "
                f"{tuple(logits.shape)}."
            )
        instances = logits.shape[:-1] if categories else logits.shape
        if mask is not None and copies is None:
            copies = torch.ones((), dtype=torch.int64, device=logits.device)  # of absent instances there are none
        self.instance_layout = lay_out(instances, logits.device, mask=mask, offsets=offsets, copies=copies)
        self._values = _require_values(values, logits, categories=categories)

    @classmethod
    def of(
        cls,
        logits: Tensor,
        values: Tensor | Sequence[Any] | int,
        total: Counts,
        *,
        mask: Tensor | None = None,
        offsets: Tensor | None = None,
        copies: Tensor | Sequence[int] | None = None,
    ) -> SumDistribution:
        """The distribution of which `total` is one number for each bag: of categories or of two classes, as that says.

        Raises:
            ValueError: shapes that fit neither, or both.

        Examples:
            >>> import torch, kofn
            >>> logits, values = torch.zeros(2, 3), [1, 2, 3]
            >>> kofn.counts.SumDistribution.of(logits, values, torch.tensor([3, 4]))  # two bags of three weights
            SumDistribution(dense, two classes, shape=(2,), dtype=torch.float32)
            >>> kofn.counts.SumDistribution.of(logits, values, 4)  # one bag of two instances with three categories
            SumDistribution(dense, categories, shape=(), dtype=torch.float32)
        """
        categories = _has_categories(require_logits(logits), values, total, ragged=offsets is not None)
        return cls(logits, values, categories=categories, mask=mask, offsets=offsets, copies=copies)

    @property
    def mean(self) -> Tensor:
        """E T = sum_i sum_c P(y_i = c) v_ic, of `shape`, in the dtype of the logits."""
        return self.instance_layout.sum(self._moments()[0]).to(self.logits.dtype)

    @property
    def variance(self) -> Tensor:
        """var T = sum_i var v_i(y_i), of `shape`, in the dtype of the logits."""
        return self.instance_layout.sum(self._moments()[1]).to(self.logits.dtype)

    def log_prob(self, total: Counts) -> Tensor:
        """log P(T = total) of each bag; see `kofn.log_sum_prob`.

        Args:
            total: integers that broadcast to `shape`, or one int for all bags.

        Returns:
            Of `shape`, in the dtype of the logits; -inf with gradient zero where the total is impossible.

        Examples:
            >>> import torch, kofn
            >>> kofn.counts.SumDistribution(torch.zeros(3), [1, 2, 3], categories=False).log_prob(3).exp()  # 3 or 1 + 2
            tensor(0.2500)
        """
        totals = self.instance_layout.whole_numbers("total", total)
        return _sum_event.log_total(self._x, self._values, totals, self.instance_layout).to(self.logits.dtype)

    def posteriors(self, total: Counts) -> Tensor:
        """P(y_i = c | T = total), or of two classes P(y_i = 1 | T = total): the shape and dtype of the logits.

            P(y_i = c | T = total) = P(y_i = c) + d log P(T = total) / d x_ic / copies_i

        0 where there is no instance; where the total is impossible and says nothing, P(y_i = c).

        Examples:
            >>> import torch, kofn
            >>> kofn.counts.SumDistribution(torch.zeros(3), [1, 2, 3], categories=False).posteriors(3)
            tensor([0.5000, 0.5000, 0.5000])
        """
        totals = self.instance_layout.whole_numbers("total", total)
        found = _sum_event.posteriors(self._x, self._values, totals, self.instance_layout)
        return (found if self.categories else found[..., 1]).to(self.logits.dtype)

    def condition(self, known: object) -> tuple[SumDistribution, Tensor]:
        """The distribution given the labels of some instances, and the log-probability of these labels in each bag.

        Args:
            known: integers, one for each instance: its category, of two classes 1 or 0, and -1 where it is not known. A
                label is that of all copies of its instance.

        Returns:
            The distribution with known labels certain, and log-probabilities of `shape` in the dtype of the logits.

        Raises:
            TypeError, ValueError: as for `CountDistribution.condition`.

        Examples:
            >>> import torch, kofn
            >>> dist = kofn.counts.SumDistribution(torch.zeros(3), [1, 2, 3], categories=False)
            >>> dist, log_known = dist.condition([-1, -1, 1])
            >>> dist.log_prob(3).exp(), log_known.exp()  # of the other two, neither
            (tensor(0.2500), tensor(0.5000))
        """
        x, log_known = given_classes(self._x, self.instance_layout, known)
        # Of two classes the log-odds, +-inf where one of them is known.
        logits = x if self.categories else x[..., 1] - x[..., 0]
        return self.with_logits(logits.to(self.logits.dtype)), log_known.to(self.logits.dtype)

    @property
    def _x(self) -> Tensor:
        """Float64 logits of the categories, of two classes 0 and x."""
        x = self.logits.double()
        return x if self.categories else torch.stack([torch.zeros_like(x), x], -1)

    def _moments(self) -> tuple[Tensor, Tensor]:
        """Mean and variance of each instance's value."""
        p, values = one_certain_class(self._x).softmax(-1), self._values.double()
        mean = (p * values).sum(-1, keepdim=True)
        return mean.squeeze(-1), (p * (values - mean).square()).sum(-1)


def _require_values(value: object, logits: Tensor, *, categories: bool) -> Tensor:
    """Require integers for each category: int64 (C,), or of the shape of the logits of all categories."""
    values = _require.numbers("values", value).to(logits.device)
    if values.is_floating_point() or values.is_complex() or values.dtype == torch.bool:
        raise TypeError(
            f"`values` must be integers, of an integer dtype; got {values.dtype}. Numbers with decimals are rounded to "
            f"whole units first, such as cents, and totals with them."
        )
    values = values.long()
    largest = 1 << 40
    if not _require.holds(values.abs() <= largest):
        worst = int(values.flatten()[values.abs().argmax()])
        raise ValueError(f"`values` must lie between -{largest:,} and {largest:,}; got {worst:,}. Use larger units.")
    try:
        every = values.expand(logits.shape)
    except RuntimeError:
        rule = (
            f"one for each category, shape ({logits.shape[-1]},), or one for each category of each instance,"
            if categories
            else "one for each instance,"
        )
        raise ValueError(
            f"`values` must hold integers, {rule} shape {tuple(logits.shape)}; got shape {tuple(values.shape)}."
        ) from None
    if categories:
        return values.expand(logits.shape[-1:]) if values.dim() < 2 else every
    weights = values if not values.dim() else every
    return torch.stack([torch.zeros_like(weights), weights], -1)


def _has_categories(logits: Tensor, values: object, total: object, *, ragged: bool) -> bool:
    """Whether the last dimension of the logits is that of categories, not of instances."""
    dim = logits.dim()
    if ragged:
        if dim > 2:
            raise ValueError(
                f"`logits` must have shape (m,) or, of categories, (m, C) when `offsets` are given; got "
                f"{tuple(logits.shape)}. Ragged bags come concatenated: torch.cat(bags)."
            )
        return dim == 2
    if dim == 1:
        return False
    bags = _require.numbers("total", total).dim()
    if bags:
        if bags not in (dim - 1, dim - 2):
            raise ValueError(
                f"`total` must have one number for each bag, shape {tuple(logits.shape[:-1])} if logits are log-odds "
                f"(..., n), or {tuple(logits.shape[:-2])} if they are those of categories (..., n, C); got "
                f"{bags} dimensions."
            )
        return bags == dim - 2
    of_each = _require.numbers("values", values).dim()
    if of_each > 1:
        raise ValueError(
            f"`total` must be a tensor with one number for each bag where `values` have {of_each} dimensions, or it is "
            f"not clear whether the last dimension of logits of shape {tuple(logits.shape)} is that of instances or of "
            f"categories. Use torch.full({tuple(logits.shape[:-1])}, total) for the former, for the latter "
            f"torch.full({tuple(logits.shape[:-2])}, total) of bags."
        )
    return of_each == 1


def log_sum_prob(
    logits: Tensor,
    values: Tensor | Sequence[Any] | int,
    total: Counts,
    *,
    mask: Tensor | None = None,
    offsets: Tensor | None = None,
) -> Tensor:
    """Log-probability that the values of the instances of each bag have this sum.

    With categories y_i ~ Categorical(softmax(x_i)), independent, integer values v_ic and T = sum_i v_i(y_i),

        log P(T = t) = log sum_{y: v_1(y_1) + ... + v_n(y_n) = t} prod_i softmax(x_i)_{y_i},

    exact to rounding, in tails of any depth. Of two classes T = sum_i w_i y_i with y_i ~ Bernoulli(sigmoid(x_i)). Its
    gradient is a posterior less a prior:

        d log P(T = t) / d x_ic = P(y_i = c | T = t) - softmax(x_i)_c.

    Values may be negative. It takes time n times the number of frequencies of the characteristic function that are not
    negligible: at most as many as T has possible values, a few dozen for a large bag.

    Args:
        logits: (..., n, C) unnormalised log-probabilities of the categories, (m, C) with `offsets`; of two classes
            (..., n) log-odds, (m,) with `offsets`. float16, bfloat16, float32 or float64; the work is done in float64
            whatever the dtype. -inf is an impossible category, +inf a certain one.
        values: integers. Of categories (C,), or one for each category of each instance, (..., n, C) or (m, C); of two
            classes the weights of positives, (..., n) or (m,). They broadcast.
        total: integers, one for each bag, or one for all. Of dense logits they say what the last dimension is: totals
            of shape (...) with logits (..., n) are of two classes, with logits (..., n, C) of categories. One int is of
            two classes with logits (n,), and of categories with values (C,).
        mask: (..., n) bool, True where an instance exists. Only for dense logits.
        offsets: (b + 1,) int64 from 0 to m; bag j is ``logits[offsets[j]:offsets[j + 1]]``.

    Returns:
        (...) or (b,), in the dtype of `logits`. A total that no labels have (beyond the largest, of the wrong parity,
        or at odds with infinite logits) gives -inf with gradient zero; a NaN among a bag's logits gives NaN.

    Raises:
        TypeError: a tensor of the wrong kind, values that are not integers.
        ValueError: shapes that do not fit, or leave open whether there are categories; both `mask` and `offsets`;
            values of too large a range.

    Examples:
        >>> import torch, kofn
        >>> kofn.log_sum_prob(torch.zeros(2, 6), [1, 2, 3, 4, 5, 6], 7).exp()  # two dice: 6 of 36 outcomes
        tensor(0.1667)
        >>> votes = torch.zeros(3)  # three fair coins, worth 1, 2 and 3
        >>> kofn.log_sum_prob(votes, torch.tensor([1, 2, 3]), 3).exp()  # 3, or 1 + 2
        tensor(0.2500)
        >>> kofn.log_sum_prob(2 * votes, torch.tensor([2, 2, 4]), 3)  # no odd total
        tensor(-inf)
    """
    return SumDistribution.of(logits, values, total, mask=mask, offsets=offsets).log_prob(total)
