"""Plots for the documentation, as plain SVG that follows the reader's light or dark theme."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from bench.corpus.profiles import BY_FOLDERS

WIDTH, HEIGHT = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 24, 44, 92
_STYLE = """
  svg { color: #1f2328; background: #fff; font: 12px system-ui, sans-serif }
  @media (prefers-color-scheme: dark) { svg { color: #e6edf3; background: #0d1117 } }
  text { fill: currentColor } .grid { stroke: currentColor; stroke-opacity: .15 }
  .goal { stroke: currentColor; stroke-dasharray: 2 4 }
  .line { fill: none; stroke-width: 2 } .dashed { stroke-dasharray: 6 4 }
"""
# Distinguishable in both themes and with colour blindness (Okabe and Ito).
_COLOURS = {
    "portal": "#0072b2",
    "langchain-postgres": "#d55e00",
    "langchain-postgres, iterative": "#e69f00",
    "Chroma": "#009e73",
    "LanceDB": "#cc79a7",
    "Milvus Lite": "#999999",
    "second": "#56b4e9",
}


@dataclass(frozen=True, slots=True)
class Line:
    """A series over the plot's places; None where nothing was measured."""

    name: str
    values: Sequence[float | None]
    colour: str
    is_dashed: bool = False


@dataclass(frozen=True, slots=True)
class Scale:
    """`place` maps a value to a height in the plot, 0 at the bottom and 1 at the top."""

    ticks: tuple[float, ...]
    place: Callable[[float], float]


def linear(top: float, *, bottom: float = 0.0, steps: int = 5) -> Scale:
    ticks = tuple(bottom + (top - bottom) * step / steps for step in range(steps + 1))
    return Scale(ticks, lambda value: (value - bottom) / (top - bottom))


def logarithmic(low: float, high: float) -> Scale:
    """Return a scale with ticks at 1, 2 and 5 of each decade around the range."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = [m * 10.0**e for e in range(first, last + 1) for m in (1, 2, 5)]
    bottom = max(tick for tick in every if tick <= low)
    top = min((tick for tick in every if tick >= high), default=every[-1])
    ticks = tuple(tick for tick in every if bottom <= tick <= top)
    span = math.log(top / bottom) or 1.0
    return Scale(ticks, lambda value: math.log(value / bottom) / span)


def line_plot(
    title: str,
    places: Sequence[str],
    lines: Sequence[Line],
    scale: Scale,
    *,
    unit: str,
    goals: Mapping[str, float] | None = None,
) -> str:
    """Return lines over named places, with a legend below and goals as dotted lines."""
    width, height = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM

    def x(place: int) -> float:
        return _LEFT + width * (place + 0.5) / len(places)

    def y(value: float) -> float:
        return _TOP + height * (1 - scale.place(value))

    shapes = [
        f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y(t):.1f}" y2="{y(t):.1f}"/>'
        f'<text x="{_LEFT - 8}" y="{y(t) + 4:.1f}" text-anchor="end">{t:g}</text>'
        for t in scale.ticks
    ]
    shapes += [
        f'<text x="{x(i):.1f}" y="{_TOP + height + 18}" text-anchor="middle">{escape(name)}</text>'
        for i, name in enumerate(places)
    ]
    shapes += [
        f'<line class="goal" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y(v):.1f}" y2="{y(v):.1f}"/>'
        f'<text x="{WIDTH - _RIGHT}" y="{y(v) - 4:.1f}" text-anchor="end">{escape(name)}</text>'
        for name, v in (goals or {}).items()
        if scale.ticks[0] <= v <= scale.ticks[-1]
    ]
    for line in lines:
        known = [(x(i), y(value)) for i, value in enumerate(line.values) if value is not None]
        points = " ".join(f"{px:.1f},{py:.1f}" for px, py in known)
        dashed = " dashed" if line.is_dashed else ""
        shapes.append(f'<polyline class="line{dashed}" stroke="{line.colour}" points="{points}"/>')
        shapes += [
            f'<circle r="3" fill="{line.colour}" cx="{px:.1f}" cy="{py:.1f}"/>' for px, py in known
        ]
    return _svg(title, unit, [*shapes, *_legend(lines)])


def _legend(lines: Sequence[Line]) -> list[str]:
    """Return the names of the lines, in two columns under the plot."""
    shapes = []
    for number, line in enumerate(lines):
        x = _LEFT + (number % 2) * (WIDTH - _LEFT - _RIGHT) / 2
        y = HEIGHT - _BOTTOM + 38 + (number // 2) * 16
        dashed = " dashed" if line.is_dashed else ""
        shapes.append(
            f'<line class="line{dashed}" stroke="{line.colour}" x1="{x:.0f}" x2="{x + 28:.0f}" '
            f'y1="{y}" y2="{y}"/><text x="{x + 36:.0f}" y="{y + 4}">{escape(line.name)}</text>'
        )
    return shapes


def _svg(title: str, unit: str, shapes: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}"><style>{_STYLE}</style>'
        f'<text x="{_LEFT}" y="20" font-weight="600">{escape(title)}</text>'
        f'<text x="{_LEFT}" y="{_TOP - 8}">{escape(unit)}</text>{"".join(shapes)}</svg>\n'
    )


def write_plots(figures: dict[str, Any], directory: Path) -> None:
    """Write `performance-<what>-<size>.svg` for each size."""
    directory.mkdir(parents=True, exist_ok=True)
    for size, one in figures["sizes"].items():
        plots = {"latency": latency_plot, "recall": recall_plot, "load": load_plot}
        for name, make in plots.items():
            path = directory / f"performance-{name}-{size}.svg"
            path.write_text(make(int(size), one), encoding="utf-8")


def _portal_rows(figures: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        row
        for row in figures["portal"]
        if not row["in_conversation"] and not row["profile"].endswith(BY_FOLDERS)
    ]


def _peer_lines(figures: dict[str, Any], places: Sequence[str], value: str) -> list[Line]:
    lines = []
    for name in dict.fromkeys(row["engine"] for row in figures["peers"]):
        rows = {row["profile"]: row for row in figures["peers"] if row["engine"] == name}
        kind = next(iter(rows.values()))["kind"]
        values = [rows[place][value] if place in rows else None for place in places]
        lines.append(Line(f"{name} ({kind})", values, _COLOURS[name]))
    return lines


def latency_plot(size: int, figures: dict[str, Any]) -> str:
    rows = _portal_rows(figures)
    places = [row["profile"] for row in rows]
    colour = _COLOURS["portal"]
    lines = [
        Line("portal (hybrid), p50", [row["p50_ms"] for row in rows], colour),
        Line("portal (hybrid), p95", [row["p95_ms"] for row in rows], colour, is_dashed=True),
        *_peer_lines(figures, places, "p50_ms"),
    ]
    values = [value for line in lines for value in line.values if value is not None]
    return line_plot(
        f"Latency by what is switched on, {size:,} chunks",
        places,
        lines,
        logarithmic(min(values), max(values)),
        unit="milliseconds",
        goals={"goal at any selectivity": 25},
    )


def recall_plot(size: int, figures: dict[str, Any]) -> str:
    rows = _portal_rows(figures)
    places = [row["profile"] for row in rows]
    lines = [
        Line("portal (hybrid)", [row["hybrid_recall"] for row in rows], _COLOURS["portal"]),
        Line("portal (vector leg)", [row["vector_recall"] for row in rows], _COLOURS["second"]),
        *_peer_lines(figures, places, "recall"),
    ]
    return line_plot(
        f"Recall@10 of exact by what is switched on, {size:,} chunks",
        places,
        lines,
        linear(1.0),
        unit="share of the exact ten that was found",
    )


def load_plot(size: int, figures: dict[str, Any]) -> str:
    rows = figures["load"]
    places = list(dict.fromkeys(row["profiles"] for row in rows))
    counts = list(dict.fromkeys(row["clients"] for row in rows))
    rates = {(row["profiles"], row["clients"]): row["searches_a_second"] for row in rows}
    colours = [_COLOURS["second"], _COLOURS["portal"], _COLOURS["Chroma"]]
    lines = [
        Line(
            f"{count} client{'s' * (count > 1)}",
            [rates.get((p, count)) for p in places],
            colours[i % len(colours)],
        )
        for i, count in enumerate(counts)
    ]
    top = max([400.0, *rates.values()])
    return line_plot(
        f"Searches a second, {size:,} chunks",
        places,
        lines,
        linear(100 * math.ceil(top / 100)),
        unit="searches a second",
        goals={"goal": 400},
    )
