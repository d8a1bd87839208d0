"""Draw every figure of the book again: `make figures`, or `python docs/figures/make.py`."""

from __future__ import annotations

import argparse
from pathlib import Path

import draw_animation
import draw_consistency
import draw_fitted
import draw_guides
import draw_recursion
import draw_scaling
import draw_statements
import draw_tilt
import draw_training
import torch
from drawing import LOOKS, Draw, save

FIGURES: dict[str, Draw] = {
    **draw_recursion.FIGURES,
    **draw_tilt.FIGURES,
    **draw_animation.FIGURES,
    **draw_training.FIGURES,
    **draw_statements.FIGURES,
    **draw_scaling.FIGURES,
    **draw_consistency.FIGURES,
    **draw_fitted.FIGURES,
    **draw_guides.FIGURES,
}


def main() -> None:
    """Draw them all, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which figures, all if none is named: {', '.join(FIGURES)}")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.names or FIGURES:
        for shade in LOOKS:
            print("drew", save(name, FIGURES[name], shade, options.out))


if __name__ == "__main__":
    main()
