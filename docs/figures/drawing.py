"""What all figures share: two looks, light and dark, and SVG files that come out the same every time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from cycler import cycler

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from kofn._io.atomic_write import atomic_write

WIDTH = 5.6  # inches. A phone shows two thirds of it, so text of ten points stays readable.


@dataclass(frozen=True)
class Look:
    """Colours by what they mean: words in any of them stand out from the page 4.5 to 1, and `faint` lines 3 to 1."""

    ink: str  #: text and axes
    paper: str  #: about what is behind the figure
    faint: str  #: grid lines, what is past
    model: str  #: what the model says
    label: str  #: what the label says
    third: str
    fourth: str
    fifth: str


LOOKS = {
    "light": Look("#24292f", "#ffffff", "#868f9a", "#0b6bab", "#bd5200", "#007a59", "#8a4f9e", "#8a6700"),
    "dark": Look("#e2e6ea", "#1f2129", "#727b88", "#5ab4f0", "#ff9248", "#3fcf9f", "#d79ae8", "#e3c04c"),
}
Draw = Callable[[Look], Figure | str]  # a figure of matplotlib, or an SVG as it is


def settings(look: Look) -> Any:
    """Parameters of matplotlib in one look: transparent, few lines, text as text."""
    return {
        "svg.fonttype": "none",
        "svg.hashsalt": "kofn",
        "savefig.transparent": True,
        "font.size": 10,
        "axes.titlesize": 10,
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.prop_cycle": cycler(color=[look.model, look.label, look.third, look.fourth, look.fifth]),
        "legend.frameon": False,
        "axes.edgecolor": look.faint,
        "grid.color": look.faint,
        "grid.linewidth": 0.5,
        "lines.linewidth": 1.8,
        "figure.constrained_layout.use": True,
        **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.titlecolor"), look.ink),
    }


@contextmanager
def styled(look: Look) -> Iterator[None]:
    """Matplotlib in one look, whatever some other code or a user's file has set."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(settings(look))
        yield


def save(name: str, draw: Draw, shade: str, folder: Path) -> Path:
    """Draw a figure in one look: NAME-light.svg or NAME-dark.svg."""
    path = folder / f"{name}-{shade}.svg"
    with atomic_write(path) as part, styled(LOOKS[shade]):
        drawn = draw(LOOKS[shade])
        if isinstance(drawn, str):
            part.write_text(drawn)
        else:
            drawn.savefig(part, format="svg", metadata={"Date": None})
            plt.close(drawn)
    return path


def bars(axes: Axes, pmf: Tensor, colour: str, *, above: Tensor | None = None, **options: Any) -> None:
    """A distribution on the integers from 0 on, standing on another one or on the axis."""
    bottom = 0.0 if above is None else above.tolist()
    axes.bar(range(len(pmf)), pmf.tolist(), bottom=bottom, width=0.8, color=colour, **options)


def whole_numbers(axes: Axes, last: int, step: int = 1) -> None:
    """Ticks at integers, and room for half a bar at the ends."""
    axes.set_xticks(range(0, last + 1, step))
    axes.set_xlim(-0.7, last + 0.7)
