"""Baselines for proportions of several classes; the count losses are those of `ClassCounts`, `MarginalClassCounts`."""

from __future__ import annotations

import torch
from torch import Tensor

from kofn import _require
from kofn.classes import ClassCountDistribution
from kofn.counts._layout import Layout
from kofn.losses._count import Reduction, reduce

STEPS = 100  # of the search for a transport, which takes about ten
LARGE = 50.0  # a log-probability, from which on the search is done in stages
CLOSE = 1e-12  # of a bag's size: how well pseudo-labels keep its proportions


def class_proportion_loss(
    logits: Tensor,
    proportions: Tensor,
    *,
    mask: Tensor | None = None,
    offsets: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Proportion Loss of several classes: cross-entropy between proportions and the mean of predicted probabilities.

        mean_jc = (1 / n) sum_i softmax(x_i)_c,
        loss_j = -sum_c y_jc log mean_jc,

    from logits, by log-sums. Of two classes it is `proportion_loss` of the difference of their logits.

    Args:
        logits: (..., n, C) unnormalised log-probabilities of the classes; (m, C) with `offsets`.
        proportions: (..., C) or (b, C) from 0 to 1 that sum to 1, or (C,) for all bags.
        mask: (..., n) bool, True where an instance exists. Only for dense logits.
        offsets: (b + 1,) int64 from 0 to m; bag j is ``logits[offsets[j]:offsets[j + 1]]``.
        reduction: "none", "mean" or "sum" over bags.

    Returns:
        A scalar, or (...) or (b,) with reduction="none"; in the dtype of `logits`. NaN for an empty bag, which has no
        mean.

    Raises:
        ValueError: proportions outside [0, 1] or with another sum; shapes that do not fit.

    Examples:
        >>> import torch, kofn
        >>> logits = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]).log()
        >>> kofn.losses.class_proportion_loss(logits, torch.tensor([1.0, 0.0, 0.0])).neg().exp()  # the mean of .5, .1
        tensor(0.3000)

    Reference:
        Ardehaly, Culotta. Co-training for Demographic Classification Using Deep Learning from Label Proportions.
        ICDM Workshops 2017.
    """
    dist = ClassCountDistribution(logits, mask=mask, offsets=offsets)
    layout = dist.instance_layout
    y = _require_shares(layout, proportions, dist.classes)
    log_mean = layout.logsumexp(_log_probs(dist)) - dist.sizes.double().log()
    # 0 log 0 = 0: a class that is not wanted says nothing, even where its logarithm is infinite.
    losses = -(y * log_mean.masked_fill(y == 0, 0.0)).sum(0)
    return reduce(losses.to(logits.dtype), reduction)


def transport_loss(
    logits: Tensor,
    proportions: Tensor,
    *,
    epsilon: float = 1.0,
    mask: Tensor | None = None,
    offsets: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Pseudo-labels by entropic optimal transport: how far predictions are from labels that keep the proportions.

        loss_j = 1/n min_Q  sum_ic q_ic (-log p_ic + epsilon log q_ic),
                 where  sum_c q_ic = 1,  sum_i q_ic = n y_jc,  p_i = softmax(x_i).

    The minimum is at the pseudo-labels q_i = softmax(log p_i / epsilon + t), with the t, one number a class, that keeps
    the proportions, and the gradient is that of the cross-entropy with them, (p - q) / n. With epsilon = 1 the loss is
    KL(Q | P) / n, and n times it is Chernoff's bound of the count loss: -log P(K = n y) is at least as large. Smaller
    values make pseudo-labels harder.

    The gradient holds the pseudo-labels fixed, as it may; a second derivative of this function would do so too, and be
    that of a cross-entropy.

    Args:
        logits: (..., n, C) unnormalised log-probabilities of the classes, finite; (m, C) with `offsets`.
        proportions: (..., C) or (b, C) from 0 to 1 that sum to 1, or (C,) for all bags.
        epsilon: weight of the entropy, above 0.
        mask: (..., n) bool, True where an instance exists. Only for dense logits.
        offsets: (b + 1,) int64 from 0 to m; bag j is ``logits[offsets[j]:offsets[j + 1]]``.
        reduction: "none", "mean" or "sum" over bags.

    Returns:
        A scalar, or (...) or (b,) with reduction="none"; in the dtype of `logits`. NaN for an empty bag.

    Raises:
        ValueError: proportions outside [0, 1] or with another sum; shapes that do not fit; an epsilon that is not
            above 0.

    Examples:
        >>> import torch, kofn
        >>> logits = torch.tensor([[0.5, 0.5], [0.5, 0.5]]).log()  # nothing tells the instances apart
        >>> kofn.losses.transport_loss(logits, torch.tensor([0.25, 0.75]))  # KL of (1/4, 3/4) from (1/2, 1/2)
        tensor(0.1308)

    Reference:
        Dulac-Arnold, Zeghidour, Cuturi, Beyer, Vert. Deep multi-class learning from label proportions. 2019, who relax
        the second constraint. Liu, Wang, Qi, Tian, Shi. Two-stage Training for Learning from Label Proportions.
        IJCAI 2021, who keep it.
    """
    _require.number("epsilon", epsilon, low=0)
    if epsilon == 0:
        raise ValueError("`epsilon` must be above 0, or pseudo-labels jump; got 0. A small one makes them hard.")
    dist = ClassCountDistribution(logits, mask=mask, offsets=offsets)
    layout = dist.instance_layout
    y = _require_shares(layout, proportions, dist.classes)
    x = layout.present(_log_probs(dist), 0.0) / epsilon
    wanted = y * dist.sizes
    with torch.no_grad():
        t = _potentials(x.detach(), wanted, layout)
    # The dual of the problem, of which t is the maximum: its derivative by t is 0, and the one by x all there is.
    value = _dual(x, t, wanted, layout)
    return reduce((epsilon * value / dist.sizes).to(logits.dtype), reduction)


def _potentials(x: Tensor, wanted: Tensor, layout: Layout) -> Tensor:
    """The t (C, ...) of each bag for which softmax(x_i + t) sums to `wanted` (C, ...) over its instances; -inf at 0.

    Of very large logits this is an assignment problem, far from any start. So they are scaled down first, and up again
    in steps, each from the solution of the last.
    """
    t = torch.zeros_like(wanted).masked_fill(wanted == 0, -torch.inf)
    scale = min(1.0, LARGE / max(float(x.abs().max()), 1.0)) if x.numel() else 1.0
    while scale < 1:
        t = _search(x * scale, t, wanted, layout)
        larger = min(1.0, 4 * scale)
        t, scale = t * (larger / scale), larger
    return _search(x, t, wanted, layout)


def _search(x: Tensor, t: Tensor, wanted: Tensor, layout: Layout) -> Tensor:
    """The maximum of the dual, which is concave in t, from a start.

    Each step takes the better of Sinkhorn's, t + log(wanted / sums), which never makes it smaller but may be slow, and
    Newton's, which is fast where it is near.
    """
    absent = wanted == 0
    close = CLOSE * wanted.sum(0)
    for _ in range(STEPS):
        scores = x + layout.spread(t)
        q = layout.present(scores.softmax(0), 0.0)
        sums = layout.sum(q)
        off = (wanted - sums).masked_fill(absent, 0.0)
        if not off.numel() or bool((off.abs().amax(0) <= close).all()):
            break
        # From sums of logarithms: a class to which nobody belongs yet would be divided by 0.
        sinkhorn = t + (wanted.log() - layout.logsumexp(scores.log_softmax(0))).masked_fill(absent, 0.0)
        newton = t + _newton_step(q, sums, off, absent, layout)
        better = _dual(x, newton, wanted, layout) > _dual(x, sinkhorn, wanted, layout)
        t = torch.where(better, newton, sinkhorn)  # a comparison with NaN is false
    return t


def _newton_step(q: Tensor, sums: Tensor, off: Tensor, absent: Tensor, layout: Layout) -> Tensor:
    """H^-1 off with H = sum_i diag(q_i) - q_i q_i^T, of which the constants, that change nothing, are made regular."""
    classes = len(q)
    rows = [layout.sum(q[c] * q) for c in range(classes)]  # a class at a time, so that memory stays that of the logits
    hessian = torch.diag_embed(sums.movedim(0, -1)) - torch.stack(rows, -1).movedim(0, -2)
    present = (~absent).double().movedim(0, -1)
    hessian = hessian + present.unsqueeze(-1) * present.unsqueeze(-2) + torch.diag_embed(1 - present)
    step, _ = torch.linalg.solve_ex(hessian, off.movedim(0, -1).unsqueeze(-1))
    return torch.as_tensor(step).squeeze(-1).movedim(-1, 0).masked_fill(absent, 0.0)


def _dual(x: Tensor, t: Tensor, wanted: Tensor, layout: Layout) -> Tensor:
    """sum_c t_c k_c - sum_i log sum_c e^(x_ic + t_c) of each bag."""
    return (t.masked_fill(wanted == 0, 0.0) * wanted).sum(0) - layout.sum((x + layout.spread(t)).logsumexp(0))


def _log_probs(dist: ClassCountDistribution) -> Tensor:
    """Log-probabilities in float64, the classes first, as layouts want the instances last; 0 where masked."""
    x = dist.instance_layout.present(dist.logits.double().movedim(-1, 0), 0.0)
    return x.log_softmax(0)


def _require_shares(layout: Layout, proportions: object, classes: int) -> Tensor:
    """Require proportions of all classes, from 0 to 1 and with the sum 1: float64, the classes first."""
    y = layout.numbers("proportions", _require.tensor("proportions", proportions), columns=(classes,))
    _require.fractions("proportions", y)
    sums = y.sum(-1)
    if not _require.holds((sums - 1).abs() <= 1e-5):
        bag = int(((sums - 1).abs() > 1e-5).flatten().nonzero()[0])
        raise ValueError(
            f"`proportions` must sum to 1 over the classes; those of bag {bag} sum to {float(sums.flatten()[bag]):g}. "
            f"Counts are divided by the size of their bag first."
        )
    return y.movedim(-1, 0)
