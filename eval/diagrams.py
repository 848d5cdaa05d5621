"""Diagrams for the documentation, as plain SVG that follows the reader's light or dark theme."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

SIZE, MARGIN, BINS = 360, 48, 10

_STYLE = """
  svg { color: #1f2328; background: #fff; font: 12px system-ui, sans-serif }
  @media (prefers-color-scheme: dark) { svg { color: #e6edf3; background: #0d1117 } }
  text { fill: currentColor } .axis { stroke: currentColor; stroke-opacity: .3; fill: none }
  .ideal { stroke: currentColor; stroke-dasharray: 4 4; stroke-opacity: .5 }
  .bar { fill: #2f81f7; fill-opacity: .25 } .dot { fill: #2f81f7 }
"""


def reliability_diagram(pairs: Sequence[tuple[float, bool]], *, title: str) -> str:
    """Plot stated confidence against the share that was right; bars count the results."""
    stated = np.array([chance for chance, _ in pairs])
    right = np.array([outcome for _, outcome in pairs], float)
    places = np.minimum((stated * BINS).astype(int), BINS - 1)
    max_count = max(1, int(np.bincount(places, minlength=BINS).max()))
    side = SIZE - 2 * MARGIN
    shapes = []
    for place in range(BINS):
        chosen = places == place
        if not chosen.any():
            continue
        x, width = MARGIN + side * place / BINS, side / BINS
        height = side * chosen.sum() / max_count
        shapes.append(
            f'<rect class="bar" x="{x + 1:.1f}" y="{SIZE - MARGIN - height:.1f}" '
            f'width="{width - 2:.1f}" height="{height:.1f}"/>'
        )
        shapes.append(
            f'<circle class="dot" r="4" cx="{MARGIN + side * stated[chosen].mean():.1f}" '
            f'cy="{SIZE - MARGIN - side * right[chosen].mean():.1f}"/>'
        )
    left, bottom = MARGIN - 8, SIZE - MARGIN
    ticks = "".join(
        f'<text x="{MARGIN + side * t:.0f}" y="{bottom + 16}" text-anchor="middle">{t}</text>'
        f'<text x="{left}" y="{bottom - side * t + 4:.0f}" text-anchor="end">{t}</text>'
        for t in (0, 0.5, 1)
    )
    low, high = SIZE - MARGIN, SIZE - MARGIN - side
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}" role="img" '
        f'aria-label="{title}"><style>{_STYLE}</style>'
        f'<text x="{SIZE / 2:.0f}" y="24" text-anchor="middle" font-weight="600">{title}</text>'
        f'<rect class="axis" x="{MARGIN}" y="{MARGIN}" width="{side}" height="{side}"/>'
        f'<line class="ideal" x1="{MARGIN}" y1="{low}" x2="{MARGIN + side}" y2="{high}"/>'
        f"{''.join(shapes)}{ticks}"
        f'<text x="{SIZE / 2:.0f}" y="{SIZE - 12}" text-anchor="middle">stated confidence</text>'
        f'<text x="14" y="{SIZE / 2:.0f}" text-anchor="middle" '
        f'transform="rotate(-90 14 {SIZE / 2:.0f})">share that was relevant</text></svg>\n'
    )
