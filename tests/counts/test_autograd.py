"""Derivatives of every order we promise, torch.func, torch.compile, autocast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, hessian, jacrev, vmap

import kofn

COUNTS = torch.tensor([0, 2, 5, 3, 9])
FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "one count": lambda x: kofn.log_count_prob(x, COUNTS),
    "interval": lambda x: kofn.log_count_between(x, torch.tensor([0, 1, 2, 4, 3]), torch.tensor([3, 1, 5, 9, 2])),
    "law": lambda x: kofn.log_count_distribution(x),
    "posteriors": lambda x: kofn.count_posteriors(x, COUNTS),
    "masked": lambda x: kofn.log_count_prob(x, 2, mask=torch.arange(5) > torch.arange(5).unsqueeze(-1) - 2),
    "ragged": lambda x: kofn.log_count_prob(x.flatten(), torch.tensor([1, 4, 2]), offsets=torch.tensor([0, 3, 3, 25])),
    "ragged law": lambda x: kofn.log_count_distribution(x.flatten()[:9], offsets=torch.tensor([0, 2, 2, 9])),
}


def finite(name: str) -> Callable[[Tensor], Tensor]:
    """The function with 0 in place of -inf, of which finite differences can be taken."""

    def function(x: Tensor) -> Tensor:
        out = FUNCTIONS[name](x)
        return torch.where(out.isinf(), 0.0, out)

    return function


def bag_of_bags(*shape: int, scale: float = 2.0, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * scale


@pytest.fixture(params=["tree", "window"])
def route(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Small bags go through a product tree unless it is switched off; derivatives must not depend on it."""
    if request.param == "window":
        for module in ("_probability", "_all_counts"):
            monkeypatch.setattr(f"kofn.counts.{module}.LARGEST", 0)
    return str(request.param)


@pytest.mark.usefixtures("route")
@pytest.mark.parametrize("name", FUNCTIONS)
class TestDerivatives:
    def test_first(self, name: str) -> None:
        x = bag_of_bags(5, 5).requires_grad_()
        assert gradcheck(finite(name), (x,), check_forward_ad=True)

    def test_second(self, name: str) -> None:
        x = bag_of_bags(5, 5, seed=1).requires_grad_()
        assert gradgradcheck(finite(name), (x,))

    def test_func_grad_and_hessians_agree_with_autograd(self, name: str) -> None:
        x = bag_of_bags(5, 5, seed=2)

        def scalar(y: Tensor) -> Tensor:
            return finite(name)(y).cos().sum()

        y = x.clone().requires_grad_()
        (expected,) = torch.autograd.grad(scalar(y), y)
        torch.testing.assert_close(grad(scalar)(x), expected)
        curvature = torch.autograd.functional.hessian(scalar, x)
        if name != "posteriors":  # whose Hessian is a third derivative of the law: torch.autograd only
            torch.testing.assert_close(jacrev(jacrev(scalar))(x), curvature)
            torch.testing.assert_close(hessian(scalar)(x), curvature)

    def test_vmap_equals_a_loop(self, name: str) -> None:
        xs = bag_of_bags(3, 5, 5, seed=3)
        function = FUNCTIONS[name]
        torch.testing.assert_close(vmap(function)(xs), torch.stack([function(x) for x in xs]))

        def scalar(y: Tensor) -> Tensor:
            return finite(name)(y).sum()

        looped = torch.stack([grad(scalar)(x) for x in xs])
        torch.testing.assert_close(vmap(grad(scalar))(xs), looped)
        torch.testing.assert_close(grad(lambda ys: vmap(scalar)(ys).sum())(xs), looped)

    def test_a_transform_of_something_else(self, name: str) -> None:
        x, scale = bag_of_bags(5, 5, seed=4), torch.tensor(3.0, dtype=torch.float64)
        found = grad(lambda factor: factor * finite(name)(x).sum())(scale)
        torch.testing.assert_close(found, finite(name)(x).sum())


def test_vmap_over_counts_alone() -> None:
    x = bag_of_bags(7)
    each = vmap(lambda k: kofn.log_count_prob(x, k))(torch.arange(8))
    torch.testing.assert_close(each, kofn.log_count_distribution(x))


def test_vmap_over_masks_alone() -> None:
    x = bag_of_bags(3, 6)
    masks = torch.rand(4, 3, 6, generator=torch.Generator().manual_seed(1)) > 0.3
    functions: list[Callable[[Tensor], Tensor]] = [
        lambda mask: kofn.log_count_prob(x, 2, mask=mask),
        lambda mask: kofn.log_count_distribution(x, mask=mask),
        lambda mask: kofn.count_posteriors(x, 1, mask=mask),
    ]
    for function in functions:
        torch.testing.assert_close(vmap(function)(masks), torch.stack([function(mask) for mask in masks]))


@pytest.mark.parametrize("n", [20, 200])
def test_hessian_is_posterior_covariance_less_prior_variance(n: int) -> None:
    # Against the definition: Cov(y_i, y_j | S) from posteriors of the bag without i.
    x = bag_of_bags(n, seed=4)
    count = n // 3
    h = torch.autograd.functional.hessian(lambda y: kofn.log_count_prob(y, count), x)
    u = kofn.count_posteriors(x, count)
    p = torch.sigmoid(x)
    for i in (0, n - 1):
        given_one = torch.zeros(n, dtype=torch.float64)
        rest = torch.arange(n) != i
        given_one[rest] = kofn.count_posteriors(x[rest], count - 1)
        given_one[i] = 1.0
        expected = u[i] * (given_one - u)
        expected[i] -= p[i] * (1 - p[i])
        torch.testing.assert_close(h[i], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", [(150,), (2, 200), (400,)])
def test_law_derivatives_of_larger_bags(shape: tuple[int, ...]) -> None:
    x = bag_of_bags(*shape, seed=5).requires_grad_()
    weights = torch.rand(*shape[:-1], shape[-1] + 1, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    along = bag_of_bags(*shape, seed=7)
    (g,) = torch.autograd.grad((kofn.log_count_distribution(x) * weights).sum(), x, create_graph=True)
    counts = torch.arange(shape[-1] + 1)
    bags = x.unsqueeze(-2).expand(*shape[:-1], shape[-1] + 1, shape[-1])
    (expected,) = torch.autograd.grad((kofn.log_count_prob(bags, counts) * weights).sum(), x, create_graph=True)
    torch.testing.assert_close(g, expected, rtol=1e-9, atol=1e-9)
    (hv,) = torch.autograd.grad((g * along).sum(), x)
    (expected_hv,) = torch.autograd.grad((expected * along).sum(), x)
    torch.testing.assert_close(hv, expected_hv, rtol=1e-8, atol=1e-8)


def test_windows_without_upstream_weight_do_not_matter() -> None:
    x = bag_of_bags(500, scale=1.5).requires_grad_()
    weights = torch.zeros(501, dtype=torch.float64)
    weights[240:260] = 1.0
    (some,) = torch.autograd.grad((kofn.log_count_distribution(x) * weights).sum(), x)
    (each,) = torch.autograd.grad(kofn.log_count_prob(x.expand(20, -1), torch.arange(240, 260)).sum(), x)
    torch.testing.assert_close(some, each, rtol=1e-10, atol=1e-10)


def test_no_gradient_means_no_tape() -> None:
    x = bag_of_bags(4, 9).requires_grad_()
    with torch.no_grad():
        assert not kofn.log_count_prob(x, 3).requires_grad
    assert not kofn.log_count_prob(x.detach(), 3).requires_grad


def test_inside_autocast() -> None:
    x = torch.randn(3, 150, generator=torch.Generator().manual_seed(0))
    expected = kofn.log_count_prob(x, 60), kofn.log_count_distribution(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = kofn.log_count_prob(x, 60), kofn.log_count_distribution(x)
    for a, b in zip(inside, expected, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_a_retained_graph_gives_a_gradient_of_its_own_each_time(reduction: Any) -> None:
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    loss = kofn.count_loss(x, kofn.Exactly(torch.tensor([1, 2, 3])), reduction=reduction)
    ones = torch.ones_like(loss)
    (first,) = torch.autograd.grad(loss, x, ones, retain_graph=True)
    kept = first.clone()
    first.zero_()  # as an optimizer's zero_grad would
    (second,) = torch.autograd.grad(loss, x, 2 * ones, retain_graph=True)
    torch.testing.assert_close(second, 2 * kept)
    for times in (1, 2, 3):
        loss.backward(ones, retain_graph=True)
        torch.testing.assert_close(x.grad, times * kept)


MANY_GRADIENTS: dict[str, Callable[[Tensor], Tensor]] = FUNCTIONS | {
    "loss": lambda x: kofn.count_loss(x, kofn.Exactly(COUNTS.clamp(max=5))),
    "ragged loss": lambda x: kofn.count_loss(
        x.flatten(), kofn.Exactly(COUNTS.clamp(max=5)), offsets=torch.arange(6) * x.shape[-1]
    ),
    "bag effect": lambda x: kofn.CountDistribution(x, bag_effect=0.5).log_prob(COUNTS.clamp(max=5)),
    "bag effect, all": lambda x: kofn.CountDistribution(x, bag_effect=0.5).log_probs(),
}


@pytest.mark.parametrize("name", MANY_GRADIENTS)
def test_many_gradients_at_once(name: str) -> None:
    """`jacobian(vectorize=True)` and `grad(is_grads_batched=True)` failed on the C++ core, and in tables on torch."""
    x = torch.randn(5, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def f(x: Tensor) -> Tensor:
        value = MANY_GRADIENTS[name](x)
        return value.masked_fill(value == -torch.inf, 0.0)

    jacobian: Any = torch.autograd.functional.jacobian
    expected = jacobian(f, x)
    torch.testing.assert_close(jacobian(f, x, vectorize=True), expected, rtol=1e-9, atol=1e-9)
    y = x.clone().requires_grad_()
    value = f(y)
    each = torch.eye(value.numel(), dtype=torch.float64).reshape(value.numel(), *value.shape)
    (found,) = torch.autograd.grad(value, y, each, is_grads_batched=True)
    torch.testing.assert_close(found.reshape(expected.shape), expected, rtol=1e-9, atol=1e-9)


def test_a_bag_effect_says_that_it_knows_no_vmap() -> None:
    def f(x: Tensor) -> Tensor:
        return kofn.CountDistribution(x, bag_effect=0.5).log_prob(1)

    for function in (f, torch.func.grad(f)):
        with pytest.raises(NotImplementedError, match=r"`bag_effect` must be None inside torch\.func\.vmap"):
            vmap(function)(torch.zeros(3, 4))


class Wrapper(Tensor):
    """A subclass without memory of its own."""

    @staticmethod
    def __new__(cls, inside: Tensor) -> Wrapper:
        return torch.Tensor._make_wrapper_subclass(cls, inside.shape, dtype=inside.dtype)

    def __torch_dispatch__(self, *_: Any) -> Any:
        raise AssertionError


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_tensors_that_have_no_numbers_of_their_own_are_refused() -> None:
    """The C++ core was given the address 0."""
    nested = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)], layout=torch.jagged)
    for logits, words in ((nested, "got a nested one"), (Wrapper(torch.zeros(2, 3)), "got Wrapper")):
        with pytest.raises(TypeError, match=f"`logits` must be a plain torch.Tensor; {words}"):
            kofn.log_count_prob(logits, 1)
        with pytest.raises(TypeError, match=f"`logits` must be a plain torch.Tensor; {words}"):
            kofn.log_class_count_prob(logits, torch.tensor([1, 1, 1]))
    assert kofn.log_count_prob(torch.nn.Parameter(torch.zeros(2)), 1).exp().item() == pytest.approx(0.5)


def test_samples_with_a_bag_effect_are_on_the_device_of_the_logits() -> None:
    logits = torch.zeros(3, 4, device="meta")
    assert kofn.CountDistribution(logits, bag_effect=0.5).sample((2,)).device.type == "meta"
