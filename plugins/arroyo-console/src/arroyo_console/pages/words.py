"""Numbers with their units, and pieces of HTML: what is not `Safe` is escaped wherever it is put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from arroyo_console.pictures.markup import text
from arroyo_console.values import State
from arroyo_core.cli.formats import format_duration, format_size, format_time

#: What nobody knows.
UNKNOWN: Final = "-"

#: The class of the badge of each state.
_TONES: Final = {
    State.RUNNING: "ok",
    State.FINISHED: "ok",
    State.STARTING: "busy",
    State.STOPPING: "busy",
    State.RESTARTING: "warn",
    State.FAILED: "bad",
}


class Safe(str):
    """HTML that this distribution made."""

    __slots__ = ()


def shown(value: object) -> Safe:
    """A value as HTML: itself if it is `Safe`, else its text with nothing of it taken as HTML."""
    return value if isinstance(value, Safe) else Safe(text(value))


def joined(parts: Iterable[object], between: str = "") -> Safe:
    return Safe(text(between).join(shown(part) for part in parts))


def tag(name: str, *content: object, **attributes: object) -> Safe:
    """An element. Attributes that are None are left out; `class_` is `class`, and `aria_label` is `aria-label`."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Safe(f"<{name}{written}>{joined(content)}</{name}>")


def link(where: str, label: object, **attributes: object) -> Safe:
    return tag("a", label, href=where, **attributes)


def badge(state: State) -> Safe:
    return tag("span", state.value, class_=f"badge {_TONES.get(state, 'quiet')}")


def when(time_us: int | None) -> Safe:
    """A time as the page keeps it, relative to now; the absolute one is shown on hover."""
    if time_us is None:
        return Safe(UNKNOWN)
    absolute = format_time(time_us)
    return tag("time", absolute, datetime=absolute, title=absolute, data_us=time_us)


def rate(rows_per_s: float | None) -> str:
    return UNKNOWN if rows_per_s is None else f"{_number(rows_per_s)} rows/s"


def rows(count: int | None) -> str:
    return UNKNOWN if count is None else f"{count:,} {'row' if count == 1 else 'rows'}"


def size(count: int | None) -> str:
    return UNKNOWN if count is None else format_size(count)


def seconds(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return f"{value * 1000:,.0f} ms" if 0 < value < 1 else format_duration(value)


def share(value: float) -> str:
    return f"{value:.0%}"


def table(
    caption: str,
    heads: Sequence[str],
    lines: Sequence[Sequence[object]],
    *,
    right: Sequence[int] = (),
    ids: Sequence[str] | None = None,
) -> Safe:
    """A table that scrolls by itself where it is wider than the page; numbers stand at the `right`."""
    top = joined(tag("th", head, scope="col", class_=_side(at, right)) for at, head in enumerate(heads))
    body = joined(
        tag(
            "tr",
            *(tag("td", cell, class_=_side(at, right), data_label=heads[at]) for at, cell in enumerate(line)),
            id=None if ids is None else ids[number],
        )
        for number, line in enumerate(lines)
    )
    inner = tag("table", tag("caption", caption, class_="unseen"), tag("thead", tag("tr", top)), tag("tbody", body))
    return tag("div", inner, class_="scroll", tabindex="0", role="group", aria_label=caption)


def facts(pairs: Iterable[tuple[str, object]]) -> Safe:
    """Names with values; those without a value are left out."""
    found = [(name, value) for name, value in pairs if value not in (None, "", UNKNOWN)]
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in found), class_="facts")


def empty(what: str, then: object = "") -> Safe:
    """Where there is nothing: what that means, and what to do next."""
    return tag("div", tag("p", what), *([tag("p", then)] if then else []), class_="empty")


def loading() -> Safe:
    """Until the answer is there."""
    return tag("p", "Loading.", class_="muted", role="status")


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10 or value == 0 else f"{value:,.1f}"


def _side(at: int, right: Sequence[int]) -> str | None:
    return "right" if at in right else None
