"""The plot of a run as SVG: a small picture for each measure, over time, with the two quarters that are compared."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from html import escape

from .quarters import Change

COLUMNS, WIDTH, HEIGHT = 3, 300, 130
LEFT, TOP, BOTTOM, GAP = 46, 26, 20, 12
#: Points of a line: more than there are pixels tell nothing.
POINTS = 220
_TEXT = 'font-family="sans-serif" font-size="11" fill="#333"'
_SMALL = 'font-family="sans-serif" font-size="9" fill="#666"'


def draw(changes: Sequence[Change], *, start_s: float, end_s: float, title: str) -> str:
    rows = -(-len(changes) // COLUMNS)
    width, height = COLUMNS * (WIDTH + GAP), rows * (HEIGHT + GAP) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="10" y="18" {_TEXT} font-weight="bold">{escape(title)}</text>',
    ]
    for number, change in enumerate(changes):
        x, y = number % COLUMNS * (WIDTH + GAP), 30 + number // COLUMNS * (HEIGHT + GAP)
        parts.append(f'<g transform="translate({x},{y})">')
        parts += _panel(change, start_s, end_s)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(change: Change, start_s: float, end_s: float) -> list[str]:
    measure = change.measure
    points = _thinned(list(zip(measure.times_s, measure.values, strict=True)))
    greatest = max([value for _, value in points], default=0.0) or 1.0
    bottom = HEIGHT - BOTTOM

    def x(time_s: float) -> float:
        return LEFT + (WIDTH - LEFT) * min(1.0, time_s / end_s if end_s else 0.0)

    def y(value: float) -> float:
        return bottom - (bottom - TOP) * value / (greatest * 1.1)

    quarter_s = (end_s - start_s) / 4
    unit = f", {measure.unit}" if measure.unit else ""
    colour = "#d62728" if measure.is_judged and not change.is_flat else "#1f77b4"
    line = " ".join(f"{x(time_s):.1f},{y(value):.1f}" for time_s, value in points)
    return [
        f'<text x="{LEFT}" y="16" {_TEXT}>{escape(measure.name + unit)}</text>',
        *(
            f'<rect x="{x(since):.1f}" y="{TOP}" width="{x(until) - x(since):.1f}" height="{bottom - TOP}" '
            'fill="#f1f1e6"/>'
            for since, until in ((start_s, start_s + quarter_s), (end_s - quarter_s, end_s))
        ),
        f'<line x1="{LEFT}" y1="{bottom}" x2="{WIDTH}" y2="{bottom}" stroke="#999"/>',
        f'<text x="{LEFT - 4}" y="{y(greatest) + 3:.1f}" {_SMALL} text-anchor="end">{_short(greatest)}</text>',
        f'<text x="{LEFT - 4}" y="{bottom + 3}" {_SMALL} text-anchor="end">0</text>',
        f'<text x="{WIDTH}" y="{bottom + 13}" {_SMALL} text-anchor="end">{end_s / 60:.1f} min</text>',
        f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.2"/>',
    ]


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Medians of neighbours, where there are too many."""
    size = -(-len(points) // POINTS) or 1
    groups = [points[start : start + size] for start in range(0, len(points), size)]
    return [(group[len(group) // 2][0], statistics.median(value for _, value in group)) for group in groups]


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
