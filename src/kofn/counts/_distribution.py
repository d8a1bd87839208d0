"""The distribution of S, the number of positives in a bag: the one object that everything else in kofn asks."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import torch
from torch import Tensor

from kofn.counts import _search
from kofn.counts._arguments import lay_out, require_bag_effect, require_logits, require_not_mapped
from kofn.counts._at_least_one import log_none_and_any
from kofn.counts._bag_effect import moments
from kofn.counts._engines import Engine, engine_for
from kofn.counts._layout import LARGEST, Layout
from kofn.counts._shifted_engine import ShiftedEngine

#: One number for each bag as a tensor, an array or a list; or one int for all bags.
Counts = Tensor | Sequence[int] | int


class CountDistribution:
    """The distribution of the number of positives in each bag, exact and differentiable.

        S = y_1 + ... + y_n,  y_i ~ Bernoulli(sigmoid(x_i + u)) independent given u,  u ~ N(0, bag_effect^2).

    Without a bag effect u is 0. With one, the instances of a bag have u in common, so that counts spread wider: bags
    differ by more than their instances explain. Probabilities are then integrals over u, whose logarithms are right to
    1e-9, relative to max(1, |log p|), in any tail.

    Arguments are checked here, once; nothing is computed before it is asked for, and each answer takes the cheapest
    exact route.

    Args:
        logits: (..., n) log-odds, float16, bfloat16, float32 or float64; (m,) with `offsets`. The work is done in
            float64 whatever the dtype. A logit of +inf is a certain positive, -inf a certain negative.
        mask: (..., n) bool, True where an instance exists. Only for dense logits.
        offsets: (b + 1,) int64 from 0 to m; bag j is ``logits[offsets[j]:offsets[j + 1]]``.
        bag_effect: standard deviation of the bags' shift u, from 0 to 1e6: a number, or a tensor that broadcasts to one
            number for each bag. None or 0 for independent labels.

    Attributes:
        logits: as given.
        bag_effect: float64 of `shape`, or None.
        shape: of one number for each bag: (...) or (b,).
        instance_layout: which instance belongs to which bag, and sums over the instances of each bag.

    A NaN among a bag's logits makes everything about that bag NaN.

    Raises:
        TypeError: a tensor of the wrong kind.
        ValueError: shapes that do not fit, both `mask` and `offsets`, offsets that do not run from 0 to m.

    Examples:
        >>> import torch, kofn
        >>> dist = kofn.CountDistribution(torch.zeros(2, 4, dtype=torch.float64))  # two bags of four fair coins
        >>> dist.log_prob(torch.tensor([2, 4])).exp()
        tensor([0.3750, 0.0625], dtype=torch.float64)
        >>> dist.mean, dist.mode, dist.interval(0.8)
        (tensor([2., 2.], dtype=torch.float64), tensor([2, 2]), (tensor([1, 1]), tensor([3, 3])))
        >>> kofn.CountDistribution(torch.zeros(100), bag_effect=0.5).interval(0.9)  # (42, 58) without the bag effect
        (tensor(29), tensor(71))
    """

    bag_effect: Tensor | None = None

    def __init__(
        self,
        logits: Tensor,
        *,
        mask: Tensor | None = None,
        offsets: Tensor | None = None,
        bag_effect: Tensor | float | None = None,
    ) -> None:
        self.logits = self._x = require_logits(logits)
        self.instance_layout = lay_out(logits.shape, logits.device, mask, offsets)
        if mask is not None:  # with an absent instance as a certain negative, what is asked of a count needs no mask
            self._x = self.instance_layout.present(logits, -torch.inf)
        if bag_effect is not None:
            require_not_mapped(self.logits)
            self.bag_effect = require_bag_effect(bag_effect, self.instance_layout)

    def _with(self, logits: Tensor) -> CountDistribution:
        """The same bags with other logits."""
        dist = copy(self)
        dist.logits, dist._x = logits, self.instance_layout.present(logits, -torch.inf)
        return dist

    @property
    def _engine(self) -> Engine:
        return engine_for(self._x) if self.bag_effect is None else ShiftedEngine(self.instance_layout, self.bag_effect)

    def __repr__(self) -> str:
        kind = "ragged" if self.instance_layout.offsets is not None else "dense"
        return f"CountDistribution({kind}, shape={tuple(self.shape)}, dtype={self.logits.dtype})"

    def double(self) -> CountDistribution:
        """The same distribution with results in float64."""
        if self.logits.dtype == torch.float64:
            return self
        return self._with(self.logits.double())

    @property
    def shape(self) -> torch.Size:
        """Of a tensor with one number for each bag."""
        return self.instance_layout.shape

    @property
    def sizes(self) -> Tensor:
        """Number of instances in each bag, int64, of `shape`."""
        return self.instance_layout.sizes

    @property
    def count_layout(self) -> Layout:
        """How `log_probs` lays out the counts 0, ..., n of each bag, and sums over them."""
        return self.instance_layout.of_counts()

    @property
    def mean(self) -> Tensor:
        """E S = sum_i sigmoid(x_i), of `shape`, in the dtype of the logits; with a bag effect its mean over u."""
        x = self._x.double()
        if self.bag_effect is not None:
            return moments(x, self.instance_layout, self.bag_effect)[0].to(self._x.dtype)
        return self.instance_layout.sum(torch.sigmoid(x)).to(self._x.dtype)

    @property
    def variance(self) -> Tensor:
        """var S = sum_i sigmoid(x_i) sigmoid(-x_i), of `shape`; with a bag effect E[var(S | u)] + var(E[S | u])."""
        x = self._x.double()
        if self.bag_effect is not None:
            return moments(x, self.instance_layout, self.bag_effect)[1].to(self._x.dtype)
        return self.instance_layout.sum(torch.sigmoid(x) * torch.sigmoid(-x)).to(self._x.dtype)

    def log_prob(self, counts: Counts) -> Tensor:
        """log P(S = count) of each bag, in time linear in its size; see `kofn.log_count_prob`.

        Args:
            counts: of any integer dtype, that broadcast to `shape` (a tensor, an array or a list), or one int for all
                bags.

        Returns:
            Of `shape`, in the dtype of the logits; -inf with gradient zero where the count is impossible.

        Examples:
            >>> import torch, kofn
            >>> kofn.CountDistribution(torch.zeros(4)).log_prob(2).exp()
            tensor(0.3750)
        """
        wanted = self._whole_numbers("counts", counts)
        return self._engine.log_interval(self._x, self.instance_layout.offsets, wanted, None)

    def log_prob_between(self, low: Counts | None, high: Counts | None) -> Tensor:
        """log P(low <= S <= high) of each bag, in time linear in its size; see `kofn.log_count_between`.

        Args:
            low: smallest allowed counts that broadcast to `shape`, or one int; None for no bound.
            high: largest allowed counts, included; None for no bound. ``log_prob_between(1, None)`` has a closed form.

        Returns:
            Of `shape`, in the dtype of the logits; -inf with gradient zero for an interval without a possible count,
            0 with gradient zero for one that allows all.

        Examples:
            >>> import torch, kofn
            >>> kofn.CountDistribution(torch.zeros(4)).log_prob_between(1, None).exp()  # at least one of four
            tensor(0.9375)
        """
        if high is None and isinstance(low, int) and low == 1 and self.bag_effect is None:
            self._whole_numbers("low", low)
            return self.log_none_and_any()[1]
        first, last = self._bounds(low, high)
        return self._engine.log_interval(self._x, self.instance_layout.offsets, first, last)

    def log_none_and_any(self) -> tuple[Tensor, Tensor]:
        """log P(S = 0) and log P(S >= 1) of each bag, in closed form if there is no bag effect.

        Examples:
            >>> import torch, kofn
            >>> none, any_ = kofn.CountDistribution(torch.zeros(3)).log_none_and_any()
            >>> none.exp(), any_.exp()
            (tensor(0.1250), tensor(0.8750))
        """
        if self.bag_effect is not None:
            return self.log_prob(0), self.log_prob_between(1, None)
        none, some = log_none_and_any(self._x.double(), self.instance_layout)
        return none.to(self._x.dtype), some.to(self._x.dtype)

    def log_likelihood(self, low: Counts, high: Counts | None = None, *, weight: float = 1.0) -> Tensor:
        """weight * sum over bags of log P(low <= S <= high), or of log P(S = low) without `high`: one node of autograd.

        Examples:
            >>> import torch, kofn
            >>> kofn.CountDistribution(torch.zeros(2, 1)).log_likelihood(torch.tensor([0, 1])).exp()
            tensor(0.2500)
        """
        first = self._whole_numbers("counts" if high is None else "low", low)
        last = None if high is None else self._whole_numbers("high", high)
        return self._engine.log_interval(self._x, self.instance_layout.offsets, first, last, weight)

    def log_prob_and_slope(self, counts: Counts) -> tuple[Tensor, Tensor]:
        """log P(S = count) of each bag and its gradient by the logits, without a graph, for learners that need none.

        Examples:
            >>> import torch, kofn
            >>> value, slope = kofn.CountDistribution(torch.zeros(4)).log_prob_and_slope(1)
            >>> value.exp(), slope
            (tensor(0.2500), tensor([-0.2500, -0.2500, -0.2500, -0.2500]))
        """
        wanted = self._whole_numbers("counts", counts)
        x = self._x.detach()
        return self._engine.log_interval_slope(x, self.instance_layout.offsets, wanted, None)

    def log_probs(self) -> Tensor:
        """log P(S = s) for every s of each bag, right in every tail; see `kofn.log_count_distribution`.

        Returns:
            (..., n + 1), with -inf past a bag's size; ragged: flat (m + b,), bag j from ``offsets[j] + j`` to
            ``offsets[j + 1] + j`` included. In the dtype of the logits.

        Examples:
            >>> import torch, kofn
            >>> kofn.CountDistribution(torch.zeros(2)).log_probs().exp()
            tensor([0.2500, 0.5000, 0.2500])
        """
        return self._engine.log_probs(self._x, self.instance_layout.offsets)

    def posteriors(self, counts: Counts) -> Tensor:
        """P(y_i = 1 | S = count), of the shape and dtype of the logits; see `kofn.count_posteriors`.

        Examples:
            >>> import torch, kofn
            >>> kofn.CountDistribution(torch.zeros(4)).posteriors(1)
            tensor([0.2500, 0.2500, 0.2500, 0.2500])
        """
        wanted = self._whole_numbers("counts", counts)
        return self._engine.posteriors(self._x, self.instance_layout.offsets, wanted, None)

    def posteriors_between(self, low: Counts | None, high: Counts | None) -> Tensor:
        """P(y_i = 1 | low <= S <= high), of the shape and dtype of the logits; bounds as for `log_prob_between`.

        0 where there is no instance; sigmoid(x_i) where the interval is impossible and says nothing.

        Examples:
            >>> import torch, kofn
            >>> kofn.CountDistribution(torch.zeros(2)).posteriors_between(1, None)  # of three outcomes, two each
            tensor([0.6667, 0.6667])
        """
        first, last = self._bounds(low, high)
        return self._engine.posteriors(self._x, self.instance_layout.offsets, first, last)

    def cdf(self, counts: Counts) -> Tensor:
        """P(S <= count) of each bag, of `shape`, in the dtype of the logits.

        Examples:
            >>> import torch, kofn
            >>> kofn.CountDistribution(torch.zeros(4)).cdf(1)
            tensor(0.3125)
        """
        return self.log_prob_between(None, counts).exp()

    @property
    def mode(self) -> Tensor:
        """The most probable count of each bag, int64; of two that are equal up to rounding the larger."""
        return _search.mode(self._engine, self._x.detach().double(), self.instance_layout)

    def quantile(self, q: Tensor | float) -> Tensor:
        """The smallest count k with P(S <= k) >= q, of each bag: int64, of `shape`.

        For q = 0 it is the smallest possible count. Probabilities that differ by less than a part in 1e9 are equal. It
        is searched by bisection, each step in time linear in the bag; with a bag effect, in a table of all counts.

        Args:
            q: probabilities from 0 to 1 that broadcast to `shape`, or one number.

        Raises:
            ValueError: q outside [0, 1]; NaN among the logits.

        Examples:
            >>> import torch, kofn
            >>> kofn.CountDistribution(torch.zeros(4)).quantile(0.5)
            tensor(2)
        """
        return _search.quantile(self._engine, self._x.detach().double(), self.instance_layout, q)

    def interval(self, level: float) -> tuple[Tensor, Tensor]:
        """The central interval that holds the count of a bag with probability `level` or more.

            low = max {k : P(S < k) <= (1 - level) / 2},   high = min {k : P(S > k) <= (1 - level) / 2}

        Both tails hold at most (1 - level) / 2, and no shorter interval has that property. A tail of exactly that
        probability (up to a part in 1e9) is left outside, at both ends alike: mirrored labels give the mirrored
        interval. Bags are searched as in `quantile`.

        Args:
            level: a probability, above 0 and below 1. Any other is a ValueError, as is a NaN among the logits.

        Returns:
            low and high, int64, of `shape`; both are possible counts and belong to the interval.

        Examples:
            >>> import torch, kofn
            >>> kofn.CountDistribution(torch.zeros(100)).interval(0.9)  # a binomial of 100 and 1/2
            (tensor(42), tensor(58))
        """
        return _search.interval(self._engine, self._x.detach().double(), self.instance_layout, level)

    def sample(self, shape: Sequence[int] = (), *, generator: torch.Generator | None = None) -> Tensor:
        """Counts drawn at random, int64, (*shape, *self.shape): sums of labels, by `generator` or torch's own numbers.

        Examples:
            >>> import torch, kofn
            >>> dist = kofn.CountDistribution(torch.tensor([[torch.inf, torch.inf], [torch.inf, -torch.inf]]))
            >>> dist.sample((3,), generator=torch.Generator().manual_seed(0)).tolist()
            [[2, 1], [2, 1], [2, 1]]
        """
        with torch.no_grad():
            x = self._x.double().expand(*shape, *self._x.shape)
            if self.bag_effect is not None:
                u = self.bag_effect.expand(*shape, *self.shape)
                normal = torch.randn(u.shape, generator=generator, dtype=u.dtype, device=u.device)
                x = x + self.instance_layout.spread(u * normal)
            return self.instance_layout.sum(torch.bernoulli(torch.sigmoid(x), generator=generator)).long()

    def _bounds(self, low: Counts | None, high: Counts | None) -> tuple[Tensor, Tensor]:
        whole = self.instance_layout.whole_numbers
        first = whole("low", 0) if low is None else self._whole_numbers("low", low)
        return first, whole("high", LARGEST) if high is None else self._whole_numbers("high", high)

    def _whole_numbers(self, name: str, value: object) -> Tensor:
        if isinstance(value, int) and self.logits.dim() > 2 and self.logits.shape[-1] == 1:
            raise ValueError(
                f"`logits` must have the instances of a bag in their last dimension; got shape "
                f"{tuple(self.logits.shape)}, whose bags have one instance each, and one `{name}` for all of them. Use "
                f"logits.squeeze(-1), or give each bag its own."
            )
        return self.instance_layout.whole_numbers(name, value)
