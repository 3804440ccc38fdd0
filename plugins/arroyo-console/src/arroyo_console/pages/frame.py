"""What all pages have: the heading with its links, the theme, and how what cannot be done is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from nicegui import ui
from starlette.requests import Request

from arroyo_console.errors import ConsoleError
from arroyo_console.pages.live import Live
from arroyo_console.pages.words import Safe, empty, joined, link, shown, tag
from arroyo_console.service import Console
from arroyo_console.values import Problem, Role

#: How often a page asks what is new.
TICK_S = 2.0
_LINKS = (("/", "Pipelines"), ("/editor", "New pipeline"), ("/installed", "Operators"), ("/doctor", "Doctor"))
_THEMES = {"auto": None, "light": False, "dark": True}
_THEME_COOKIE = "arroyo_theme"


@dataclass(frozen=True, slots=True)
class Site:
    """What the pages are made with."""

    console: Console
    live: Live
    #: What somebody who sent this request may do.
    role_of: Callable[[Request], Role]

    def may_write(self) -> bool:
        """Of who looks at the page that is being built."""
        request = ui.context.client.request
        return request is not None and self.role_of(request) is Role.WRITE


@cache
def head() -> str:
    """The style sheet and the script of all pages."""
    sheets = [(files("arroyo_console.pictures") / "pictures.css").read_text()]
    sheets.append((files("arroyo_console.pages") / "console.css").read_text())
    script = (files("arroyo_console.pages") / "console.js").read_text()
    return f"<style>{''.join(sheets)}</style><script>{script}</script>"


@contextmanager
def frame(title: str, *, here: str = "") -> Iterator[None]:
    """A page with its heading; what is built within is its content."""
    client = ui.context.client
    ui.page_title(f"{title} - Arroyo")
    ui.add_head_html(head())
    chosen = client.request.cookies.get(_THEME_COOKIE, "auto") if client.request is not None else "auto"
    theme = ui.dark_mode(_THEMES.get(chosen))
    with ui.header().classes("top"):
        html(tag("a", "Arroyo", href="/", class_="brand"), "span")
        links = [link(where, label, aria_current="page" if where == here else None) for where, label in _LINKS]
        html(joined(links), "nav").props('aria-label="console"')
        _theme_switch(theme, chosen if chosen in _THEMES else "auto")
    content = ui.element("div").classes("content")
    ui.skip_link("Skip to the content", target=content)
    with content:
        yield


def _theme_switch(theme: ui.dark_mode, chosen: str) -> None:
    names = list(_THEMES)
    now = [chosen]

    def switch() -> None:
        now[0] = names[(names.index(now[0]) + 1) % len(names)]
        theme.value = _THEMES[now[0]]
        button.text = f"Theme: {now[0]}"
        ui.run_javascript(f"arroyoTheme({now[0]!r})")

    button = ui.button(f"Theme: {now[0]}", on_click=switch, color=None).props("flat no-caps dense").classes("theme")


def html(content: object, element: str = "div") -> ui.html:
    """What `words` made, on the page; anything else is shown as text."""
    return ui.html(shown(content), sanitize=False, tag=element)


def heading(text: str) -> None:
    html(tag("h1", text))


@contextmanager
def section(title: str, *, note: object = "") -> Iterator[None]:
    with ui.element("section").classes("card").props(f'aria-label="{_quoted(title)}"'):
        html(joined([tag("h2", title), *([tag("p", note, class_="muted")] if note else [])]))
        yield


def _quoted(text: str) -> str:
    """For props, which are parsed; titles are ours."""
    return text.replace('"', "'")


def refused(error: ConsoleError) -> str:
    """In plain words: what, where, what is allowed."""
    parts = [error.message]
    if error.where:
        parts.append(f"({error.where})")
    if error.allowed:
        parts.append(f"Allowed: {', '.join(error.allowed)}.")
    parts += [_problem(problem) for problem in error.problems]
    return " ".join(parts)


def _problem(problem: Problem) -> str:
    place = "" if problem.line is None else f"Line {problem.line}: "
    return f"{place}{problem.message}."


def missing(error: ConsoleError) -> Safe:
    """Instead of a page or a part of one that cannot be shown."""
    return empty(refused(error), link("/", "All pipelines"))


def tell(text: str, *, is_bad: bool = False) -> None:
    """A message that goes away; one about a failure stays until it is closed. Read aloud by screen readers."""
    ui.notify(
        text,
        type="negative" if is_bad else "positive",
        position="top",
        timeout=0 if is_bad else 4000,
        close_button="Close" if is_bad else False,
        multi_line=len(text) > 80,
    )


async def attempt(site: Site, call: Callable[..., object], *arguments: object, **named: object) -> bool:
    """Change something, and tell where it is refused; whether it was done."""
    try:
        await site.live.run(call, *arguments, **named)
    except ConsoleError as error:
        tell(refused(error), is_bad=True)
        return False
    return True
