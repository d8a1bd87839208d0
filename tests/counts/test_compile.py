"""torch.compile and torch.export: whole graphs with first derivatives; what is not there raises, and is never zero."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from loss_cases import NO_MEAN, PER_BAG, as_dense, as_ragged, bags
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import grad, hessian, jvp, vmap

import kofn
from kofn import losses

# torch's own: it makes an instance of a function class while it traces the rule for vmap.
pytestmark = [
    pytest.mark.slow,  # the compiler
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
]
COUNTS = torch.tensor([1, 3, 5])


def logits(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    # The compiler cannot trace the validation of torch.distributions, and turns it off when it is first used.
    torch.distributions.Distribution.set_default_validate_args(False)
    yield
    torch.compiler.reset()


def with_gradient(function: Callable[..., Tensor], x: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    x = x.clone().requires_grad_()
    value = function(x, *args, **kwargs)
    value.backward()
    assert x.grad is not None
    return value.detach(), x.grad


def compiled_equals_eager(step: Callable[..., Tensor], x: Tensor, *args: Any, **kwargs: Any) -> None:
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    found, expected = with_gradient(compiled, x, *args, **kwargs), with_gradient(step, x, *args, **kwargs)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("layout", ["ragged", "masked"])
@pytest.mark.parametrize("name", [name for name in PER_BAG if name != "sum"])
def test_a_step_with_every_loss_is_one_graph(name: str, layout: str) -> None:
    loss, labels = PER_BAG[name]
    each, kept = bags(empty=name not in NO_MEAN)
    x, where = as_ragged(each) if layout == "ragged" else as_dense(each)
    kwargs = {"offsets" if layout == "ragged" else "mask": where}
    compiled_equals_eager(
        lambda z, *y, **options: loss(z * 1.5, *y, **options), x, *(label[kept] for label in labels), **kwargs
    )


def test_sums_of_values_break_the_graph() -> None:
    """How many frequencies a sum takes depends on the values."""
    x, totals = logits(3, 4), torch.tensor([4, 2, 5])

    def step(z: Tensor) -> Tensor:
        return kofn.count_loss(2 * z, kofn.Sum(totals, [1, 2, 2, 3]))

    found = with_gradient(torch.compile(step, backend="aot_eager"), x)
    torch.testing.assert_close(found, with_gradient(step, x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "loss",
    [
        lambda u: losses.pu_loss(u[:1], u[1:], 0.3),
        lambda u: losses.pu_loss(u[:1], u[1:], 0.3, match="expectation"),
        lambda u: losses.upu_loss(u[:1], u[1:], 0.3),
        lambda u: losses.nnpu_loss(u[:1], u[1:], 0.3, surrogate="sigmoid"),
        lambda u: losses.cvir_loss(u[:1], u[1:], 0.3),
        lambda u: losses.mutual_contamination_loss(u, torch.tensor([0.5, 0.1, 0.5, 0.9])),
    ],
    ids=["pu", "pu, expectation", "upu", "nnpu", "cvir", "mutual contamination"],
)
def test_losses_of_whole_batches(loss: Callable[[Tensor], Tensor]) -> None:
    compiled_equals_eager(loss, logits(4, 6))


@pytest.mark.parametrize("dynamic", [False, True])
def test_inductor_with_fixed_and_changing_shapes(dynamic: bool) -> None:
    def step(x: Tensor, counts: Tensor, offsets: Tensor) -> Tensor:
        law = kofn.log_count_distribution(x.tanh(), offsets=offsets)
        return kofn.count_loss(x * 2, kofn.Exactly(counts), offsets=offsets) - law[1]

    compiled = torch.compile(step, fullgraph=True, dynamic=dynamic)
    for sizes in ([3, 4], [5, 2, 6]):
        offsets = torch.tensor([0, *torch.tensor(sizes).cumsum(0).tolist()])
        args = torch.ones(len(sizes), dtype=torch.int64), offsets
        x = logits(sum(sizes)).float()
        found, expected = with_gradient(compiled, x, *args), with_gradient(step, x, *args)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dynamic", [False, True])
def test_torch_s_engine_is_traced_for_fixed_and_changing_shapes(dynamic: bool, backend: str) -> None:
    graphs: list[str] = []

    def listing(module: torch.fx.GraphModule, _: Any) -> torch.fx.GraphModule:
        graphs.append(module.print_readable(print_output=False))
        return module

    def step(x: Tensor, counts: Tensor) -> Tensor:
        return kofn.log_count_prob(x, counts).sum() + kofn.log_count_between(x, counts, counts + 2).sum()

    compiled = torch.compile(step, fullgraph=True, dynamic=dynamic, backend=listing)
    for b, n in ((3, 70), (4, 90)):
        x, counts = logits(b, n), torch.full((b,), n // 3)
        torch.testing.assert_close(with_gradient(compiled, x, counts), with_gradient(step, x, counts))
    assert len(graphs) == (1 if dynamic else 2)
    assert all(("torch.ops.kofn" in graph) == (backend == "native") for graph in graphs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_rounded_once(dtype: torch.dtype) -> None:
    def step(x: Tensor) -> Tensor:
        return kofn.log_count_prob(x, COUNTS).sum()

    x = logits(3, 6).to(dtype)
    found = with_gradient(torch.compile(step, fullgraph=True, backend="aot_eager"), x)
    torch.testing.assert_close(found, with_gradient(step, x), rtol=0, atol=0)


def test_offsets_are_checked_when_the_graph_runs() -> None:
    compiled = torch.compile(lambda x, o: kofn.log_count_prob(x, 1, offsets=o), fullgraph=True, backend="aot_eager")
    assert compiled(logits(5), torch.tensor([0, 2, 5])).shape == (2,)
    with pytest.raises(ValueError, match="must start at 0 and end at the number of instances, 5; they run from 0 to 9"):
        compiled(logits(5), torch.tensor([0, 2, 9]))


class Step(nn.Module):
    """A training step's loss, to be exported."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Linear(3, 1, dtype=torch.float64)

    def forward(self, x: Tensor, counts: Tensor, offsets: Tensor) -> Tensor:
        scores = self.network(x).squeeze(-1)
        return kofn.count_loss(scores, kofn.Exactly(counts), offsets=offsets) + losses.mil_loss(
            scores, counts > 0, offsets=offsets
        )


@pytest.mark.parametrize("strict", [False, True])
def test_export(strict: bool) -> None:
    step = Step()
    args = logits(7, 3), torch.tensor([1, 2]), torch.tensor([0, 3, 7])
    exported = torch.export.export(step, args, strict=strict).module()
    value, expected = exported(*args), step(*args)
    torch.testing.assert_close(value, expected)
    (found,) = torch.autograd.grad(value, exported.get_parameter("network.weight"))
    torch.testing.assert_close(found, torch.autograd.grad(expected, step.network.weight)[0])


def test_the_operators_pass_torch_s_own_checks() -> None:
    x, offsets = logits(7).requires_grad_(), torch.tensor([0, 3, 7])
    low, high = torch.tensor([1, 2]), torch.tensor([2, 3])
    flat = torch.rand(9, dtype=torch.float64)
    operators = torch.ops.kofn
    for operator, args in (
        (operators.event, (x, offsets, None, low, high, None)),
        (operators.event, (x, offsets, torch.arange(7), low, high, None)),
        (operators.event, (logits(2, 4).requires_grad_(), None, None, low, None, torch.rand(2, dtype=torch.float64))),
        (operators.all_counts, (x, offsets)),
        (operators.all_counts, (logits(2, 4).requires_grad_(), None)),
        (operators.all_counts_gradient, (x.detach(), offsets, flat)),
        (operators.posteriors, (x.detach(), offsets, None, low, None)),
    ):
        # What is not a derivative of the value alone is refused, so gradients are compared elsewhere in this file.
        torch.library.opcheck(operator.default, args, test_utils=("test_schema", "test_faketensor"))


def one_count(x: Tensor) -> Tensor:
    return kofn.log_count_prob(x, COUNTS).sum()


TRANSFORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "grad": lambda x: grad(one_count)(x),
    "grad of all counts": lambda x: grad(lambda z: kofn.log_count_distribution(z)[..., 1:3].sum())(x),
    "vmap": lambda x: vmap(lambda row: kofn.log_count_prob(row, 2))(x),
    "jvp": lambda x: jvp(one_count, (x,), (torch.ones_like(x),))[1],  # was zero
    "hessian": lambda x: hessian(lambda row: kofn.log_count_prob(row, 2))(x[0]),
    "grad of grad": lambda x: grad(lambda z: (grad(one_count)(z) ** 2).sum())(x),
    "grad of posteriors": lambda x: grad(lambda z: (kofn.count_posteriors(z, COUNTS) ** 2).sum())(x),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_inside_a_compiled_function_break_the_graph_and_stay_right(name: str) -> None:
    x = logits(3, 6)
    torch.testing.assert_close(torch.compile(TRANSFORMS[name], backend="aot_eager")(x), TRANSFORMS[name](x))
    torch.compiler.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(TRANSFORMS[name], backend="aot_eager", fullgraph=True)(x)


def test_a_forward_mode_derivative_of_a_whole_graph_raises() -> None:
    compiled = torch.compile(one_count, backend="aot_eager", fullgraph=True)
    with forward_ad.dual_level(), pytest.raises(torch._dynamo.exc.Unsupported):
        compiled(forward_ad.make_dual(logits(3, 6), torch.ones(3, 6, dtype=torch.float64)))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "function", [one_count, lambda x: kofn.log_count_distribution(x)[..., 1].sum()], ids=["one count", "all counts"]
)
def test_a_second_derivative_of_a_whole_graph_raises(function: Callable[[Tensor], Tensor], backend: str) -> None:
    x = logits(3, 6).requires_grad_()
    value = torch.compile(function, backend=backend, fullgraph=True)(x)
    (slope,) = torch.autograd.grad(value, x, create_graph=True)
    with pytest.raises(
        RuntimeError, match=r"first derivatives|double backward|not have been used|does not require grad"
    ):
        torch.autograd.grad((slope**2).sum(), x)


@pytest.mark.filterwarnings("ignore:Error detected in GeneratedBackwardFor_kofn_posteriors:UserWarning")
def test_a_derivative_of_posteriors_in_a_whole_graph_raises() -> None:
    x = logits(3, 6).requires_grad_()
    with pytest.raises(Exception, match="compiled graphs have first derivatives of log-probabilities"):
        torch.compile(lambda z: (kofn.count_posteriors(z, COUNTS) ** 2).sum(), fullgraph=True)(x).backward()
    found = torch.compile(lambda z: kofn.count_posteriors(z, COUNTS), fullgraph=True)(x.detach())
    torch.testing.assert_close(found, kofn.count_posteriors(x.detach(), COUNTS))
