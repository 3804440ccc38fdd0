"""The chart of the page, as SVG: a line for each query, a dot for each engine, on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

#: Tell engines apart by colour and by shape.
COLOURS = {
    "arroyo": "#d62728",
    "arroyo_csv": "#ff9896",
    "structured_streaming": "#1f77b4",
    "flink": "#2ca02c",
    "bytewax": "#9467bd",
    "pathway": "#8c564b",
    "polars": "#7f7f7f",
    "duckdb": "#bcbd22",
    "pyarrow": "#17becf",
}
WIDTH, LEFT, RIGHT, ROW, RADIUS = 900, 110, 30, 34, 6
TITLE = "Events per second (logarithmic; further right is faster)"
_TEXT = 'font-family="sans-serif" font-size="13" fill="#333"'


def draw(rates: Mapping[str, Mapping[str, float]], titles: Mapping[str, str], engines: Sequence[str]) -> str:
    """By query and engine. Engines that have no rate at all are left out of the legend."""
    shown = [engine for engine in engines if any(engine in found for found in rates.values())]
    values = [rate for found in rates.values() for rate in found.values()]
    low, high = _decades(values)
    legend_rows = -(-len(shown) // 3)
    top = 50 + legend_rows * 22
    height = top + len(rates) * ROW + 50
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="24" {_TEXT} font-weight="bold">{TITLE}</text>',
        *_legend(shown, titles),
        *_axis(low, high, top, height - 40),
    ]
    for number, (query, found) in enumerate(rates.items()):
        y = top + number * ROW + ROW / 2
        parts.append(f'<text x="{LEFT - 12}" y="{y + 4:.1f}" {_TEXT} text-anchor="end">{escape(query)}</text>')
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>')
        # Ours last, so that nobody hides it.
        in_order = sorted(found, key=lambda name: name.startswith("arroyo"))
        parts += [_dot(_x(found[engine], low, high), y, engine) for engine in in_order]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """Powers of ten around all values."""
    if not values:
        return 3, 4
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _x(value: float, low: int, high: int) -> float:
    return LEFT + (math.log10(value) - low) / (high - low) * (WIDTH - LEFT - RIGHT)


def _dot(x: float, y: float, engine: str) -> str:
    colour = COLOURS.get(engine, "#000")
    if engine.startswith("arroyo"):
        points = f"{x:.1f},{y - 8:.1f} {x + 8:.1f},{y:.1f} {x:.1f},{y + 8:.1f} {x - 8:.1f},{y:.1f}"
        return f'<polygon points="{points}" fill="{colour}" stroke="white"/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}" fill="{colour}" stroke="white"/>'


def _legend(engines: Sequence[str], titles: Mapping[str, str]) -> list[str]:
    parts = []
    for number, engine in enumerate(engines):
        x, y = LEFT + number % 3 * 260, 48 + number // 3 * 22
        parts.append(_dot(x, y - 4, engine))
        parts.append(f'<text x="{x + 14}" y="{y}" {_TEXT}>{escape(titles[engine])}</text>')
    return parts


def _axis(low: int, high: int, top: int, bottom: int) -> list[str]:
    parts = []
    for power in range(low, high + 1):
        x = _x(10.0**power, low, high)
        parts.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}" stroke="#bbb" stroke-dasharray="3 3"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" {_TEXT} text-anchor="middle">{_short(power)}</text>')
    return parts


def _short(power: int) -> str:
    """A power of ten: 10 k, 1 M."""
    thousands, rest = divmod(power, 3)
    unit = ("", " k", " M", " G")[thousands] if 0 <= thousands < 4 else f"e{power - rest}"
    return f"{10**rest}{unit}"
