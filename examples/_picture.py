"""How the examples draw: pictures that read well on a light and on a dark page, written to one folder.

No background, middle tones for words and lines, and colours that a colour-blind reader can tell apart (Okabe and Ito).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
from cycler import cycler

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

__all__ = ["BLUE", "GREEN", "INK", "ORANGE", "PINK", "plt", "save"]

INK = "#7d858f"
BLUE, ORANGE, GREEN, PINK = "#2c82bf", "#d9660a", "#0a9e75", "#c76a9c"
STYLE: Any = {
    **dict.fromkeys(["text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"], INK),
    "axes.prop_cycle": cycler(color=[BLUE, ORANGE, GREEN, PINK]),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "savefig.transparent": True,
    "svg.hashsalt": "kofn",  # the same picture is the same file
}
plt.rcParams.update(STYLE)


def save(figure: Figure, name: str) -> Path:
    """Write the picture into the folder that the first argument names, else kofn-demo, and say so."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "kofn-demo")
    folder.mkdir(parents=True, exist_ok=True)
    partial, target = folder / f"{name}.part.svg", folder / f"{name}.svg"
    figure.savefig(partial, metadata={"Date": None})
    partial.replace(target)
    print(f"drew {target}")
    return target
