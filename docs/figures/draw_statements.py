"""One distribution and what three kinds of label say of it; a noisy count and what it leaves of a distribution."""

from __future__ import annotations

import matplotlib.pyplot as plt
import torch
from drawing import WIDTH, Look, bars
from matplotlib.figure import Figure
from torch import Tensor

import kofn

BAG, COUNT, MIXTURE = 12, 4, 0.3
RELEASED, SCALE = 9, 1.5


def bag(bias: float) -> tuple[Tensor, Tensor]:
    """Logits of twelve instances and the distribution of their count."""
    logits = torch.randn(BAG, generator=torch.Generator().manual_seed(4), dtype=torch.float64) + bias
    return logits, kofn.log_count_distribution(logits).exp()


def three_statements(look: Look) -> Figure:
    """The same bars three times; the shaded ones make the statement true."""
    logits, pmf = bag(-2.0)
    binomial = torch.distributions.Binomial(BAG, torch.tensor(MIXTURE, dtype=torch.float64))
    target = binomial.log_prob(torch.arange(BAG + 1.0, dtype=torch.float64))
    exactly = -kofn.count_loss(logits, kofn.Exactly(COUNT))
    some = -kofn.count_loss(logits, kofn.AtLeast(1))
    divergence = kofn.count_loss(logits, kofn.Distributed(target))
    titles = (
        f"LLP: exactly {COUNT} are positive.  P = {float(exactly.exp()):.3f}, loss {-float(exactly):.2f}",
        f"MIL: at least one is.  P = {float(some.exp()):.3f}, loss {-float(some):.2f}",
        f"PU: each is, with chance {MIXTURE:g}.  loss = KL = {float(divergence):.2f}",
    )
    chosen = (torch.arange(BAG + 1) == COUNT, torch.arange(BAG + 1) >= 1)
    figure, panels = plt.subplots(3, 1, figsize=(WIDTH, 5.4), sharex=True, sharey=True)
    for panel, title in zip(panels, titles, strict=True):
        panel.set_title(title)
        panel.set(xticks=range(BAG + 1), xlim=(-0.7, BAG + 0.7), ylim=(0, 0.34), ylabel="P(S = s)")
    for panel, which in zip(panels, chosen, strict=False):
        bars(panel, pmf * ~which, look.faint)
        bars(panel, pmf * which, look.label)
    bars(panels[2], pmf, look.faint, label="the model's distribution of S")
    panels[2].step(
        range(BAG + 1),
        target.exp().tolist(),
        where="mid",
        color=look.label,
        label=f"the label's distribution: Binomial({BAG}, {MIXTURE:g})",
    )
    panels[2].legend(loc="upper right")
    panels[2].set_xlabel("number of positives s")
    return figure


def noisy(look: Look) -> Figure:
    """A released count, what the noise makes of it, and what is left of the distribution."""
    _, pmf = bag(-1.2)
    noise = kofn.targets.DiscreteLaplace(SCALE)(RELEASED - torch.arange(BAG + 1.0, dtype=torch.float64)).exp()
    joint = pmf * noise
    figure, panels = plt.subplots(3, 1, figsize=(WIDTH, 4.8), sharex=True)
    rows = (
        (pmf, look.model, "the model's distribution of S"),
        (noise, look.third, f"P(released {RELEASED} | S = s): discrete Laplace noise, scale {SCALE:g}"),
        (joint / joint.sum(), look.label, f"both: P(S = s | released {RELEASED})"),
    )
    for panel, (values, colour, title) in zip(panels, rows, strict=True):
        bars(panel, values, colour)
        panel.set_title(title)
        panel.axvline(RELEASED, color=look.ink, linestyle=":", linewidth=1)
        panel.set(xticks=range(BAG + 1), xlim=(-0.7, BAG + 0.7))
    panels[2].set_xlabel("number of positives s")
    return figure


FIGURES = {"statements": three_statements, "noise": noisy}
