"""What a user passes wrongly: each message names the argument, the rule, what came, and the cure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.distributions import MultivariateNormal, Poisson

import kofn
from kofn import losses

X = torch.zeros(2, 3)
K = torch.tensor([1, 2])
WRONG: Any = "x"
NONE: Any = None


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: losses.llp_loss(X, torch.tensor([1, 11])), ValueError, "`counts` must lie between 0 and the bag's size; bag 1 has 3 instances and count 11"),
        (lambda: losses.llp_loss(X, torch.tensor([-1, 0])), ValueError, "bag 0 has 3 instances and count -1"),
        (lambda: losses.llp_loss(X, 2, mask=X[0] == torch.arange(3)), ValueError, "bag 0 has 1 instances and count 2"),
        (lambda: losses.llp_loss(X[0], K, offsets=torch.tensor([0, 2, 3])), ValueError, "bag 1 has 1 instances and count 2"),
        (lambda: losses.llp_loss(X, torch.tensor([0.3, 0.6])), TypeError, "`counts` must be integers"),
        (lambda: losses.llp_loss(X, torch.tensor([1, 2, 3])), ValueError, r"`counts`.*shape \(2,\); got shape \(3,\)"),
        (lambda: losses.llp_loss(WRONG, 1), TypeError, "`logits` must be a torch.Tensor; got str"),
        (lambda: losses.llp_loss(X, 1, mask=X == 0, offsets=K), ValueError, "must not both be given"),
        (lambda: kofn.count_loss(X, WRONG), TypeError, r"`target` must say something.*kofn.Exactly\(counts\)"),
        (lambda: kofn.count_loss(X, kofn.Exactly(1), weight=torch.ones(3)), ValueError, r"`weight`.*shape \(2,\); got"),
        (lambda: kofn.count_loss(X, kofn.Exactly(1), reduction=WRONG), ValueError, "`reduction` must be one of"),
        (lambda: kofn.count_loss(X, kofn.AtLeast(torch.tensor([0.5, 1]))), TypeError, "`low` must be integers"),
        (lambda: kofn.count_loss(X, kofn.OneOf(torch.ones(3, 2).long())), ValueError, "`allowed` must hold one number"),
        (lambda: kofn.count_loss(X, kofn.OneOf([0.5])), TypeError, "`allowed` must be integers"),  # type: ignore[list-item]  # wrong on purpose
        (lambda: kofn.count_loss(X, kofn.OneOf(torch.ones(3).bool())), ValueError, r"`allowed` must have an entry for each count, \(..., n \+ 1\), here \(2, 4\); got \(3,\)"),
        (lambda: kofn.count_loss(X, kofn.Distributed(torch.zeros(3))), ValueError, r"`log_probs` must have an entry for each count.*\(2, 4\)"),
        (lambda: kofn.count_loss(X, kofn.Distributed(torch.full((4,), 0.25))), ValueError, "`log_probs` must be logarithms.*bag 0 sum to 5.136.*log_softmax"),
        (lambda: kofn.count_loss(X, kofn.Noisy(NONE, torch.abs)), TypeError, "`observed` must be a number or a torch.Tensor; got NoneType"),
        (lambda: kofn.count_loss(X, kofn.Noisy(torch.ones(3), torch.abs)), ValueError, r"`observed` must hold one number for each bag"),
        (lambda: kofn.Noisy(1, WRONG), TypeError, "`noise` must be a torch.distributions distribution or a function"),
        (lambda: kofn.Noisy(1, Poisson(2.0)), ValueError, "`noise` must be a distribution on all real numbers.*Poisson is not.*log-pmf"),
        (lambda: kofn.Noisy(1, MultivariateNormal(torch.zeros(2), torch.eye(2))), ValueError, r"`noise` must be a distribution of one number; its event shape is \(2,\)"),
        (lambda: losses.proportion_loss(X, 40.0), ValueError, "`proportions` must lie between 0 and 1; got 40.*divided by 100"),
        (lambda: losses.proportion_loss(X, torch.tensor([0.5, -0.1])), ValueError, "got -0.1"),
        (lambda: losses.mil_loss(X, torch.tensor([1, 0, 1])), ValueError, "`bag_labels` must hold one number for each bag"),
        (lambda: losses.mil_loss(X, torch.tensor([1, 0]).to("meta")), ValueError, "`bag_labels` must be on the device of `logits`, cpu"),
        (lambda: losses.pu_loss(X, X, 0.5, match=WRONG), ValueError, "`match` must be one of 'distribution', 'expectation'; got 'x'"),
        (lambda: losses.upu_loss(X, X, 0.5, surrogate=WRONG), ValueError, "`surrogate` must be one of 'sigmoid', 'logistic'"),
        (lambda: losses.pu_loss(X, X, torch.full((3,), 0.5)), ValueError, "`mixture` must hold one number for each bag"),
        (lambda: kofn.targets.from_proportions(0.5, 8, rounding=WRONG), ValueError, "`rounding` must be one of 'error', 'nearest', 'spread'"),
    ],
)  # fmt: skip
def test_messages(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
