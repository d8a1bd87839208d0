"""The distribution of S, the number of positives in a bag: the one object that everything else in kofn asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from kofn import _require
from kofn.counts import _event, _host, _quantiles, _random_effect
from kofn.counts._layout import LARGEST, Layout, lay_out
from kofn.counts._probability import log_any, log_none

Counts = Tensor | Sequence[int] | int
"""One number for each bag as a tensor, an array or a list; or one int for all bags."""


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
        copies: integers, 0 or more, of the shape of `logits`: how many alike instances, independent of each other, a
            logit stands for; by default one. Answers about a count or an interval of counts cost what the logits cost,
            whatever the copies are; a posterior is that of one of the instances.
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
    _effect_logits: Tensor | None = None  # float64 logits of what a random effect adds, if not those of the counts

    def __init__(
        self,
        logits: Tensor,
        *,
        mask: Tensor | None = None,
        offsets: Tensor | None = None,
        copies: Tensor | Sequence[int] | None = None,
        bag_effect: Tensor | float | None = None,
    ) -> None:
        self.logits = self._x = require_logits(logits)
        self.instance_layout = lay_out(logits.shape, logits.device, mask=mask, offsets=offsets, copies=copies)
        if mask is not None or copies is not None:
            # With an absent instance as a certain negative, what is asked of a count needs no mask.
            self._x = self.instance_layout.present(logits, -torch.inf)
        if bag_effect is not None:
            if not torch.compiler.is_compiling() and _host.mapped(logits):
                raise NotImplementedError(
                    "`bag_effect` must be None inside torch.func.vmap: how many steps its integral takes depends on "
                    "values, which vmap hides. Bags are a dimension of `logits` already: give all of them at once."
                )
            self.bag_effect = require_bag_effect(bag_effect, self.instance_layout)

    def with_logits(self, logits: Tensor) -> CountDistribution:
        """The distribution of the same bags with other logits, of the same shape.

        Examples:
            >>> import torch, kofn
            >>> dist = kofn.CountDistribution(torch.zeros(4), copies=[1, 1, 1, 7])
            >>> dist.with_logits(dist.logits + 1).mean
            tensor(7.3106)
        """
        dist = copy(self)
        dist.logits, dist._x = logits, self.instance_layout.present(logits, -torch.inf)
        return dist

    def __repr__(self) -> str:
        kind = "ragged" if self.instance_layout.offsets is not None else "dense"
        return f"CountDistribution({kind}, shape={tuple(self.shape)}, dtype={self.logits.dtype})"

    def double(self) -> CountDistribution:
        """The same distribution with results in float64."""
        if self.logits.dtype == torch.float64:
            return self
        return self.with_logits(self.logits.double())

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
            return _random_effect.moments(x, self.instance_layout, self.bag_effect)[0].to(self._x.dtype)
        return self.instance_layout.sum(torch.sigmoid(x)).to(self._x.dtype)

    @property
    def variance(self) -> Tensor:
        """var S = sum_i sigmoid(x_i) sigmoid(-x_i), of `shape`; with a bag effect E[var(S | u)] + var(E[S | u])."""
        x = self._x.double()
        if self.bag_effect is not None:
            return _random_effect.moments(x, self.instance_layout, self.bag_effect)[1].to(self._x.dtype)
        return self.instance_layout.sum(torch.sigmoid(x) * torch.sigmoid(-x)).to(self._x.dtype)

    def log_prob(self, counts: Counts, *, weight: float | None = None) -> Tensor:
        """log P(S = count) of each bag, in time linear in its size; see `kofn.log_count_prob`.

        Args:
            counts: of any integer dtype, that broadcast to `shape` (a tensor, an array or a list), or one int for all
                bags.
            weight: for this number times the sum over bags, at less cost than a sum takes: -1 / b for a mean loss.

        Returns:
            Of `shape`, or a scalar with a weight; in the dtype of the logits. -inf with gradient zero where the count
            is impossible.

        Examples:
            >>> import torch, kofn
            >>> kofn.CountDistribution(torch.zeros(4)).log_prob(2).exp()
            tensor(0.3750)
        """
        wanted, layout, sigma = self._whole_numbers("counts", counts), self.instance_layout, self.bag_effect
        if isinstance(counts, int) and counts == 0 and sigma is None and weight is None:
            return log_none(self._x.double(), layout).to(self._x.dtype)
        if sigma is None or self._effect_logits is None:
            return _event.log_event(self._x, layout, wanted, sigma=sigma, weight=weight)
        value = _random_effect.log_prob(
            _event.log_event, self._x.double(), layout, wanted, sigma, still=self._effect_logits
        )
        value = value.to(self._x.dtype)
        return value if weight is None else value.sum() * weight

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
            return log_any(self._x.double(), self.instance_layout).to(self._x.dtype)
        first, last = self._bounds(low, high)
        if self.bag_effect is None:
            return _event.log_event(self._x, self.instance_layout, first, last)
        counts = self.count_layout
        table = _quantiles.only_between(self.double().log_probs(), counts, first, last)
        return counts.logsumexp(table).to(self._x.dtype)

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
        alone = self._log_probs_alone(self._x if self.bag_effect is None else self._x.double())
        if self.bag_effect is None:
            return alone
        x = self._x.double()
        shifted = _random_effect.log_all_counts
        if torch.compiler.is_compiling():  # how many nodes there are depends on the values: a graph breaks here
            shifted = torch.compiler.disable(shifted)
        table = shifted(_event.log_event, alone, x, self.instance_layout, self.bag_effect, still=self._effect_logits)
        return table.to(self._x.dtype)

    def _log_probs_alone(self, x: Tensor) -> Tensor:
        """log P(S = s) for every s of labels that are independent."""
        layout = self.instance_layout
        if layout.copies is None:
            return _event.log_all_counts(x, layout)
        # A table of all counts is as long as there are instances: they may as well be made.
        entries, people = layout.people()
        table = _event.log_all_counts(x.flatten()[entries], people)
        if layout.offsets is not None:
            return table
        return people.of_counts().to_rows(table, -torch.inf).reshape(layout.of_counts().entries)

    def posteriors(self, counts: Counts) -> Tensor:
        """P(y_i = 1 | S = count), of the shape and dtype of the logits; see `kofn.count_posteriors`.

        Examples:
            >>> import torch, kofn
            >>> kofn.CountDistribution(torch.zeros(4)).posteriors(1)
            tensor([0.2500, 0.2500, 0.2500, 0.2500])
        """
        # Given the count, a random effect says nothing more of the labels.
        return _event.posteriors(self._x, self.instance_layout, self._whole_numbers("counts", counts), None)

    def posteriors_between(self, low: Counts | None, high: Counts | None) -> Tensor:
        """P(y_i = 1 | low <= S <= high), of the shape and dtype of the logits; bounds as for `log_prob_between`.

        0 where there is no instance; sigmoid(x_i) where the interval is impossible and says nothing.

        Examples:
            >>> import torch, kofn
            >>> kofn.CountDistribution(torch.zeros(2)).posteriors_between(1, None)  # of three outcomes, two each
            tensor([0.6667, 0.6667])
        """
        if self.bag_effect is not None:
            return self.posteriors_given(lambda dist: dist.log_prob_between(low, high))
        return _event.posteriors(self._x, self.instance_layout, *self._bounds(low, high))

    def posteriors_given(self, log_prob: Callable[[CountDistribution], Tensor]) -> Tensor:
        """P(y_i = 1 | A) for any statement A about the count, from its log-probability.

            P(y_i = 1 | A) = sigmoid(x_i) + d log P(A) / d x_i / copies_i

        With a bag effect this holds of the part without a shift: the factor by which the shift changes the probability
        of a count is held fixed, whichever labels make that count up.

        Args:
            log_prob: from a distribution to log P(A) of each bag, by its `log_prob`, `log_prob_between`, `log_probs`.

        Returns:
            The shape and dtype of the logits; 0 where there is no instance.

        Examples:
            >>> import torch, kofn
            >>> alike = lambda dist: dist.log_probs()[::2].logsumexp(0)  # none or both of two
            >>> kofn.CountDistribution(torch.tensor([1.0, 1.0])).posteriors_given(alike)
            tensor([0.8808, 0.8808])
        """
        grad = torch.is_grad_enabled() and self.logits.requires_grad
        logits = (self.logits if grad else self.logits.detach()).double()
        with torch.enable_grad():
            nothing = torch.zeros_like(logits).requires_grad_()
            dist = self.with_logits(logits + nothing)
            dist._effect_logits = same = self.instance_layout.present(logits, -torch.inf)
            (gradient,) = torch.autograd.grad(log_prob(dist).sum(), nothing, create_graph=grad)
            if self.instance_layout.copies is not None:
                gradient = gradient / self.instance_layout.copies.clamp(min=1)
            found = (torch.sigmoid(same) + gradient).clamp(0.0, 1.0).to(self.logits.dtype)  # rounding only
        return found if grad else found.detach()

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
        return _quantiles.mode(self._still)

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
        return _quantiles.quantile(self._still, q)

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
        return _quantiles.interval(self._still, level)

    def condition(self, known: object) -> tuple[CountDistribution, Tensor]:
        """The distribution given the labels of some instances, and the log-probability of these labels in each bag.

            P(S = s, y_K) = P(y_K) P(S = s | y_K),   log P(y_K) = sum_{i in K} c_i log P(y_i)

        Args:
            known: integers or bools that broadcast to the logits: 1 for a positive, 0 for a negative, -1 where the
                label is not known. A label is that of all copies of its instance.

        Returns:
            The distribution with the logits of known labels at +-inf, and (...) or (b,) log-probabilities in the dtype
            of the logits.

        Raises:
            TypeError: labels that are not integers.
            ValueError: other labels than -1, 0 and 1; another shape; a bag effect, which labels say something about.

        Examples:
            >>> import torch, kofn
            >>> dist, log_known = kofn.CountDistribution(torch.zeros(4)).condition([1, 0, -1, -1])
            >>> dist.log_prob(1).exp(), log_known.exp()  # none of the other two; one of four outcomes of the first two
            (tensor(0.2500), tensor(0.2500))
        """
        if self.bag_effect is not None:
            raise ValueError(
                "`bag_effect` must be None beside known labels, because they say something about the shift of their "
                "bag, too. Leave out one of them."
            )
        labels = require_known("known", known, self.logits, 1)
        x = self.logits.double()
        signed = torch.where(labels == 1, x, -x).masked_fill(labels < 0, torch.inf)
        log_known = self.instance_layout.sum(logsigmoid(signed)).to(self.logits.dtype)
        certain = self.logits.masked_fill(labels == 1, torch.inf).masked_fill(labels == 0, -torch.inf)
        return self.with_logits(certain), log_known

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
            p, copies = torch.sigmoid(x), self.instance_layout.copies
            if copies is None:
                return self.instance_layout.add(torch.bernoulli(p, generator=generator)).long()
            return self.instance_layout.add(torch.binomial(copies.double().expand_as(p), p, generator)).long()

    @property
    def _still(self) -> CountDistribution:
        """In float64, without a graph."""
        return self.with_logits(self.logits.detach().double())

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


def require_logits(value: object) -> Tensor:
    """Require floating point log-odds with at least one dimension."""
    if type(value) is Tensor and not value.is_nested and value.is_floating_point() and value.dim():
        return value
    logits = _require.dense_tensor("logits", value)
    if not logits.is_floating_point():
        raise TypeError(
            f"`logits` must be floating point log-odds; got {logits.dtype}. Labels are no logits; "
            f"scores of another dtype convert with logits.float()."
        )
    if not logits.dim():
        raise ValueError("`logits` must have at least one dimension, the instances; got a scalar. Use logits[None].")
    return logits


def require_known(name: str, value: object, logits: Tensor, last: int) -> Tensor:
    """Require labels of single instances, from -1 for an unknown one to `last`: int64 of the logits' shape."""
    labels = _require.numbers(name, value).to(logits.device)
    if labels.is_floating_point() or labels.is_complex():
        raise TypeError(f"`{name}` must be integers, -1 for a label that is not known; got {labels.dtype}.")
    try:
        labels = labels.long().expand(logits.shape)
    except RuntimeError:
        raise ValueError(
            f"`{name}` must have a label for each instance, shape {tuple(logits.shape)}, -1 where it is not known; got "
            f"{tuple(labels.shape)}."
        ) from None
    if not _require.holds((labels >= -1) & (labels <= last)):
        worst = int(labels.max()) if int(labels.max()) > last else int(labels.min())
        raise ValueError(f"`{name}` must be labels from 0 to {last}, or -1 where one is not known; got {worst}.")
    return labels


def require_bag_effect(value: object, layout: Layout) -> Tensor | None:
    """Require standard deviations of the shift of bags, from 0 to 1e6: float64 for each bag, None for a 0."""
    if not isinstance(value, Tensor) and value == 0:
        return None
    sigma = layout.numbers("bag_effect", value)
    right = (sigma >= 0) & (sigma <= _require.LARGEST_BAG_EFFECT)
    if not _require.holds(right):
        raise ValueError(
            f"`bag_effect` must be a standard deviation from 0 to {_require.LARGEST_BAG_EFFECT:g}; got "
            f"{float(sigma[~right].flatten()[0]):g}. To learn one, learn its logarithm: bag_effect=log_sigma.exp()."
        )
    return sigma
