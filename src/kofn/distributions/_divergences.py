"""Kullback-Leibler divergences between distributions of a count, for `torch.distributions.kl_divergence`."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import Binomial, register_kl
from torch.nn.functional import pad

from kofn.counts import CountDistribution
from kofn.distributions._instances import log_odds
from kofn.distributions._poisson_binomial import PoissonBinomial


def _between_poisson_binomials(p: PoissonBinomial, q: PoissonBinomial) -> Tensor:
    width = max(p.param_shape[-1], q.param_shape[-1])
    return _divergence(p, q, _log_probs(p.logits, width), _log_probs(q.logits, width))


def _to_binomial(p: PoissonBinomial, q: Binomial) -> Tensor:
    width = p.param_shape[-1]
    return _divergence(p, q, _log_probs(p.logits, width), _log_probs(_alike(q, width), width))


def _from_binomial(p: Binomial, q: PoissonBinomial) -> Tensor:
    width = q.param_shape[-1]
    return _divergence(p, q, _log_probs(_alike(p, width), width), _log_probs(q.logits, width))


def _alike(dist: Binomial, width: int) -> Tensor:
    """Logits (..., width) of a binomial distribution's instances: `total_count` alike, then certain negatives."""
    # Not Binomial.log_prob: it makes logits of clamped probabilities, and cancels logarithms of factorials.
    by_probs = dist._param is dist.__dict__.get("probs")
    logits = (log_odds(dist.probs) if by_probs else dist.logits).unsqueeze(-1)
    exists = torch.arange(width, device=logits.device) < dist.total_count.unsqueeze(-1)
    return torch.where(exists, logits, -torch.inf)


def _log_probs(logits: Tensor, width: int) -> Tensor:
    """log P(S = s) for s = 0, ..., width in float64, whatever number of instances there is."""
    return pad(CountDistribution(logits.double()).log_probs(), (0, width - logits.shape[-1]), value=-torch.inf)


def _divergence(p: PoissonBinomial | Binomial, q: PoissonBinomial | Binomial, log_p: Tensor, log_q: Tensor) -> Tensor:
    """sum_s p(s) log(p(s) / q(s)), with 0 log(0 / q) = 0 and p log(p / 0) = inf, in logarithms throughout."""
    differ = p.total_count != q.total_count
    if bool(differ.any()):
        ours, theirs = (dist.total_count.expand(differ.shape)[differ] for dist in (p, q))
        raise ValueError(
            f"`p` and `q` must have the same total count in a Kullback-Leibler divergence; got {int(ours[0])} and "
            f"{int(theirs[0])}. Compare distributions of bags of one size."
        )
    possible = log_p > -torch.inf
    excluded = possible & (log_q == -torch.inf)
    ratio = torch.where(possible & ~excluded, log_p - log_q, 0.0)
    # A p(s) that underflows is 0 here and so is its term: p (log p - log q), not p log p - p log q, is never 0 inf.
    total = (log_p.exp() * ratio).sum(-1)
    dtype = torch.promote_types(p._param.dtype, q._param.dtype)
    return total.masked_fill(excluded.any(-1), torch.inf).to(dtype)


register_kl(PoissonBinomial, PoissonBinomial)(_between_poisson_binomials)
register_kl(PoissonBinomial, Binomial)(_to_binomial)
register_kl(Binomial, PoissonBinomial)(_from_binomial)
