"""What a bag's label says of its count S, and how surprised a model is by it.

A weak label is a statement about S, the number of positives in a bag. Each class here is one kind of statement; its
`loss` is -log P(statement), one number for each bag, by the cheapest exact route to it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.distributions import Distribution

from kofn import _checks
from kofn._at_least_one import none_and_some
from kofn._discrete_laplace import DiscreteLaplace
from kofn._segments import Segments
from kofn.counts import log_count_between, log_count_distribution, log_count_prob

__all__ = [
    "AtLeast", "AtMost", "Between", "DiscreteLaplace", "Distributed", "Exactly", "Noisy", "OneOf", "Spread", "Target",
    "from_proportions",
]  # fmt: skip


class Target(ABC):
    """A statement about the number of positives in each bag."""

    @abstractmethod
    def loss(self, logits: Tensor, *, mask: Tensor | None = None, offsets: Tensor | None = None) -> Tensor:
        """How surprising the statement is, one number for each bag, in the dtype of `logits`.

        Args:
            logits: (..., n) log-odds; (m,) with `offsets`.
            mask: (..., n) bool, True where an instance exists. Only for dense logits.
            offsets: (b + 1,) int64 from 0 to m; bag j is ``logits[offsets[j]:offsets[j + 1]]``.

        Returns:
            (...) or (b,); +inf, with gradient zero, where the statement is impossible.
        """


@dataclass(frozen=True, eq=False)
class Exactly(Target):
    """So many are positive: -log P(S = count), in linear time.

    Args:
        counts: (...) or (b,) whole numbers from 0 to the bag's size, or one int for all bags.

    Examples:
        >>> import torch, kofn
        >>> kofn.count_loss(torch.zeros(4), kofn.Exactly(2)).neg().exp()  # 6 of the 16 outcomes of four fair coins
        tensor(0.3750)
    """

    counts: Tensor | int

    def loss(self, logits: Tensor, *, mask: Tensor | None = None, offsets: Tensor | None = None) -> Tensor:
        bags = Segments(logits, mask, offsets)
        counts = _checks.per_bag("counts", self.counts, logits, bags.shape)
        _checks.counts_fit(counts, bags.sizes)
        return -log_count_prob(logits, counts, mask=mask, offsets=offsets)


@dataclass(frozen=True, eq=False)
class AtLeast(Target):
    """So many or more are positive: -log P(S >= low), in linear time; a closed form for ``AtLeast(1)``.

    Args:
        low: (...) or (b,) whole numbers, or one int for all bags.

    Examples:
        >>> import torch, kofn
        >>> kofn.count_loss(torch.zeros(4), kofn.AtLeast(1)).neg().exp()
        tensor(0.9375)
    """

    low: Tensor | int

    def loss(self, logits: Tensor, *, mask: Tensor | None = None, offsets: Tensor | None = None) -> Tensor:
        bags = Segments(logits, mask, offsets)
        if not isinstance(self.low, Tensor) and self.low == 1:
            _, some = none_and_some(logits, bags)
            return some.to(logits.dtype)
        return -log_count_between(logits, self.low, bags.sizes, mask=mask, offsets=offsets)


@dataclass(frozen=True, eq=False)
class AtMost(Target):
    """So many or fewer are positive: -log P(S <= high), in linear time.

    Args:
        high: (...) or (b,) whole numbers, or one int for all bags.

    Examples:
        >>> import torch, kofn
        >>> kofn.count_loss(torch.zeros(4), kofn.AtMost(1)).neg().exp()
        tensor(0.3125)
    """

    high: Tensor | int

    def loss(self, logits: Tensor, *, mask: Tensor | None = None, offsets: Tensor | None = None) -> Tensor:
        return -log_count_between(logits, 0, self.high, mask=mask, offsets=offsets)


@dataclass(frozen=True, eq=False)
class Between(Target):
    """The count lies in an interval, ends included: -log P(low <= S <= high), in linear time.

    Args:
        low: (...) or (b,) whole numbers, or one int for all bags.
        high: (...) or (b,) whole numbers, or one int for all bags.

    Examples:
        >>> import torch, kofn
        >>> kofn.count_loss(torch.zeros(4), kofn.Between(1, 3)).neg().exp()
        tensor(0.8750)
    """

    low: Tensor | int
    high: Tensor | int

    def loss(self, logits: Tensor, *, mask: Tensor | None = None, offsets: Tensor | None = None) -> Tensor:
        return -log_count_between(logits, self.low, self.high, mask=mask, offsets=offsets)


@dataclass(frozen=True, eq=False)
class OneOf(Target):
    """The count is one of a set: -log sum_{s in set} P(S = s), in time n^1.5.

    Args:
        allowed: whole numbers: a list, a set or a tensor (k,) for all bags alike, a tensor (..., k) or (b, k) for each
            bag its own (fill up with -1: a count that no bag has adds nothing, nor does one that is named twice).
            Or a bool tensor of the shape of `kofn.log_count_distribution`, True at allowed counts.

    Examples:
        >>> import torch, kofn
        >>> kofn.count_loss(torch.zeros(4), kofn.OneOf({0, 4})).neg().exp()  # all alike
        tensor(0.1250)
    """

    allowed: Tensor | Collection[int]

    def loss(self, logits: Tensor, *, mask: Tensor | None = None, offsets: Tensor | None = None) -> Tensor:
        law, bags, counts = _law(logits, mask, offsets)
        allowed = self.allowed
        if not isinstance(allowed, Tensor):
            allowed = torch.tensor(tuple(allowed) or (-1,), device=logits.device)
        if allowed.dtype != torch.bool:
            width = allowed.shape[-1] if allowed.dim() else 1
            allowed = counts.mark(_checks.per_bag("allowed", allowed, law, (*bags.shape, width)))
        allowed = _checks.law_shape("allowed", allowed, tuple(law.shape), ragged=bags.ragged)
        return -counts.logsumexp(law.masked_fill(~allowed, -torch.inf)).to(logits.dtype)


@dataclass(frozen=True, eq=False)
class Noisy(Target):
    """The count was published with noise added, as for privacy: observed = S + noise. In time n^1.5.

    The loss is the exact negative log-likelihood of what was observed, every count taken into account:

        -log sum_s P(S = s) P(noise = observed - s).

    Args:
        observed: (...) or (b,) published numbers, whole or not, or one number for all bags.
        noise: a `torch.distributions` law on the real line (Normal, Laplace, ...), with a batch shape of one entry for
            each bag if scales differ; or any elementwise function from differences observed - s (float64) to
            log-probabilities, such as `kofn.targets.DiscreteLaplace`. Gradients reach its parameters, whose dtype is
            the precision of a torch law. With a density the loss is that of a density and may be negative.

    Examples:
        >>> import torch, kofn
        >>> released = kofn.Noisy(2.6, torch.distributions.Laplace(0.0, 0.5))  # two fair coins: 0, 1 or 2 positives
        >>> density = (0.25 * torch.exp(torch.tensor(-5.2)) + 0.5 * torch.exp(torch.tensor(-3.2))
        ...            + 0.25 * torch.exp(torch.tensor(-1.2)))
        >>> torch.allclose(kofn.count_loss(torch.zeros(2), released), -density.log())
        True
    """

    observed: Tensor | float
    noise: Distribution | Callable[[Tensor], Tensor]

    def __post_init__(self) -> None:
        _checks.noise(self.noise)

    def loss(self, logits: Tensor, *, mask: Tensor | None = None, offsets: Tensor | None = None) -> Tensor:
        law, bags, counts = _law(logits, mask, offsets)
        observed = _checks.real_per_bag("observed", self.observed, logits, bags.shape)
        log_noise = self.noise.log_prob if isinstance(self.noise, Distribution) else self.noise
        if bags.ragged and not getattr(self.noise, "batch_shape", ()):
            error = log_noise(counts.spread(observed) - counts.place())
        else:  # counts first, so that a noise with one scale for each bag broadcasts
            every = torch.arange(counts.longest, device=logits.device)
            error = counts.from_rectangle(log_noise(observed - every.reshape(-1, *(1 for _ in bags.shape))))
        return -counts.logsumexp(law + error).to(logits.dtype)


@dataclass(frozen=True, eq=False)
class Distributed(Target):
    """The count follows a known law: the divergence of the model's from it, in nats, in time n^1.5.

        KL(target || law of S) = sum_s q(s) (log q(s) - log P(S = s)),

    summed over counts, never divided by their number; 0 log 0 = 0.

    Args:
        log_probs: log q, of the shape of `kofn.log_count_distribution`: (..., n + 1) or, broadcasting, (n + 1,);
            ragged: flat (m + b,). -inf where q is 0, as past a bag's size.

    Examples:
        >>> import torch, kofn
        >>> fair = torch.tensor([0.25, 0.5, 0.25]).log()
        >>> torch.allclose(kofn.count_loss(torch.zeros(2), kofn.Distributed(fair)), torch.zeros(()), atol=1e-7)
        True
    """

    log_probs: Tensor

    def loss(self, logits: Tensor, *, mask: Tensor | None = None, offsets: Tensor | None = None) -> Tensor:
        law, bags, counts = _law(logits, mask, offsets)
        log_q = _checks.law_shape("log_probs", self.log_probs, tuple(law.shape), ragged=bags.ragged).double()
        _checks.normalised(counts.logsumexp(log_q.detach()))
        unwanted, impossible = log_q == -torch.inf, law == -torch.inf
        apart = log_q.masked_fill(unwanted, 0.0) - law.masked_fill(unwanted | impossible, 0.0)
        divergence = counts.sum(log_q.exp() * apart)
        excluded = counts.sum((impossible & ~unwanted).double()) > 0  # some wanted count cannot be
        return divergence.masked_fill(excluded, torch.inf).to(logits.dtype)


@dataclass(frozen=True, eq=False)
class Spread(Target):
    """The count is a real number, such as 68.5: its mass is shared by the two whole numbers beside it.

        KL(q || law of S), q(low) = 1 - share, q(low + 1) = share, low = floor(count), share = count - low

    The mean of q is the count. In linear time. A whole count is `Exactly` it.

    Args:
        counts: (...) or (b,) real numbers from 0 to the bag's size, or one for all bags.

    Examples:
        >>> import torch, kofn
        >>> x = torch.tensor([0.3, -1.0, 2.0])
        >>> torch.allclose(kofn.targets.Spread(2.0).loss(x), kofn.Exactly(2).loss(x))
        True
    """

    counts: Tensor | float

    def loss(self, logits: Tensor, *, mask: Tensor | None = None, offsets: Tensor | None = None) -> Tensor:
        bags = Segments(logits, mask, offsets)
        counts = _checks.real_per_bag("counts", self.counts, logits, bags.shape)
        _checks.counts_fit(counts, bags.sizes)
        low = counts.floor()
        share = counts - low
        total: Tensor = -torch.special.entr(share) - torch.special.entr(1 - share)
        for count, mass in ((low, 1 - share), (low + 1, share)):
            surprise = -log_count_prob(logits.double(), count.long(), mask=mask, offsets=offsets)
            total = total + mass * surprise.masked_fill(mass == 0, 0.0)
        return total.to(logits.dtype)


def from_proportions(
    proportions: Tensor | float, sizes: Tensor | int, *, rounding: Literal["error", "nearest", "spread"] = "error"
) -> Exactly | Spread:
    """The target that a bag's proportion of positives is.

    Args:
        proportions: (...) or (b,) from 0 to 1, or one number for all bags.
        sizes: (...) or (b,) sizes of the bags, whole numbers, or one int.
        rounding: what to do with a proportion that is no whole count of its bag: "error" raises, "nearest" takes the
            nearest count, "spread" shares it between the two neighbouring counts (`Spread`).

    Returns:
        `Exactly` the counts, or `Spread` over their neighbours.

    Raises:
        ValueError: proportions outside [0, 1], or not whole with rounding="error".

    Examples:
        >>> import torch, kofn
        >>> kofn.targets.from_proportions(torch.tensor([0.25, 0.5]), 8).counts
        tensor([2, 4])
    """
    _checks.option("rounding", rounding, ("error", "nearest", "spread"))
    given = torch.as_tensor(proportions, dtype=None if isinstance(proportions, Tensor) else torch.float64)
    shares = _checks.fractions("proportions", _checks.real_per_bag("proportions", given, given, None))
    n = torch.as_tensor(sizes, device=shares.device)
    exact, nearest = shares * n, (shares * n).round()
    # The rounding error of a proportion of this dtype, times the bag's size; near a half it could not be told apart.
    slack = (torch.finfo(given.dtype).eps * n.double()).clamp(max=0.1)
    if rounding == "spread":
        return Spread(torch.where((exact - nearest).abs() <= slack, nearest, exact))
    if rounding == "error":
        _checks.whole_counts(exact, slack)
    return Exactly(nearest.long())


def _law(logits: Tensor, mask: Tensor | None, offsets: Tensor | None) -> tuple[Tensor, Segments, Segments]:
    """The law of S in float64, the bags, and the same bags with an entry for each count."""
    bags = Segments(logits, mask, offsets)
    return log_count_distribution(logits.double(), mask=mask, offsets=offsets), bags, bags.of_counts()
