"""What kofn is measured against, each as well written as we can."""

from __future__ import annotations

import fast_poibin
import numpy as np
import torch
from scipy.stats import poisson_binom
from torch import Tensor


def algorithm_1(logits: Tensor, most: int) -> Tensor:
    """The paper's Algorithm 1: log P(S = 0..most) of bags (b, n), rows in a list, no in-place table, no dead work."""
    log_p = torch.nn.functional.logsigmoid(logits).unsqueeze(-1)
    log_q = torch.nn.functional.logsigmoid(-logits).unsqueeze(-1)
    row = logits.new_zeros(len(logits), 1)
    for p, q in zip(log_p.unbind(1), log_q.unbind(1), strict=True):
        stay, move = row + q, row + p
        pieces = [stay[:, :1], torch.logaddexp(stay[:, 1:], move[:, :-1])]
        row = torch.cat(pieces if row.shape[1] > most else [*pieces, move[:, -1:]], 1)
    return row


def algorithm_1_one_count(logits: Tensor, counts: Tensor) -> Tensor:
    """Algorithm 1 up to the largest count asked for."""
    return algorithm_1(logits, int(counts.max())).gather(1, counts.unsqueeze(-1)).squeeze(-1)


def scipy_log_probs(probs: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Values only, one bag: scipy convolves by FFT."""
    with np.errstate(divide="ignore"):
        return np.asarray(poisson_binom(probs).logpmf(counts))


def fast_poibin_log_probs(probs: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Values only, one bag: divide and conquer with FFTs, all counts at once."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(fast_poibin.PoiBin(probs).pmf[counts]))
