"""What an accelerator would wait for: how often the host reads values, and whether any shape depends on them.

There is no accelerator here. Its path is taken on the CPU by keeping the host from looking, with the numbers checked, and
on tensors without any values, where a look is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from bag_strategies import adversarial_count, adversarial_logits
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import kofn
from kofn.counts import _characteristic, _host, _tilt
from kofn.counts._characteristic import NEGLIGIBLE, radius

# Operators that give the host a number, or a tensor whose shape depends on numbers.
READS = {
    *(
        "_local_scalar_dense",
        "is_nonzero",
        "equal",
        "allclose",
        "nonzero",
        "nonzero_static",
        "argwhere",
        "masked_select",
    ),
    *("_unique", "_unique2", "unique_dim", "unique_consecutive", "bincount", "histc", "repeat_interleave"),
}


class Operators(TorchDispatchMode):
    """Counts the operators that run; a copy from another device to the CPU would be among them."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no type for it
        self.counted: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.counted[func._schema.name.removeprefix("aten::")] += 1
        return func(*args, **(kwargs or {}))

    def reads(self) -> int:
        return sum(times for name, times in self.counted.items() if name in READS)


@pytest.fixture(params=["torch"], scope="module", autouse=True)
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Only torch: the C++ core is for the CPU."""
    with kofn.counts.use(request.param):
        yield request.param


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The path of an accelerator."""
    monkeypatch.setattr(_host, "sees", lambda _: False)
    monkeypatch.setattr(_characteristic, "_BLOCK", _characteristic._BLOCK_OF_DEVICE)


def logits(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def with_gradient(function: Callable[..., Tensor], x: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    x = x.clone().requires_grad_()
    value = function(x, *args, **kwargs)
    return value.detach(), torch.autograd.grad(value, x, torch.ones_like(value))[0]


def operators_of(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Operators:
    operators = Operators()
    with operators:
        function(*args, **kwargs)
    return operators


@pytest.mark.usefixtures("blind")
@pytest.mark.parametrize("n", [1, 8, 64, 65, 512, 3000])
def test_one_count_or_interval_with_its_gradient_never_waits(n: int) -> None:
    x, count = logits(3, n), torch.tensor([0, n // 2, n])
    for operators in (
        operators_of(with_gradient, kofn.log_count_prob, x, count),
        operators_of(with_gradient, kofn.log_count_between, x, count // 2, count),
        operators_of(with_gradient, kofn.log_count_between, x, 1, None),
        operators_of(kofn.count_posteriors, x, count),
        operators_of(kofn.CountDistribution(x).posteriors_between, count // 2, count),
        operators_of(kofn.CountDistribution(x).cdf, count),
        operators_of(lambda: (kofn.CountDistribution(x).mean, kofn.CountDistribution(x).variance)),
        operators_of(lambda: kofn.CountDistribution(x).mode),
        operators_of(kofn.CountDistribution(x).sample, (2,)),
    ):
        assert operators.reads() == 0, operators.counted


@pytest.mark.usefixtures("blind")
def test_a_mask_does_not_make_it_wait() -> None:
    mask = torch.arange(70) % 7 != 3
    assert operators_of(with_gradient, kofn.log_count_prob, logits(3, 70), 4, mask=mask).reads() == 0


@pytest.mark.usefixtures("blind")
def test_operators_of_one_count_and_its_gradient() -> None:
    x, counts = logits(128, 512).requires_grad_(), torch.full((128,), 170)
    operators = operators_of(lambda: kofn.log_count_prob(x, counts).sum().backward())
    assert operators.counted.total() <= 272, operators.counted


@pytest.mark.usefixtures("blind")
@pytest.mark.parametrize(("n", "at_most"), [(30, 4), (100, 12)])
def test_reads_of_all_counts(n: int, at_most: int) -> None:
    # Which bags a tree computes, twice; then a read for each round of windows, and three for those that carry weight.
    assert operators_of(with_gradient, kofn.log_count_distribution, logits(3, n)).reads() <= at_most


@pytest.mark.usefixtures("blind")
def test_reads_of_a_search() -> None:
    # Are there NaNs, and how wide is the search: for each of both ends.
    assert operators_of(kofn.CountDistribution(logits(3, 100)).quantile, 0.3).reads() <= 3
    assert operators_of(kofn.CountDistribution(logits(3, 100)).interval, 0.9).reads() <= 4


@pytest.mark.usefixtures("blind")
def test_ragged_bags_read_nothing_but_their_offsets() -> None:
    sizes = torch.tensor([3, 0, 90, 500, 17])
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])
    once, twice = (
        operators_of(with_gradient, kofn.log_count_prob, logits(610) * scale, sizes // 2, offsets=offsets)
        for scale in (1.0, 500.0)
    )
    assert once.counted == twice.counted  # sizes decide what is done, logits do not


@pytest.mark.parametrize("n", [8, 100])
def test_shapes_are_known_without_values(n: int) -> None:
    x = torch.empty(3, n, dtype=torch.float64, device="meta")
    count = torch.empty(3, dtype=torch.int64, device="meta")
    assert with_gradient(kofn.log_count_prob, x, count)[1].shape == (3, n)
    assert with_gradient(kofn.log_count_between, x, count, count)[1].shape == (3, n)
    assert kofn.count_posteriors(x, count).shape == (3, n)
    assert kofn.log_count_prob(x, count, mask=x > 0).shape == (3,)


def test_the_blind_path_has_the_same_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    for n in (1, 2, 7, 40, 70, 300):
        bags = [adversarial_logits(rng, n) for _ in range(30)]
        counts = torch.tensor([adversarial_count(rng, bag) for bag in bags])
        x = torch.from_numpy(np.stack(bags))

        def answers(x: Tensor, counts: Tensor, wider: Tensor) -> list[tuple[Tensor, Tensor]]:
            return [
                with_gradient(kofn.log_count_prob, x, counts),
                with_gradient(kofn.log_count_between, x, counts, wider),
            ]

        expected = answers(x, counts, counts + n // 5)
        with monkeypatch.context() as patch:
            patch.setattr(_host, "sees", lambda _: False)
            found = answers(x, counts, counts + n // 5)
        torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-11)


def test_a_tilt_that_is_not_found_makes_its_bag_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tilt, "_LOOKS", 1)
    monkeypatch.setattr(_tilt, "_STEPS", 1)
    monkeypatch.setattr(_tilt.Tilt, "hits", lambda self, target: target != 30)
    x, count = logits(2, 100) * 5, torch.tensor([30, 40])
    value, gradient = with_gradient(kofn.log_count_prob, x, count)
    assert value.isnan().tolist() == [True, False]
    assert gradient.isnan().all(-1).tolist() == [True, False]
    table, by_table = with_gradient(kofn.log_count_distribution, x)
    assert table.isnan().any(-1).tolist() == [True, True]
    assert by_table.isnan().all()


@pytest.mark.parametrize(("exponent", "bound"), [(1.0, 32), (4.6, 36), (NEGLIGIBLE, 56)])
def test_frequencies_beyond_the_bound_carry_nothing_at_any_variance(
    exponent: float, bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    variance = torch.cat([torch.linspace(0, 60, 60_001), torch.logspace(1, 9, 10_000)]).double()
    points = radius(variance, NEGLIGIBLE) + radius(variance, exponent)
    half = ((points - 1) / 2).ceil()
    monkeypatch.setattr(_host, "sees", lambda _: False)
    assert _characteristic._frequencies(variance, half, exponent) == bound
    beyond = bound <= half
    exponents = 2 * variance * torch.sin(torch.pi * bound / (2 * half + 1)).square()
    assert exponents[beyond].min() > NEGLIGIBLE - 0.1


@pytest.mark.usefixtures("blind")
def test_a_bag_that_is_nearly_sure_is_tilted_towards_its_interval() -> None:
    """Many tilts hit its count; one away from the interval lost eight digits."""
    sure = torch.tensor([29.0] * 42 + [27.6, -26.4] + [-31.0] * 37, dtype=torch.float64)
    with kofn.counts.use("torch"):
        found = kofn.log_count_between(torch.stack([sure, -sure]), torch.tensor([43, 1]), torch.tensor([80, 38]))
        rest = kofn.log_count_between(torch.stack([sure, -sure]), torch.tensor([0, 39]), torch.tensor([42, 81]))
    torch.testing.assert_close(found, torch.log1p(-rest.exp()), rtol=0.0, atol=1e-13)
