"""Small charts of numbers over time or epochs: a line, or bars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from arroyo_console.pictures.markup import number, text

#: What a chart has of a value that nobody knows: a gap.
Value = float | None


def sparkline(values: Sequence[Value], *, label: str, width: int = 96, height: int = 24) -> str:
    """A line without axes, whose words say what it shows."""
    known = [value for value in values if value is not None]
    if not known:
        return f'<span class="muted" role="img" aria-label="{text(label)}: no values yet">-</span>'
    ways = _ways(values, max(known), width, height, inset=2.0)
    return (
        f'<svg class="spark" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{text(label)}"><path d="{ways}"/></svg>'
    )


def chart(
    values: Sequence[Value],
    *,
    title: str,
    show: Callable[[float], str],
    ends: tuple[str, str],
    width: int = 300,
    height: int = 112,
    is_bars: bool = False,
) -> str:
    """A titled figure: from 0 to the greatest value, whose words stand beside the axis; `ends` are those below it."""
    known = [value for value in values if value is not None]
    if not known:
        return (
            f'<figure class="chart"><figcaption>{text(title)}</figcaption><p class="muted">no values yet</p></figure>'
        )
    top = max(known) or 1.0
    inner = height - 36
    said = f"{title}: last {show(known[-1])}, greatest {show(max(known))}, least {show(min(known))}"
    drawn = (
        _bars(values, top, width, inner) if is_bars else f'<path d="{_ways(values, top, width, inner, inset=1.0)}"/>'
    )
    return (
        f'<figure class="chart"><figcaption>{text(title)} <b>{text(show(known[-1]))}</b></figcaption>'
        f'<svg viewBox="0 -14 {width} {height - 2}" role="img" aria-label="{text(said)}">'
        f'<line class="axis" x1="0" y1="{inner}" x2="{width}" y2="{inner}"/>'
        f'<line class="rule" x1="0" y1="0" x2="{width}" y2="0"/>'
        f"{drawn}"
        f'<text x="0" y="-3">{text(show(max(known)))}</text>'
        f'<text x="0" y="{inner + 14}">{text(ends[0])}</text>'
        f'<text x="{width}" y="{inner + 14}" text-anchor="end">{text(ends[1])}</text>'
        "</svg></figure>"
    )


def _ways(values: Sequence[Value], top: float, width: int, height: int, *, inset: float) -> str:
    """Lines between values that follow each other; one alone is a short stroke."""
    step = (width - 2 * inset) / max(1, len(values) - 1)
    room = height - 2 * inset
    ways = []
    for is_known, run in groupby(enumerate(values), key=lambda each: each[1] is not None):
        if not is_known:
            continue
        points = [(inset + at * step, height - inset - room * (value or 0.0) / (top or 1.0)) for at, value in run]
        if len(points) == 1:
            points.append((points[0][0] + 2, points[0][1]))
        ways.append("M" + "L".join(f"{number(x)} {number(y)}" for x, y in points))
    return "".join(ways)


def _bars(values: Sequence[Value], top: float, width: int, height: int) -> str:
    step = width / len(values)
    thick = max(1.0, step * 0.72)
    bars = []
    for at, value in enumerate(values):
        if value:
            tall = max(1.0, height * value / top)
            bars.append(
                f'<rect x="{number(at * step)}" y="{number(height - tall)}" width="{number(min(thick, 28))}" '
                f'height="{number(tall)}"/>'
            )
    return "".join(bars)
