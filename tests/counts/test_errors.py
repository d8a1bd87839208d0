"""What a user passes wrongly: each message names the argument, the rule, what came, and the cure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import kofn

X = torch.zeros(2, 3)
FLAT = torch.zeros(5)
K = torch.tensor([1, 2])
WRONG: Any = [0.0]
NAME: Any = "cuda"
O = torch.tensor([0, 2, 5])  # noqa: E741


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: kofn.log_count_prob(WRONG, 1), TypeError, "`logits` must be a torch.Tensor; got list"),
        (lambda: kofn.log_count_prob(K, 1), TypeError, "`logits` must be floating point log-odds; got torch.int64"),
        (lambda: kofn.log_count_prob(torch.tensor(1.0), 1), ValueError, "`logits` must have at least one dimension"),
        (lambda: kofn.log_count_prob(X, K.float()), TypeError, r"`counts` must be integers.*counts.long\(\)"),
        (lambda: kofn.log_count_prob(X, K > 1), TypeError, "`counts` must be integers.*torch.bool"),
        (lambda: kofn.log_count_prob(X, True), TypeError, "`counts` must be integers.*got torch.bool"),
        (lambda: kofn.log_count_prob(X, WRONG), TypeError, "`counts` must be integers.*got torch.float64"),
        (lambda: kofn.log_count_prob(X, torch.tensor([1, 2, 3])), ValueError, r"`counts`.*shape \(2,\); got.*\(3,\)"),
        (lambda: kofn.count_posteriors(X, K[None, :, None]), ValueError, r"`counts` must hold one number for each bag"),
        (lambda: kofn.log_count_between(X, K.float(), 2), TypeError, "`low` must be integers"),
        (lambda: kofn.log_count_between(X, 0, torch.ones(3).long()), ValueError, "`high` must hold one number"),
        (lambda: kofn.log_count_prob(X, K, mask=X), TypeError, r"`mask` must be a bool tensor.*mask.bool\(\)"),
        (lambda: kofn.log_count_prob(X, K, mask=WRONG), TypeError, "`mask` must be a torch.Tensor; got list"),
        (lambda: kofn.log_count_prob(X, K, mask=X[:, :2] == 0), ValueError, r"`mask` must have the shape.*\(2, 3\)"),
        (lambda: kofn.log_count_prob(FLAT, K, mask=FLAT == 0, offsets=O), ValueError, "not both be given"),
        (lambda: kofn.log_count_prob(X, K, offsets=O), ValueError, r"`logits` must be flat.*shape \(2, 3\)"),
        (lambda: kofn.log_count_prob(FLAT, K, offsets=O.float()), TypeError, "`offsets` must be int64"),
        (lambda: kofn.log_count_prob(FLAT, K, offsets=O[None]), ValueError, r"`offsets` must have shape \(bags \+ 1,\)"),
        (lambda: kofn.log_count_prob(FLAT, K, offsets=O[:0]), ValueError, r"`offsets` must have shape \(bags \+ 1,\)"),
        (lambda: kofn.log_count_prob(FLAT, K, offsets=O[:2]), ValueError, "number of instances, 5; they run from 0 to 2"),
        (lambda: kofn.log_count_prob(FLAT, K, offsets=O + 1), ValueError, "they run from 1 to 6"),
        (
            lambda: kofn.log_count_distribution(FLAT, offsets=torch.tensor([0, 4, 2, 5])),
            ValueError,
            "must not decrease; bag 1 would run from 4 to 2",
        ),
        (lambda: kofn.log_count_prob(FLAT, torch.ones(3).long(), offsets=O), ValueError, r"shape \(2,\); got shape \(3,\)"),
        (lambda: kofn.log_count_prob(X, K.to("meta")), ValueError, "`counts` must be on the device of `logits`, cpu"),
        (lambda: kofn.log_count_prob(X, K, mask=(X == 0).to("meta")), ValueError, "`mask` must be on the device"),
        (lambda: kofn.counts.use(NAME).__enter__(), ValueError, "`name` must be one of native, torch; got 'cuda'"),
    ],
)  # fmt: skip
def test_messages(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_counts_broadcast_over_bags() -> None:
    x = torch.randn(4, 2, 3)
    one = kofn.log_count_prob(x, 1)
    assert torch.equal(one, kofn.log_count_prob(x, torch.ones(4, 2).long()))
    assert torch.equal(one, kofn.log_count_prob(x, torch.ones(2).long()))
    assert torch.equal(kofn.log_count_prob(x, 1, mask=torch.ones(3).bool()), one)
