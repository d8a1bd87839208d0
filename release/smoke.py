"""An installed kofn: python -I smoke.py VERSION BACKEND."""

from __future__ import annotations

import sys
from importlib import metadata

import torch

import kofn


def main(version: str, backend: str) -> None:
    """Exit with a message unless this kofn is of that version and backend, and right about four fair coins."""
    require(kofn.__version__ == metadata.version("kofn") == version, f"version {kofn.__version__}, not {version}")
    require(kofn.counts.backend() == backend, f"backend {kofn.counts.backend()}, not {backend}")
    logits = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    loss = kofn.count_loss(logits, kofn.Exactly(1))  # P(S = 1) = 4 / 16, and each is positive with probability 1 / 4
    require(abs(loss.neg().exp().item() - 0.25) < 1e-14, f"loss {loss.item()}")
    (gradient,) = torch.autograd.grad(loss, logits)
    require(torch.allclose(gradient, torch.full_like(gradient, 0.25)), f"gradient {gradient}")
    print(f"kofn {version} on Python {sys.version.split()[0]}, torch {torch.__version__}: {backend} backend")


def require(condition: bool, otherwise: str) -> None:
    """Require that something holds of the installed library."""
    if not condition:
        sys.exit(f"{kofn.__file__}: {otherwise}")


if __name__ == "__main__":
    main(*sys.argv[1:])
