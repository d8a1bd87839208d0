"""Each statement about a count against what enumeration, 50 digits and hand-made cases say of it."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from oracles import mpmath_law
from torch import Tensor
from torch.distributions import Laplace, Normal, StudentT

import kofn
from kofn import targets
from kofn.targets import DiscreteLaplace, Spread, Target, from_proportions

X = torch.tensor([0.3, -1.2, 2.0, 0.1, -0.4], dtype=torch.float64)


def enumerated(x: Tensor) -> list[float]:
    """P(S = 0..n) by going through all label vectors."""
    law = [0.0] * (len(x) + 1)
    for labels in itertools.product((0, 1), repeat=len(x)):
        p = torch.sigmoid(x)
        law[sum(labels)] += math.prod(float(p[i] if y else 1 - p[i]) for i, y in enumerate(labels))
    return law


PMF = enumerated(X)


def D(value: float) -> Tensor:  # noqa: N802
    return torch.tensor(value, dtype=torch.float64)


@pytest.mark.parametrize(
    ("target", "probability"),
    [
        (kofn.Exactly(2), PMF[2]),
        (kofn.AtLeast(1), sum(PMF[1:])),
        (kofn.AtLeast(torch.tensor(1)), sum(PMF[1:])),
        (kofn.AtLeast(3), sum(PMF[3:])),
        (kofn.AtLeast(0), 1.0),
        (kofn.AtLeast(6), 0.0),
        (kofn.AtMost(1), sum(PMF[:2])),
        (kofn.AtMost(9), 1.0),
        (kofn.Between(2, 4), sum(PMF[2:5])),
        (kofn.Between(4, 2), 0.0),
        (kofn.OneOf([1, 4]), PMF[1] + PMF[4]),
        (kofn.OneOf({4, 1, 17}), PMF[1] + PMF[4]),
        (kofn.OneOf(range(1, 3)), PMF[1] + PMF[2]),
        (kofn.OneOf(torch.tensor([4, 1, 4, -1, 99])), PMF[1] + PMF[4]),
        (kofn.OneOf(torch.arange(6) % 3 == 1), PMF[1] + PMF[4]),
        (kofn.OneOf([]), 0.0),
        (kofn.Noisy(3, lambda d: torch.where(d == 1, 0.0, -torch.inf)), PMF[2]),
        (kofn.Noisy(3.5, DiscreteLaplace(1.0)), 0.0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_against_enumeration(target: Target, probability: float) -> None:
    expected = -math.log(probability) if probability else math.inf
    assert target.loss(kofn.CountDistribution(X)).item() == pytest.approx(expected, rel=1e-13, abs=1e-15)


@pytest.mark.parametrize(
    "noise", [Normal(D(0.2), D(1.3)), Laplace(D(0.0), D(2.0)), StudentT(D(3.0)), Normal(D(0.0), D(0.01))], ids=repr
)
@pytest.mark.parametrize("observed", [-4.0, 0.0, 2.7, 40.0])
def test_noisy_is_the_likelihood_of_what_was_seen(noise: Normal, observed: float) -> None:
    logs = [math.log(p) + noise.log_prob(D(observed - s)).item() for s, p in enumerate(PMF)]
    top = max(logs)
    expected = -top - math.log(sum(math.exp(v - top) for v in logs))
    assert kofn.Noisy(observed, noise).loss(kofn.CountDistribution(X)).item() == pytest.approx(expected, rel=1e-12)


class TestNoisyLimits:
    def test_no_noise_is_exactly(self) -> None:
        counts = torch.tensor([0, 2, 5])
        x = X.expand(3, 5).clone().requires_grad_()
        exact = kofn.Exactly(counts).loss(kofn.CountDistribution(x))
        (slope,) = torch.autograd.grad(exact.sum(), x)
        for noise in (DiscreteLaplace(1e-3), DiscreteLaplace(0.02)):
            noisy = kofn.Noisy(counts, noise).loss(kofn.CountDistribution(x))
            torch.testing.assert_close(noisy, exact, rtol=1e-12, atol=1e-12)
            torch.testing.assert_close(torch.autograd.grad(noisy.sum(), x)[0], slope, rtol=1e-12, atol=1e-12)
        for scale in (0.1, 0.03, 0.01):  # a density: up to the constant log density at zero
            normal = Normal(torch.zeros((), dtype=torch.float64), scale)
            noisy = kofn.Noisy(counts, normal).loss(kofn.CountDistribution(x)) + normal.log_prob(torch.tensor(0.0))
            torch.testing.assert_close(noisy, exact, rtol=0, atol=20 * math.exp(-0.5 / scale**2) + 1e-12)

    def test_flat_noise_is_a_constant(self) -> None:
        x = torch.randn(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
        for noise, constant in ((Normal(0.0, 1e6), math.log(1e6 * math.sqrt(2 * math.pi))),
                                (Laplace(0.0, 1e6), math.log(2e6)), (DiscreteLaplace(1e6), math.log(2e6))):  # fmt: skip
            loss = kofn.Noisy(2, noise).loss(kofn.CountDistribution(x))
            torch.testing.assert_close(loss, torch.full_like(loss, constant), rtol=0, atol=1e-5)
            assert torch.autograd.grad(loss.sum(), x)[0].abs().max() < 1e-5

    def test_gradients_reach_the_noise(self) -> None:
        def loss(scale: Tensor, observed: Tensor) -> Tensor:
            return kofn.Noisy(observed, Laplace(torch.zeros_like(scale), scale)).loss(
                kofn.CountDistribution(X.expand(3, 5))
            )

        scale = torch.tensor([0.5, 1.0, 4.0], dtype=torch.float64, requires_grad=True)
        observed = torch.tensor([1.3, -0.4, 6.6], dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(loss, (scale, observed))

    def test_both_impossible(self) -> None:
        x = torch.tensor([math.inf, math.inf, 0.3], dtype=torch.float64, requires_grad=True)  # 2 or 3
        loss = kofn.Noisy(1, lambda d: torch.where(d == 0, 0.0, -torch.inf)).loss(kofn.CountDistribution(x))
        assert loss.item() == math.inf
        assert torch.autograd.grad(loss, x)[0].tolist() == [0, 0, 0]


@pytest.mark.parametrize("scale", [1e-2, 0.3, 1.0, 50.0])
def test_discrete_laplace_is_a_law(scale: float) -> None:
    d = torch.arange(-3000, 3001, dtype=torch.float64)
    pmf = DiscreteLaplace(scale)(d).exp()
    assert pmf.sum().item() == pytest.approx(1, rel=1e-12)
    r = math.exp(-1 / scale)
    assert (pmf * d * d).sum().item() == pytest.approx(2 * r / (1 - r) ** 2, rel=1e-9)
    assert DiscreteLaplace(scale)(torch.tensor(0.5)).item() == -math.inf


class TestDistributed:
    def test_by_hand(self) -> None:
        q = torch.tensor([0.0, 0.1, 0.2, 0.0, 0.7, 0.0], dtype=torch.float64)
        expected = sum(float(w) * math.log(float(w) / p) for w, p in zip(q, PMF, strict=True) if w)
        assert kofn.Distributed(q.log()).loss(kofn.CountDistribution(X)).item() == pytest.approx(expected, rel=1e-13)

    def test_zero_of_its_own_law_and_one_point_is_exactly(self) -> None:
        law = kofn.log_count_distribution(X)
        assert abs(kofn.Distributed(law).loss(kofn.CountDistribution(X)).item()) < 1e-15
        one = torch.full((6,), -torch.inf).index_fill(0, torch.tensor(2), 0.0)
        torch.testing.assert_close(
            kofn.Distributed(one).loss(kofn.CountDistribution(X)), kofn.Exactly(2).loss(kofn.CountDistribution(X))
        )

    def test_ragged(self) -> None:
        flat, offsets = torch.cat([X, X[:2]]), torch.tensor([0, 5, 5, 7])
        parts = [torch.randn(n + 1, generator=torch.Generator().manual_seed(n)).log_softmax(0) for n in (5, 0, 2)]
        together = kofn.Distributed(torch.cat(parts)).loss(kofn.CountDistribution(flat, offsets=offsets))
        alone = [
            kofn.Distributed(q).loss(kofn.CountDistribution(x)) for q, x in zip(parts, (X, X[:0], X[:2]), strict=True)
        ]
        torch.testing.assert_close(together, torch.stack(alone))

    def test_masked_and_broadcast(self) -> None:
        q = torch.tensor([0.2, 0.5, 0.3]).log()
        padded = torch.cat([q, torch.full((3,), -torch.inf)])
        mask = torch.tensor([True, False, False, True, False])
        both = kofn.Distributed(padded).loss(kofn.CountDistribution(X.expand(2, 5), mask=mask.expand(2, 5)))
        torch.testing.assert_close(both, kofn.Distributed(q).loss(kofn.CountDistribution(X[mask])).expand(2))

    def test_derivatives(self) -> None:
        q = torch.randn(3, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(5)).log_softmax(-1)
        q[1, 2:4] = -torch.inf
        q = q.log_softmax(-1)
        x = X.expand(3, 5).clone().requires_grad_()
        assert torch.autograd.gradcheck(lambda z: kofn.Distributed(q).loss(kofn.CountDistribution(z)), (x,))
        assert torch.autograd.gradgradcheck(lambda z: kofn.Distributed(q).loss(kofn.CountDistribution(z)), (x,))

    def test_right_where_probabilities_underflow(self) -> None:
        n = 3000
        x = torch.full((n,), -9.0, dtype=torch.float64, requires_grad=True)
        q = torch.full((n + 1,), -torch.inf, dtype=torch.float64)
        q[n - 1], q[n] = math.log(0.25), math.log(0.75)  # where P is e^-27000
        loss = kofn.Distributed(q).loss(kofn.CountDistribution(x))
        with mpmath.workdps(40):
            p, none = 1 / (1 + mpmath.e**9), 1 / (1 + mpmath.e**-9)
            ends = (n - 1, 0.25, mpmath.log(n * p ** (n - 1) * none)), (n, 0.75, mpmath.log(p**n))
            expected = float(sum(w * (mpmath.log(w) - log_p) for _, w, log_p in ends))
        assert expected > 25_000
        assert loss.item() == pytest.approx(expected, rel=1e-13)
        (slope,) = torch.autograd.grad(loss, x)
        mean = (n - 0.25) / n  # of q, over n
        torch.testing.assert_close(slope, torch.full_like(slope, float(p) - mean), rtol=1e-10, atol=0)

    def test_a_wanted_count_that_cannot_be(self) -> None:
        x = torch.tensor([math.inf, 0.0], dtype=torch.float64, requires_grad=True)
        for tiny in (0.5, 1e-300, 0.0):
            q = torch.tensor([tiny, 0.5, 0.5 - tiny], dtype=torch.float64).log()
            if tiny == 0:
                q[0] = -900.0  # positive, though not in a float
            loss = kofn.Distributed(q).loss(kofn.CountDistribution(x))
            assert loss.item() == math.inf
            assert torch.autograd.grad(loss, x)[0].tolist() == [0, 0]


class TestAtLeastOne:
    @pytest.mark.parametrize(
        "logits",
        [[-50.0] * 3, [50.0] * 3, [-50.0, 50.0], [-1e4, -1e4 + 1], [1e4, -1e4], [-40.2, -39.8], [-745.0] * 2,
         [0.0], [1e-9, -0.69], [-20.0] * 5, [0.1, -3.0, 2.0], [math.inf, 0.0], [-math.inf, -2.0]],
        ids=str,
    )  # fmt: skip
    def test_value_and_gradient_at_50_digits(self, logits: list[float]) -> None:
        x = torch.tensor(logits, dtype=torch.float64, requires_grad=True)
        loss = kofn.AtLeast(1).loss(kofn.CountDistribution(x))
        (slope,) = torch.autograd.grad(loss, x)
        with mpmath.workdps(9000):
            odds = [mpmath.exp(v) if v < math.inf else mpmath.mpf(10) ** 8000 for v in logits]
            none = mpmath.mpf(1) / math.prod(1 + o for o in odds)
            value = float(-mpmath.log(1 - none))
            slopes = [float(-o / (1 + o) * none / (1 - none)) for o in odds]
        assert loss.item() == pytest.approx(value, rel=1e-13, abs=0)
        torch.testing.assert_close(slope.tolist(), slopes, rtol=3e-12, atol=0)

    def test_impossible(self) -> None:
        x = torch.full((2, 3), -torch.inf, dtype=torch.float64, requires_grad=True)
        loss = kofn.AtLeast(1).loss(kofn.CountDistribution(x))
        assert loss.tolist() == [math.inf, math.inf]
        assert torch.autograd.grad(loss.sum(), x)[0].eq(0).all()
        assert kofn.AtLeast(1).loss(kofn.CountDistribution(torch.zeros(2, 0))).tolist() == [math.inf, math.inf]

    def test_equals_the_engine(self) -> None:
        x = torch.randn(40, 30, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 9 - 20
        torch.testing.assert_close(
            kofn.AtLeast(1).loss(kofn.CountDistribution(x)), -kofn.log_count_between(x, 1, 30), rtol=1e-12, atol=1e-15
        )

    def test_forward_mode(self) -> None:
        x = X[None].clone().requires_grad_()
        assert torch.autograd.gradcheck(
            lambda z: kofn.AtLeast(1).loss(kofn.CountDistribution(z)), (x,), check_forward_ad=True
        )
        torch.func.hessian(lambda z: kofn.AtLeast(1).loss(kofn.CountDistribution(z)))(X)


class TestProportions:
    def test_whole(self) -> None:
        sizes = torch.tensor([3, 7, 8, 100_000])
        counts = torch.tensor([1, 3, 8, 37_123])
        for dtype in (torch.float32, torch.float64):
            found = from_proportions(counts.to(dtype) / sizes, sizes).counts
            assert isinstance(found, Tensor)
            assert torch.equal(found, counts)
        assert from_proportions(0.29, 100).counts == 29  # 28.999999999999996

    @pytest.mark.parametrize(("share", "size", "become"), [(0.81, 1, 1), (0.19, 1, 0), (0.996, 100, 100), (0.04, 8, 0)])
    def test_rounding_makes_no_certainty(self, share: float, size: int, become: int) -> None:
        """A share of .81 in a bag of one became 1: .975 was learned where .679 is true."""
        shares, sizes = torch.tensor([0.5, share], dtype=torch.float64), torch.tensor([2, size])
        with pytest.raises(ValueError, match="`rounding='nearest'` must not make a certainty of a proportion") as found:
            from_proportions(shares, sizes, rounding="nearest", names=["a", "b"])
        said = f"bag 'b' has {size} instances and the proportion {share:g}, which would become {become} positives"
        assert said in str(found.value)
        for cure in ("`copies`", "`rounding='spread'`", "`noise`"):
            assert cure in str(found.value)
        assert isinstance(from_proportions(shares, sizes, rounding="spread"), Spread)

    def test_certain_proportions_stay_so(self) -> None:
        shares = torch.tensor([0.0, 1.0, 1.0 - 1e-16, 0.3], dtype=torch.float64)
        found = from_proportions(shares, torch.tensor([1, 3, 1000, 4]), rounding="nearest").counts
        assert isinstance(found, Tensor)
        assert found.tolist() == [0, 3, 1000, 1]

    def test_not_whole(self) -> None:
        shares = torch.tensor([0.5, 0.33])
        with pytest.raises(
            ValueError,
            match=r"bag 1 has 8 .*2.64 positives. Are instances of the bag missing.*`rounding='nearest'` or `rounding='spread'`",
        ):
            from_proportions(shares, 8)
        torch.testing.assert_close(from_proportions(shares, 8, rounding="nearest").counts, torch.tensor([4, 3]))
        spread = from_proportions(shares, 8, rounding="spread")
        assert isinstance(spread, Spread)
        torch.testing.assert_close(spread.counts, torch.tensor([4.0, 2.64], dtype=torch.float64), rtol=1e-6, atol=0)
        with pytest.raises(ValueError, match="`proportions` must lie between 0 and 1; bag 0 has 37"):
            from_proportions(37.0, 8)

    @pytest.mark.parametrize("count", [0.0, 0.25, 1.5, 4.999, 5.0])
    def test_spread_is_a_divergence(self, count: float) -> None:
        low = math.floor(count)
        q = torch.zeros(7, dtype=torch.float64)
        q[low], q[low + 1] = 1 - (count - low), count - low
        torch.testing.assert_close(
            Spread(count).loss(kofn.CountDistribution(X)), kofn.Distributed(q[:6].log()).loss(kofn.CountDistribution(X))
        )


def test_large_bags_of_every_kind() -> None:
    n = 300
    x = torch.randn(n, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 3
    law = mpmath_law(x.tolist())
    with mpmath.workdps(50):
        few = float(-mpmath.log(law[3] + law[200]))
        b = mpmath.mpf(4)
        noisy = float(-mpmath.log(sum(p * mpmath.exp(-abs(20 - s) / b) / (2 * b) for s, p in enumerate(law))))
    assert kofn.OneOf([3, 200]).loss(kofn.CountDistribution(x)).item() == pytest.approx(few, rel=1e-13)
    assert kofn.Noisy(20, Laplace(D(0.0), D(4.0))).loss(kofn.CountDistribution(x)).item() == pytest.approx(
        noisy, rel=1e-12
    )


def test_immutable() -> None:
    target = kofn.Exactly(2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        target.counts = 3  # type: ignore[misc]  # wrong on purpose
    assert all(issubclass(getattr(targets, name), Target) for name in ("Exactly", "AtMost", "Noisy", "Spread"))


class TestLabels:
    SIZES = torch.tensor([2, 3])

    def test_counts_and_bounds(self) -> None:
        assert targets.from_counts(torch.tensor([2.0, 0.0]), self.SIZES).counts.tolist() == [2, 0]  # type: ignore[union-attr]
        target = targets.from_bounds(torch.tensor([[0, 1], [3, 9]]), self.SIZES)
        assert isinstance(target.low, Tensor)
        assert isinstance(target.high, Tensor)
        assert (target.low.tolist(), target.high.tolist()) == ([0, 3], [1, 9])

    @pytest.mark.parametrize("counts", [[3, 0], [-1, 0], [0.5, 0]])
    def test_a_count_that_its_bag_cannot_have(self, counts: list[float]) -> None:
        words = rf"a count must be an integer from 0 to the size of its bag: bag 'a' has 2 instances and the count {counts[0]:g}\."
        with pytest.raises(ValueError, match=words):
            targets.from_counts(torch.tensor(counts), self.SIZES, names=["a", "b"])

    @pytest.mark.parametrize("bounds", [[2, 1], [4, 5], [-3, -1], [0.5, 1]])
    def test_bounds_that_their_bag_cannot_have(self, bounds: list[float]) -> None:
        with pytest.raises(ValueError, match=r"bounds must be integers.*: bag 1 has 3 instances and the bounds"):
            targets.from_bounds(torch.tensor([[0, 1], bounds]), self.SIZES)
        with pytest.raises(ValueError, match=r"`bounds` must be a lower and an upper one for each bag, \(b, 2\)"):
            targets.from_bounds(torch.tensor(bounds), self.SIZES)

    def test_one_tolerance_for_all(self) -> None:
        n = torch.tensor([100, 3, 100_000])
        shares = torch.tensor([0.07, 1 / 3, 0.37123], dtype=torch.float64)
        assert targets.counts_of_proportions(shares, n).tolist() == [7, 1, 37123]
        assert targets.counts_of_proportions(shares.float(), n).tolist() == [7, 1, 37123]
        assert targets.counts_of_proportions(torch.tensor([-0.5, 1.25]), 4, noisy=True).tolist() == [-2, 5]
        with pytest.raises(ValueError, match=r"`proportions` must lie between 0 and 1; bag 'y' has 1.25"):
            targets.counts_of_proportions(torch.tensor([0.5, 1.25]), 4, names=["x", "y"])
        with pytest.raises(TypeError, match=r"`proportions` must be a number or a torch.Tensor; got str"):
            targets.counts_of_proportions("37 %", 4)  # type: ignore[arg-type]  # wrong on purpose


def test_a_target_of_ones_own_is_three_lines() -> None:
    class NotAll(Target):
        def loss(self, dist: kofn.CountDistribution) -> Tensor:
            return -dist.log_prob_between(None, dist.sizes - 1)

    flat, offsets = torch.cat([X, X[:2]]), torch.tensor([0, 5, 7])
    both = kofn.count_loss(flat, NotAll(), offsets=offsets, reduction="none").neg().exp()
    torch.testing.assert_close(both, 1 - torch.stack([X.sigmoid().prod(), X[:2].sigmoid().prod()]))
    torch.testing.assert_close(kofn.count_loss(flat, NotAll(), offsets=offsets), -both.log().mean())
    mask = torch.tensor([True, True, False, False, False])
    torch.testing.assert_close(kofn.count_loss(X, NotAll(), mask=mask).neg().exp(), both[1])


IMPOSSIBLE: list[tuple[targets.Statement[Any], str]] = [
    (kofn.Exactly(torch.tensor([1, 5])), "`counts` must lie between 0 and the bag's size; bag 1"),
    (kofn.AtLeast(torch.tensor([1, 5])), "`low` and `high` must allow .*; bag 1 has 3 instances"),
    (kofn.AtMost(torch.tensor([1, -1])), "`low` and `high` must allow .*; bag 1"),
    (kofn.Between(torch.tensor([0, 2]), torch.tensor([1, 1])), "`low` and `high` must allow .*from 2 to 1"),
    (kofn.OneOf(torch.tensor([[1, 2], [4, -1]])), "`allowed` must have a count .*; bag 1 has 3 instances"),
]


@pytest.mark.parametrize(("target", "words"), IMPOSSIBLE)
def test_a_label_that_no_bag_can_have_is_an_error_unless_its_weight_is_0(
    target: targets.Statement[Any], words: str
) -> None:
    """Exactly raised, also for a bag of weight 0; the others had an infinite loss."""
    x = torch.zeros(2, 3, requires_grad=True)
    choices: list[dict[str, Any]] = [{}, {"reduction": "none"}, {"weight": torch.tensor([0.0, 1.0])}]
    for options in choices:
        with pytest.raises(ValueError, match=words):
            kofn.count_loss(x, target, **options)
    loss = kofn.count_loss(x, target, weight=torch.tensor([1.0, 0.0]), reduction="sum")
    (slope,) = torch.autograd.grad(loss, x)
    assert loss.isfinite()
    assert bool((slope[1] == 0).all())


def test_a_label_that_infinite_logits_make_impossible_has_an_infinite_loss() -> None:
    x = torch.full((2, 3), -torch.inf)
    for target in (kofn.Exactly(1), kofn.AtLeast(1), kofn.Between(1, 2), kofn.OneOf([1, 2])):
        assert kofn.count_loss(x, target, reduction="none").tolist() == [torch.inf, torch.inf]


def test_counts_are_lists_and_arrays_too_and_proportions_are_told_where_to_go() -> None:
    x = torch.zeros(2, 4)
    expected = kofn.count_loss(x, kofn.Exactly(torch.tensor([1, 2])))
    lists: list[Any] = [[1, 2], np.array([1, 2])]
    for counts in lists:
        assert kofn.count_loss(x, kofn.Exactly(counts)) == expected
    for shares in ([0.5, 0.25], torch.tensor([0.5, 0.25])):
        with pytest.raises(TypeError, match="from_proportions") as refused:
            kofn.losses.llp_loss(x, shares)  # type: ignore[arg-type]  # what is wrong is the point
        assert ".long()" not in str(refused.value)


def test_columns_of_logits_are_not_bags_of_one() -> None:
    x = torch.zeros(2, 3, 1)
    for target in (kofn.Exactly(1), kofn.AtLeast(1), kofn.AtMost(0), kofn.Between(0, 1)):
        with pytest.raises(ValueError, match=r"`logits` must have the instances .* \(2, 3, 1\).*squeeze"):
            kofn.count_loss(x, target)
    assert kofn.count_loss(x, kofn.Exactly(torch.ones(2, 3, dtype=torch.int64))).isfinite()
