"""The distribution of the counts of several classes in a bag: the one object that answers every question about them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from kofn.classes import _class_effect, _joint
from kofn.classes._joint import Method
from kofn.classes._one_vs_rest import one_vs_rest, require_class_logits, require_flat
from kofn.counts import CountDistribution
from kofn.counts._bag_distribution import BagDistribution, given_classes, one_certain_class
from kofn.counts._distribution import require_bag_effect
from kofn.counts._layout import lay_out


class ClassCountDistribution(BagDistribution):
    """The joint distribution of the number of instances of each class in each bag, differentiable, at any size.

        K_c = #{i : y_i = c},  y_i ~ Categorical(softmax(x_i + u)) independent given u,
        u_c ~ N(0, (C - 1) bag_effect^2 / C) independent.

    Without a bag effect u is 0. Small bags are exact, large ones by the local limit; see `log_prob`.

    Arguments are checked here, once; nothing is computed before it is asked for.

    Args:
        logits: (..., n, C) unnormalised log-probabilities of the classes; (m, C) with `offsets`. -inf is an impossible
            class, +inf a certain one.
        mask: (..., n) bool, True where an instance exists. Only for dense logits.
        offsets: (b + 1,) int64 from 0 to m; bag j is ``logits[offsets[j]:offsets[j + 1]]``.
        copies: integers, 0 or more, of shape (..., n) or (m,): how many alike instances, independent of each other, a
            row of logits stands for; by default one. Large bags cost what the rows cost, whatever the copies are; a
            posterior is that of one of the instances.
        bag_effect: standard deviation of the shift of a bag's log-odds, from 0 to 1e6: a number, or a tensor that
            broadcasts to one number for each bag. In the joint distribution it is that of the log-odds of each class
            against the geometric mean of the others; `log_marginals` take it for that of each class against all
            others, as `kofn.CountDistribution` does. For two classes this is the same. None or 0 for independent
            labels.

    Attributes:
        logits: as given.
        classes: their number, C.
        shape: of one number for each bag: (...) or (b,).
        instance_layout: which instance belongs to which bag, and sums over the instances of each bag.

    A NaN among a bag's logits makes everything about that bag NaN.

    Raises:
        TypeError: a tensor of the wrong kind.
        ValueError: shapes that do not fit, both `mask` and `offsets`, offsets that do not run from 0 to m.

    Examples:
        >>> import torch, kofn
        >>> dist = kofn.classes.ClassCountDistribution(torch.zeros(4, 3))  # one bag of four, three equal classes
        >>> dist.log_prob(torch.tensor([2, 1, 1])).exp(), dist.mean
        (tensor(0.1481), tensor([1.3333, 1.3333, 1.3333]))
    """

    def __init__(
        self,
        logits: Tensor,
        *,
        mask: Tensor | None = None,
        offsets: Tensor | None = None,
        copies: Tensor | Sequence[int] | None = None,
        bag_effect: Tensor | float | None = None,
    ) -> None:
        self.logits = require_class_logits(logits)
        if offsets is not None:
            require_flat(logits)
        self.instance_layout = lay_out(logits.shape[:-1], logits.device, mask=mask, offsets=offsets, copies=copies)
        self.classes = logits.shape[-1]
        self._labels = f", {self.classes} classes"
        self.bag_effect = None if bag_effect is None else require_bag_effect(bag_effect, self.instance_layout)
        self._x = logits
        if mask is not None or copies is not None:
            self._x = self._present(logits)

    def with_logits(self, logits: Tensor) -> ClassCountDistribution:
        dist = super().with_logits(logits)
        dist._x = self._present(logits)
        return dist

    def _present(self, logits: Tensor) -> Tensor:
        # An instance that is not there has no possible class. Layouts know of instances in the last dimension.
        return self.instance_layout.present(logits.movedim(-1, 0), -torch.inf).movedim(0, -1)

    def condition(self, known: object) -> tuple[ClassCountDistribution, Tensor]:
        """The distribution given the classes of some instances, and the log-probability of these in each bag.

        Args:
            known: integers, one for each instance: its class, and -1 where it is not known. A class is that of all
                copies of its instance.

        Returns:
            The distribution with known classes certain, and log-probabilities of `shape` in the dtype of the logits.

        Raises:
            TypeError, ValueError: as for `CountDistribution.condition`.

        Examples:
            >>> import torch, kofn
            >>> dist, log_known = kofn.classes.ClassCountDistribution(torch.zeros(2, 3)).condition([2, -1])
            >>> dist.log_prob(torch.tensor([0, 1, 1])).exp(), log_known.exp()
            (tensor(0.3333), tensor(0.3333))
        """
        if self.bag_effect is not None:
            raise ValueError(
                "`bag_effect` must be None beside known labels, because they say something about the shift of their "
                "bag, too. Leave out one of them."
            )
        logits, log_known = given_classes(self.logits, self.instance_layout, known)
        return self.with_logits(logits), log_known

    @property
    def mean(self) -> Tensor:
        """E K_c = sum_i softmax(x_i)_c: of `shape` and then the classes, in the dtype of the logits."""
        probabilities = one_certain_class(self.logits.double()).softmax(-1)
        return self.instance_layout.sum(probabilities.movedim(-1, 0)).movedim(0, -1).to(self.logits.dtype)

    def log_prob(self, counts: Tensor, *, method: Method = "auto") -> Tensor:
        """log P(K_1 = k_1, ..., K_C = k_C) of each bag; see `kofn.log_class_count_prob`.

        With a bag effect it is an integral over u, by Laplace's method with its first correction: right to about 1e-3
        for bags of 50 and 1e-5 for bags of 500 with an effect of 1, and exact as the effect goes to 0.

        Args:
            counts: integers of any integer dtype that broadcast to `shape` and then the classes.
            method: "exact", "limit", or "auto" for the first up to a size and the second beyond.

        Returns:
            Of `shape`, in the dtype of the logits; -inf with gradient zero where the counts are impossible.

        Examples:
            >>> import torch, kofn
            >>> kofn.classes.ClassCountDistribution(torch.zeros(2, 2)).log_prob(torch.tensor([1, 1])).exp()
            tensor(0.5000)
        """
        wanted, layout = self.whole_numbers(counts), self.instance_layout
        if self.bag_effect is None:
            return _joint.log_prob(self._x, layout, wanted, method)
        return _class_effect.log_prob(self._x, layout, wanted, method, self.bag_effect)

    def posteriors(self, counts: Tensor, *, method: Method = "auto") -> Tensor:
        """P(y_i = c | K = k), of the shape and dtype of the logits; see `kofn.class_count_posteriors`.

        Examples:
            >>> import torch, kofn
            >>> kofn.classes.ClassCountDistribution(torch.zeros(2, 2)).posteriors(torch.tensor([1, 1]))
            tensor([[0.5000, 0.5000],
                    [0.5000, 0.5000]])
        """
        # Given the counts, a random effect says nothing more of the labels.
        return _joint.posteriors(self._x, self.instance_layout, self.whole_numbers(counts), method)

    def log_marginals(self, counts: Tensor) -> Tensor:
        """log P(K_c = k_c) of each class by itself, in time linear in the bag's size for each.

        Args:
            counts: integers of any integer dtype that broadcast to `shape` and then the classes.

        Returns:
            Of `shape` and then the classes, in the dtype of the logits.

        Examples:
            >>> import torch, kofn
            >>> dist = kofn.classes.ClassCountDistribution(torch.zeros(2, 2))
            >>> dist.log_marginals(torch.tensor([1, 1])).exp()
            tensor([0.5000, 0.5000])
        """
        wanted = self.whole_numbers(counts)
        log_odds, offsets, effect = one_vs_rest(self.logits), self.instance_layout.offsets, self.bag_effect
        copies = self.instance_layout.copies
        if offsets is None:
            # Classes first, so that the mask of a bag's instances is that of each of its classes.
            present = self.instance_layout.present(log_odds.movedim(-2, 0), -torch.inf)
            return (
                CountDistribution(present, copies=copies, bag_effect=effect)
                .log_prob(wanted.movedim(-1, 0))
                .movedim(0, -1)
            )
        starts = torch.arange(self.classes).unsqueeze(-1) * self.instance_layout.length
        each = torch.cat([offsets[:1], (starts + offsets[1:]).flatten()])  # the bags once for each class
        effect = None if effect is None else effect.repeat(self.classes)
        copies = None if copies is None else copies.repeat(self.classes)
        dist = CountDistribution(log_odds.flatten(), offsets=each, copies=copies, bag_effect=effect)
        return dist.log_prob(wanted.movedim(-1, 0).flatten()).reshape(self.classes, -1).movedim(0, -1)

    def whole_numbers(self, counts: Tensor) -> Tensor:
        """Require integers for each bag and class: int64 of `shape` and then the classes.

        Examples:
            >>> import torch, kofn
            >>> kofn.classes.ClassCountDistribution(torch.zeros(2, 1, 3)).whole_numbers(torch.tensor([1, 0, 0])).shape
            torch.Size([2, 3])
        """
        return self.instance_layout.whole_numbers("counts", counts, columns=(self.classes,))
