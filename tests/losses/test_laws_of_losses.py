"""What every loss obeys: batched = looped, ragged = dense, masked = absent, reductions, derivatives, dtypes."""

from __future__ import annotations

import math

import pytest
import torch
from loss_cases import LABELS, NO_MEAN, PER_BAG, SIZES, as_dense, as_ragged, bags
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, vmap

import kofn
from kofn import losses

pytestmark = pytest.mark.parametrize("name", PER_BAG)


def with_labels(name: str, *, empty: bool = True) -> tuple[list[Tensor], tuple[Tensor, ...]]:
    each, kept = bags(len(name), empty=empty and name not in NO_MEAN)
    return each, tuple(label[kept] for label in PER_BAG[name][1])


def test_ragged_equals_a_loop(name: str) -> None:
    loss, _ = PER_BAG[name]
    each, labels = with_labels(name)
    x, offsets = as_ragged(each)
    looped = torch.stack([loss(bag, *(label[j] for label in labels)) for j, bag in enumerate(each)])
    torch.testing.assert_close(loss(x, *labels, offsets=offsets, reduction="none"), looped, rtol=1e-12, atol=1e-13)


def test_masked_is_absent_and_dense_is_ragged(name: str) -> None:
    loss, _ = PER_BAG[name]
    each, labels = with_labels(name)
    x, offsets = as_ragged(each)
    x.requires_grad_()
    ragged = loss(x, *labels, offsets=offsets, reduction="none")
    (slope,) = torch.autograd.grad(ragged[ragged.isfinite()].sum(), x)
    for fill in (0.0, 700.0, math.inf, math.nan):  # whatever lies under the mask
        y, mask = as_dense(each, fill)
        y.requires_grad_()
        dense = loss(y, *labels, mask=mask, reduction="none")
        (dense_slope,) = torch.autograd.grad(dense[dense.isfinite()].sum(), y)
        torch.testing.assert_close(dense, ragged, rtol=1e-12, atol=1e-13)
        torch.testing.assert_close(dense_slope[mask], slope, rtol=1e-11, atol=1e-13)
        assert (dense_slope[~mask] == 0).all()


def test_leading_dimensions(name: str) -> None:
    loss, labels = PER_BAG[name]
    x = torch.randn(2, 3, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    flat = loss(x.flatten(0, 1), *labels, reduction="none")
    several = tuple(label.reshape(2, 3, *label.shape[1:]) for label in labels)
    torch.testing.assert_close(loss(x, *several, reduction="none"), flat.reshape(2, 3))


def test_reductions(name: str) -> None:
    loss, _ = PER_BAG[name]
    each, labels = with_labels(name, empty=False)
    x, offsets = as_ragged(each)
    each_loss = loss(x, *labels, offsets=offsets, reduction="none")
    torch.testing.assert_close(loss(x, *labels, offsets=offsets), each_loss.mean())
    torch.testing.assert_close(loss(x, *labels, offsets=offsets, reduction="sum"), each_loss.sum())
    with pytest.raises(ValueError, match="`reduction` must be one of 'none', 'mean', 'sum'; got 'average'"):
        loss(x, *labels, offsets=offsets, reduction="average")


def test_derivatives(name: str) -> None:
    loss, _ = PER_BAG[name]
    each, labels = with_labels(name, empty=False)
    y, mask = as_dense(each)
    x, offsets = as_ragged(each)
    for function, point in (
        (lambda z: loss(z, *labels, offsets=offsets, reduction="none"), x),
        (lambda z: loss(z, *labels, mask=mask, reduction="none"), y),
    ):
        assert gradcheck(lambda z, f=function: f(z).nan_to_num(posinf=0.0), (point.requires_grad_(),))
        assert gradgradcheck(lambda z, f=function: f(z).nan_to_num(posinf=0.0), (point,))


def test_per_example_gradients(name: str) -> None:
    loss, labels = PER_BAG[name]
    x = torch.randn(6, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    mapped = vmap(grad(loss))(x, *labels)
    looped = torch.stack([grad(loss)(row, *(label[j] for label in labels)) for j, row in enumerate(x)])
    torch.testing.assert_close(mapped, looped)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_computed_in_float64(name: str, dtype: torch.dtype) -> None:
    loss, _ = PER_BAG[name]
    each, labels = with_labels(name)
    x, offsets = as_ragged(each)
    small = x.to(dtype)
    value = loss(small, *labels, offsets=offsets, reduction="none")
    assert value.dtype == dtype
    wide = loss(small.double(), *labels, offsets=offsets, reduction="none")
    torch.testing.assert_close(value, wide.to(dtype), rtol=torch.finfo(dtype).eps, atol=1e-30)


@pytest.mark.parametrize("size", [50.0, 1e4, math.inf])
def test_no_nan_at_any_logit(name: str, size: float) -> None:
    loss, labels = PER_BAG[name]
    for signs in ([1.0] * 7, [-1.0] * 7, [1.0, -1.0] * 3 + [1.0], [1.0] + [-1.0] * 6):
        x = (torch.tensor(signs, dtype=torch.float64) * size).expand(6, 7).clone().requires_grad_()
        value = loss(x, *labels, reduction="none")
        (slope,) = torch.autograd.grad(value.sum(), x)
        assert not value.isnan().any()
        assert slope.isfinite().all()


def test_no_bags_and_no_instances(name: str) -> None:
    loss, labels = PER_BAG[name]
    none = tuple(label[:0] for label in labels)
    assert loss(torch.zeros(0, 4), *none, reduction="none").shape == (0,)
    assert loss(torch.zeros(0), *none, offsets=torch.tensor([0]), reduction="none").shape == (0,)
    two = tuple(label[2:3].expand(2, *label.shape[1:]) for label in labels)  # the label of the empty bag
    assert loss(torch.zeros(2, 0), *two, reduction="none").shape == (2,)


def test_both_implementations_agree(name: str) -> None:
    loss, labels = PER_BAG[name]
    x = torch.randn(6, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    value = loss(x, *labels, reduction="none")
    with kofn.counts.use("torch"):
        torch.testing.assert_close(loss(x, *labels, reduction="none"), value, rtol=1e-12, atol=1e-13)


def test_empty_bags(name: str) -> None:
    loss, labels = PER_BAG[name]
    empty = SIZES.index(0)
    value = loss(torch.zeros(0, dtype=torch.float64), *(label[empty] for label in labels))
    expected = {"at least one": 0.0, "one of": 0.0, "max": 0.0, "mil": 0.0, "exactly": 0.0, "between": 0.0}
    if name in NO_MEAN:
        assert value.isnan()
    elif name in expected:
        assert value.item() == expected[name]
    assert losses.mil_loss(torch.zeros(0), LABELS[0]).item() == math.inf
