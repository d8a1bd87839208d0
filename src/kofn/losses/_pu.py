"""Learning from positive and unlabelled data: the count loss, then the baselines of the paper."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from kofn import _require
from kofn.counts import CountDistribution
from kofn.targets import Distributed, Exactly, Spread, from_proportions

Surrogate = Literal["sigmoid", "logistic"]
PUReduction = Literal["none", "mean"]


def pu_loss(
    positive_logits: Tensor,
    unlabeled_logits: Tensor,
    mixture: Tensor | float,
    *,
    match: Literal["distribution", "expectation"] = "distribution",
    positive_weight: float | None = None,
    reduction: PUReduction = "mean",
) -> Tensor:
    """Count loss for unlabelled bags of which a known fraction is positive, plus cross-entropy on known positives.

    Of k instances drawn from the unlabelled data, Binomial(k, mixture) are positive. The loss is the mean over bags of

        "distribution":  KL(Binomial(k, mixture) || distribution of S), summed over counts,
        "expectation":   -log P(S = k mixture),

    plus positive_weight times the mean of softplus(-x) over the labelled positives. When k mixture is not an integer,
    its mass is shared by the two counts beside it (`kofn.targets.Spread`), so that its mean stays k mixture.

    The weight is k mixture by default. If the labels of the bag were known, its negative log-likelihood would be

        sum over its positives of softplus(-x) + sum over its negatives of softplus(x),

    and the first sum has k mixture terms on average. The labelled positives are a sample of the same distribution, so
    that k mixture times their mean estimates that sum: what the bag's count does not say of its positives is said in
    the unit of the divergence, nats of a bag. With a weight of 1 the labelled would count as one instance against k,
    and a mixture far from a half would make one class of all.

    Args:
        positive_logits: any shape, log-odds of labelled positives, at least one.
        unlabeled_logits: (k,), one bag, or (..., k), several.
        mixture: fraction of positives among the unlabelled, from 0 to 1; a number, or one for each bag.
        match: what of the binomial is matched: all of it ("CL" in the paper) or its mean ("CL-expect").
        positive_weight: factor for the labelled positives; None for k mixture, the expected number of positives in a
            bag, and at least 1, so that a mixture of 0 does not silence them.
        reduction: "mean", or "none" for one loss for each bag, of its own positives: (..., p) and (..., k) to (...).

    Returns:
        A scalar, or (...) with reduction="none", in the dtype of `unlabeled_logits`.

    Raises:
        ValueError: a mixture outside [0, 1], no positive or no unlabelled instance, an unknown match.

    Examples:
        >>> import torch, kofn
        >>> x = torch.zeros(100)  # predicts a half for each: S has the wanted binomial distribution
        >>> loss = kofn.losses.pu_loss(torch.zeros(8), x, 0.5)
        >>> torch.allclose(loss, 50 * torch.tensor(2.0).log())  # nothing but the cross-entropy of 50 positives
        True

    Reference:
        Shukla, Zeng, Ahmed, Van den Broeck. A Unified Approach to Count-Based Weakly-Supervised Learning.
        NeurIPS 2023.
    """
    _require.option("match", match, ("distribution", "expectation"))
    positives = _require_some("positive_logits", positive_logits)
    dist = CountDistribution(_require_some("unlabeled_logits", unlabeled_logits)).double()
    share = _require.fractions("mixture", dist.instance_layout.numbers("mixture", mixture))
    size = unlabeled_logits.shape[-1]
    target: Distributed | Exactly | Spread = (
        Distributed(_log_binomial(size, share))
        if match == "distribution"
        else from_proportions(share, size, rounding="spread")
    )
    weight = (size * share).clamp(min=1.0) if positive_weight is None else positive_weight
    risk: Tensor = target.loss(dist) - weight * _mean(logsigmoid(positives.double()), reduction)
    return (risk.mean() if reduction == "mean" else risk).to(unlabeled_logits.dtype)


def _mean(values: Tensor, reduction: PUReduction) -> Tensor:
    """The mean of all, or of those of each bag."""
    _require.option("reduction", reduction, ("none", "mean"))
    return values.mean() if reduction == "mean" else values.mean(-1)


def _require_some(name: str, value: object) -> Tensor:
    """Require floating point logits, at least one."""
    logits = _require.tensor(name, value)
    if not logits.is_floating_point():
        raise TypeError(f"`{name}` must be floating point log-odds; got {logits.dtype}.")
    if logits.dim() == 0 or not logits.numel():
        raise ValueError(
            f"`{name}` must hold at least one instance; got shape {tuple(logits.shape)}. "
            f"Leave out batches without any, or sample them so that none is empty."
        )
    return logits


def _log_binomial(size: int, share: Tensor) -> Tensor:
    """Logarithms of Binomial(size, share) at every count, (..., size + 1); 0 log 0 = 0."""
    s = torch.arange(size + 1, dtype=torch.float64, device=share.device)
    ways = torch.lgamma(s[-1] + 1) - torch.lgamma(s + 1) - torch.lgamma(size - s + 1)
    p = share.unsqueeze(-1)
    log_probs: Tensor = ways + torch.xlogy(s, p) + torch.special.xlog1py(size - s, -p)
    return log_probs


def mixture_proportion(prior: float, labeled_fraction: float) -> float:
    """Fraction of positives among the unlabelled, from the class prior and the fraction of data that is labelled.

    With alpha the prior and c = labeled_fraction / alpha the chance of a positive, whatever it is, to be labelled,

        mixture = (1 - c) alpha / (1 - alpha c) = (alpha - labeled_fraction) / (1 - labeled_fraction).

    Args:
        prior: fraction of positives in all the data, labelled or not, from 0 to 1.
        labeled_fraction: fraction of all the data that is labelled positive; at most `prior`, below 1.

    Raises:
        ValueError: numbers outside these bounds.

    Examples:
        >>> import kofn
        >>> kofn.mixture_proportion(0.5, 0.25)  # of 100: 25 labelled; 25 of the other 75 are positive
        0.3333333333333333

    Reference:
        Shukla, Zeng, Ahmed, Van den Broeck, NeurIPS 2023, the first proposition.
    """
    if not 0 <= prior <= 1:
        raise ValueError(f"`prior` must lie between 0 and 1; got {prior:g}.")
    if not 0 <= labeled_fraction <= prior or labeled_fraction == 1:
        raise ValueError(
            f"`labeled_fraction` must lie between 0 and the prior, {prior:g}, and below 1; got {labeled_fraction:g}. "
            f"It is the share of labelled positives in all the data, and those are positives too."
        )
    return (prior - labeled_fraction) / (1 - labeled_fraction)


def upu_loss(
    positive_logits: Tensor,
    unlabeled_logits: Tensor,
    mixture: float,
    *,
    surrogate: Surrogate = "sigmoid",
    reduction: PUReduction = "mean",
) -> Tensor:
    """uPU: the unbiased estimate of the classification risk.

        risk = mixture mean_P[l+] + (mean_U[l-] - mixture mean_P[l-]),
        l+ = l(x), l- = l(-x),  l(x) = sigmoid(-x) ("sigmoid") or softplus(-x) ("logistic").

    The part in brackets estimates the risk on negatives; it may be negative. "sigmoid" is what the authors of
    nnPU train both with. It is bounded, so that no instance outweighs the others, and l(x) + l(-x) = 1, so that the
    risk is 2 mixture mean_P[l+] + mean_U[l-] - mixture. It classifies and ranks; its scores are no log-odds, since it
    is smallest at infinite ones. "logistic" is convex in each term, its scores are log-odds, but -l- of the positives
    has no lower bound.

    Args:
        positive_logits: any shape, log-odds of labelled positives, at least one.
        unlabeled_logits: any shape, at least one.
        mixture: fraction of positives among the unlabelled.
        surrogate: the loss l of one instance.
        reduction: as in `pu_loss`.

    Returns:
        A scalar, or (...) with reduction="none", in the dtype of `unlabeled_logits`.

    Raises:
        ValueError: a mixture outside [0, 1], no positive or no unlabelled instance, an unknown surrogate.

    Examples:
        >>> import torch, kofn
        >>> kofn.losses.upu_loss(torch.zeros(3), torch.zeros(5), 0.4)
        tensor(0.5000)

    Reference:
        du Plessis, Niu, Sugiyama. Convex Formulation for Learning from Positive and Unlabeled Data. ICML 2015.
    """
    positive, negative = _risks(positive_logits, unlabeled_logits, mixture, surrogate, reduction)
    return (positive + negative).to(unlabeled_logits.dtype)


def nnpu_loss(
    positive_logits: Tensor,
    unlabeled_logits: Tensor,
    mixture: float,
    *,
    beta: float = 0.0,
    gamma: float = 1.0,
    surrogate: Surrogate = "sigmoid",
    reduction: PUReduction = "mean",
) -> Tensor:
    """nnPU: uPU whose risk on negatives is not let below -beta.

    With R+ = mixture mean_P[l+] and R- = mean_U[l-] - mixture mean_P[l-] as in `upu_loss`, the value is

        R+ + max(R-, -beta),

    and its gradient that of R+ + R- while R- >= -beta. Below, the step of the authors' Algorithm 1 is taken: the
    gradient is that of -gamma R- alone, which undoes the overfitting; that of R+ is left out.

    Args:
        positive_logits: any shape, log-odds of labelled positives, at least one.
        unlabeled_logits: any shape, at least one.
        mixture: fraction of positives among the unlabelled.
        beta: how far below zero the risk on negatives may go.
        gamma: size of the step back.
        surrogate: the loss of one instance, as in `upu_loss`; "sigmoid" is the authors'.
        reduction: as in `pu_loss`.

    Returns:
        A scalar, or (...) with reduction="none", in the dtype of `unlabeled_logits`.

    Raises:
        ValueError: a mixture outside [0, 1], no positive or no unlabelled instance, an unknown surrogate.

    Examples:
        >>> import torch, kofn
        >>> kofn.losses.nnpu_loss(torch.full((3,), 9.0), torch.full((5,), -9.0), 0.4)  # R- is -0.4: held at 0
        tensor(4.9358e-05)

    Reference:
        Kiryo, Niu, du Plessis, Sugiyama. Positive-Unlabeled Learning with Non-Negative Risk Estimator. NeurIPS 2017.
    """
    positive, negative = _risks(positive_logits, unlabeled_logits, mixture, surrogate, reduction)
    step = torch.where(negative < -beta, -gamma * negative, positive + negative)
    value = positive + negative.clamp(min=-beta)
    return (step + (value - step).detach()).to(unlabeled_logits.dtype)


def _risks(p: Tensor, u: Tensor, mixture: float, surrogate: Surrogate, reduction: PUReduction) -> tuple[Tensor, Tensor]:
    """R+ and R-, in float64."""
    _require.option("surrogate", surrogate, get_args(Surrogate))
    p = _require_some("positive_logits", p).double()
    u = _require_some("unlabeled_logits", u).double()
    share = _require.fraction("mixture", mixture)

    def loss(x: Tensor) -> Tensor:
        return -logsigmoid(x) if surrogate == "logistic" else torch.sigmoid(-x)

    on_negatives = _mean(loss(-u), reduction) - share * _mean(loss(-p), reduction)
    return share * _mean(loss(p), reduction), on_negatives


def cvir_loss(
    positive_logits: Tensor, unlabeled_logits: Tensor, mixture: float, *, reduction: PUReduction = "mean"
) -> Tensor:
    """CVIR: cross-entropy in which the unlabelled instances that look most positive are ignored.

        mean_P[softplus(-x)] + mean over kept U of softplus(x),

    kept are the (1 - mixture) k of the k unlabelled instances (the nearest integer) with the smallest softplus(x),
    which pass for negatives.

    Args:
        positive_logits: any shape, log-odds of labelled positives, at least one.
        unlabeled_logits: any shape, at least one; ranked all together, or with reduction="none" in each bag.
        mixture: fraction of positives among the unlabelled.
        reduction: as in `pu_loss`.

    Returns:
        A scalar, or (...) with reduction="none", in the dtype of `unlabeled_logits`.

    Raises:
        ValueError: a mixture outside [0, 1], no positive or no unlabelled instance.

    Examples:
        >>> import torch, kofn
        >>> x = torch.tensor([-1.0, 5.0, 0.0, 7.0])  # 5 and 7 are ignored
        >>> loss = kofn.losses.cvir_loss(torch.tensor([torch.inf]), x, 0.5)
        >>> torch.allclose(loss, torch.nn.functional.softplus(torch.tensor([-1.0, 0.0])).mean())
        True

    Reference:
        Garg, Wu, Smola, Balakrishnan, Lipton. Mixture Proportion Estimation and PU Learning: A Modern Approach.
        NeurIPS 2021.
    """
    p = _require_some("positive_logits", positive_logits).double()
    u = _require_some("unlabeled_logits", unlabeled_logits).double()
    ranked = u.flatten() if reduction == "mean" else u
    kept = round((1 - _require.fraction("mixture", mixture)) * ranked.shape[-1])
    negatives = ranked.topk(kept, largest=False).values
    risk = -_mean(logsigmoid(p), reduction) - logsigmoid(-negatives).sum(-1) / max(kept, 1)
    return risk.to(unlabeled_logits.dtype)
