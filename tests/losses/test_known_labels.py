"""Labels of single instances beside the label of their bag: -log P(statement, known labels)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import kofn
from kofn.losses import CountLoss

STATEMENTS: dict[str, tuple[kofn.targets.Target, Callable[[int], bool]]] = {
    "exactly": (kofn.Exactly(3), lambda s: s == 3),
    "at least": (kofn.AtLeast(2), lambda s: s >= 2),
    "between": (kofn.Between(1, 4), lambda s: 1 <= s <= 4),
    "one of": (kofn.OneOf([0, 1, 5]), lambda s: s in (0, 1, 5)),
}


def by_enumeration(x: Tensor, known: Tensor, holds: Callable[[int], bool]) -> Tensor:
    total = torch.zeros((), dtype=torch.float64)
    for labels in itertools.product((0, 1), repeat=len(x)):
        if holds(sum(labels)) and all(k in (-1, y) for k, y in zip(known.tolist(), labels, strict=True)):
            y = torch.tensor(labels, dtype=torch.float64)
            total = total + (torch.sigmoid(x) * y + torch.sigmoid(-x) * (1 - y)).prod()
    return -total.log()


@pytest.mark.parametrize("name", STATEMENTS)
@pytest.mark.parametrize("known", [[-1] * 6, [1, -1, 0, -1, -1, -1], [1, 0, -1, -1, 0, 0], [1, 0, 0, 0, 0, 0]])
def test_it_is_the_probability_of_both(name: str, known: list[int]) -> None:
    target, holds = STATEMENTS[name]
    x = torch.randn(6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    labels = torch.tensor(known)
    expected = by_enumeration(x, labels, holds)
    if expected.isinf():
        with pytest.raises(ValueError, match="`known` must agree with the target; of bag 0"):
            kofn.count_loss(x, target, known=labels)
        assert kofn.count_loss(x, target, known=labels, weight=torch.zeros(())) == 0
        return
    torch.testing.assert_close(kofn.count_loss(x, target, known=labels), expected, rtol=1e-12, atol=1e-12)


def test_masks_offsets_copies_and_derivatives() -> None:
    x = torch.randn(2, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64).requires_grad_()
    known = torch.tensor([[1, -1, 0, 1], [-1, -1, -1, -1]])
    mask = torch.tensor([[True, True, True, False], [True] * 4])
    target = kofn.Exactly([2, 1])

    def masked(x: Tensor) -> Tensor:
        return kofn.count_loss(x, target, known=known, mask=mask, reduction="none")

    ragged = kofn.count_loss(
        torch.cat([x[0, :3], x[1]]),
        target,
        known=torch.cat([known[0, :3], known[1]]),
        offsets=torch.tensor([0, 3, 7]),
        reduction="none",
    )
    torch.testing.assert_close(masked(x), ragged)
    assert gradcheck(masked, x)
    assert gradgradcheck(masked, x)
    times = torch.tensor([2, 1, 0, 3])
    found = kofn.count_loss(x[0], kofn.Exactly(3), known=[1, -1, -1, -1], copies=times)
    long = kofn.count_loss(x[0].repeat_interleave(times), kofn.Exactly(3), known=[1, 1, -1, -1, -1, -1])
    torch.testing.assert_close(found, long)


def test_all_labels_known_is_cross_entropy() -> None:
    x = torch.randn(3, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    known = torch.tensor([[0, 1, 1, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]])
    loss = kofn.count_loss(x, kofn.Exactly(known.sum(1)), known=known, reduction="sum")
    expected = torch.nn.functional.binary_cross_entropy_with_logits(x, known.double(), reduction="sum")
    torch.testing.assert_close(loss, expected, rtol=1e-14, atol=0)


def test_messages() -> None:
    x = torch.zeros(2, 3)
    with pytest.raises(TypeError, match="`known` must be integers, -1 for a label that is not known"):
        kofn.count_loss(x, kofn.Exactly(1), known=torch.full((2, 3), torch.nan))
    with pytest.raises(ValueError, match=r"`known` must have a label for each instance, shape \(2, 3\)"):
        kofn.count_loss(x, kofn.Exactly(1), known=torch.zeros(2, dtype=torch.int64))
    with pytest.raises(ValueError, match="`known` must be labels from 0 to 1, or -1 where one is not known; got 2"):
        kofn.count_loss(x, kofn.Exactly(1), known=[0, 2, -1])
    with pytest.raises(ValueError, match="`bag_effect` must be None beside known labels"):
        kofn.count_loss(x, kofn.Exactly(1), known=[0, 1, -1], bag_effect=0.5)


def test_the_module() -> None:
    x = torch.zeros(2, 4)
    loss = CountLoss(reduction="none")
    torch.testing.assert_close(
        loss(x, kofn.Exactly(2), copies=[1, 1, 2, 2]),
        kofn.count_loss(x, kofn.Exactly(2), copies=[1, 1, 2, 2], reduction="none"),
    )


@pytest.mark.parametrize("known", [[-1] * 5, [2, -1, -1, 0, -1], [2, 1, -1, 0, -1], [0, 1, 2, 0, 2]])
@pytest.mark.parametrize("target", [kofn.ClassCounts, kofn.MarginalClassCounts])
def test_classes_of_single_instances(target: type[kofn.targets.ClassTarget], known: list[int]) -> None:
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64).requires_grad_()
    counts, told, p = torch.tensor([2, 1, 2]), torch.tensor(known), x.softmax(-1)
    joint = torch.zeros((), dtype=torch.float64)
    each = torch.zeros(3, dtype=torch.float64)
    for labels in itertools.product(range(3), repeat=5):
        if all(k in (-1, y) for k, y in zip(known, labels, strict=True)):
            weight = p[torch.arange(5), list(labels)].prod()
            hits = torch.bincount(torch.tensor(labels), minlength=3) == counts
            joint, each = joint + weight * hits.all(), each + weight * hits
    log_known = p.log()[torch.arange(5), told.clamp(min=0)][told >= 0].sum()
    expected = -joint.log() if target is kofn.ClassCounts else -((each / log_known.exp()).log().sum() + log_known)
    statement: Any = target(counts)  # type: ignore[call-arg]
    loss = kofn.count_loss(x, statement, known=told)
    torch.testing.assert_close(loss, expected)
    gradients = [torch.autograd.grad(value, x, retain_graph=True)[0] for value in (loss, expected)]
    torch.testing.assert_close(*gradients)
    # What stands under a mask is of no class, and says nothing.
    wide = torch.cat([x, torch.full((1, 3), torch.nan, dtype=torch.float64)])
    mask, wider = torch.arange(6) < 5, torch.cat([told, torch.ones(1, dtype=torch.int64)])
    masked = kofn.count_loss(wide, statement, known=wider, mask=mask)
    torch.testing.assert_close(masked, expected)
    torch.testing.assert_close(torch.autograd.grad(masked, x)[0], gradients[1])


def test_classes_that_contradict_their_counts() -> None:
    statement = kofn.ClassCounts(torch.tensor([1, 2, 0]))
    with pytest.raises(ValueError, match="`known` must agree with the target; of bag 0 known labels leave no others"):
        kofn.count_loss(torch.zeros(3, 3), statement, known=[0, 0, -1])
    with pytest.raises(ValueError, match="`known` must be labels from 0 to 2, or -1 where one is not known; got 3"):
        kofn.count_loss(torch.zeros(3, 3), statement, known=[3, 0, -1])
