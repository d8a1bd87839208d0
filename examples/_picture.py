"""How the examples draw: pictures on white, for a light and for a dark page, written to one folder.

Words stand out from white 4.5 to 1, lines and marks 3 to 1, in colours that a colour-blind reader can tell apart.
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

INK = "#57606a"
BLUE, ORANGE, GREEN, PINK = "#2c82bf", "#d9660a", "#09916b", "#bf5d93"
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
