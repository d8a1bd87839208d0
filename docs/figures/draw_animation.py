"""The tilt in motion: an SVG that needs no script; and its end, for readers who asked for less motion."""

from __future__ import annotations

from draw_tilt import BAG, WANTED, bag, tilt_to
from drawing import Look
from torch import Tensor

import kofn

FRAMES, SECONDS = 24, 8
WIDE, HIGH, LEFT, BASE = 540, 230, 15, 190  # pixels; bars stand on the line at BASE
COLUMN, TALL = 8.4, 1000  # pixels of a count, and of probability one


def tilting(look: Look) -> str:
    """The distribution of a bag's count while its tilt grows, frame by frame, each shown in its turn."""
    return drawing(look, FRAMES)


def tilted(look: Look) -> str:
    """The last frame alone. The page chooses: inside an image, not every browser asks for the reader's wish."""
    return drawing(look, 1)


def drawing(look: Look, count: int) -> str:
    """The last so many frames."""
    logits = bag(BAG)
    end = tilt_to(logits, WANTED)
    frames, rules = [], [f".frame{{visibility:hidden;animation:{SECONDS}s step-end infinite}}"]
    for i in range(FRAMES - count, FRAMES):
        t = end * i / (FRAMES - 1)
        pmf = kofn.log_count_distribution(logits + t).exp()
        frames.append(
            f'<g class="frame" id="f{i}"><path d="{outline(pmf)}" fill="{look.model}"/>'
            f'<path d="{outline(pmf, WANTED)}" fill="{look.label}"/>'
            f'<text x="{LEFT}" y="20">t = {t:.2f}</text>'
            f'<text x="{LEFT + 100}" y="20">P~(S = {WANTED}) = {float(pmf[WANTED]):.2g}</text></g>'
        )
        # The first and the last frame stay for a while: the frames in between share the middle four fifths.
        start, stop = (100 * (0.1 + 0.65 * k / FRAMES) for k in (i, i + 1))
        start, stop = (0.0 if i == FRAMES - count else start), (100.0 if i == FRAMES - 1 else stop)
        on, off = f"{start:.2f}%{{visibility:visible}}", f"{stop:.2f}%{{visibility:hidden}}"
        rules.append(f"@keyframes k{i}{{0%{{visibility:hidden}}{on}{off}}}#f{i}{{animation-name:k{i}}}")
    ticks = "".join(f'<text x="{middle(s):.1f}" y="{BASE + 17}" class="tick">{s}</text>' for s in range(0, BAG + 1, 10))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDE}" height="{HIGH}" viewBox="0 0 {WIDE} {HIGH}">',
        "<style>",
        f"text{{font:13px 'DejaVu Sans',Verdana,sans-serif;fill:{look.ink}}}.tick{{text-anchor:middle}}",
        *(rules if count > 1 else []),
        "</style>",
        f'<path d="M{LEFT} {BASE}H{WIDE - LEFT}" stroke="{look.faint}"/>',
        ticks,
        f'<text x="{WIDE / 2}" y="{HIGH - 6}" class="tick">number of positives s</text>',
        *frames,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def middle(s: int) -> float:
    """Where the bar of a count stands."""
    return LEFT + COLUMN * (s + 0.5)


def outline(pmf: Tensor, only: int | None = None) -> str:
    """The bars of a distribution, or one of them, as a path; those too small to see are left out."""
    shown = [(s, TALL * p) for s, p in enumerate(pmf.tolist()) if TALL * p > 0.2 and (only is None or s == only)]
    width = 0.8 * COLUMN
    return "".join(f"M{middle(s) - width / 2:.1f} {BASE}v-{h:.1f}h{width:.1f}v{h:.1f}z" for s, h in shown)


FIGURES = {"tilting": tilting, "tilting-still": tilted}
