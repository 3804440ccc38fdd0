"""Which page is where."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nicegui import app as nicegui_app
from nicegui import ui
from starlette.requests import Request

from arroyo_console.errors import ConsoleError
from arroyo_console.pages.doctor import doctor_page
from arroyo_console.pages.editor import editor_page
from arroyo_console.pages.frame import Site, frame, heading, html, missing
from arroyo_console.pages.installed import connector_page, installed_page
from arroyo_console.pages.live import Live
from arroyo_console.pages.pipeline import pipeline_page
from arroyo_console.pages.pipelines import pipelines_page
from arroyo_console.service import Console
from arroyo_console.values import Role

#: How long a page may ask before it is shown; what is not there by then is an error of the server.
PATIENCE_S = 60.0


def add_routes(console: Console, role_of: Callable[[Request], Role] | None) -> None:
    site = Site(console, Live(), role_of or (lambda _: Role.WRITE))
    nicegui_app.on_shutdown(site.live.close)

    @_page("/")
    async def _pipelines() -> None:
        await _whole("Pipelines", pipelines_page(site))

    @_page("/pipelines/{pipeline_id}")
    async def _pipeline(pipeline_id: str, tab: str = "") -> None:
        await _whole("Pipeline", pipeline_page(site, pipeline_id, tab))

    @_page("/editor")
    async def _new(language: str = "") -> None:
        await _whole("New pipeline", editor_page(site, None, language))

    @_page("/editor/{pipeline_id}")
    async def _edit(pipeline_id: str) -> None:
        await _whole("Edit", editor_page(site, pipeline_id, ""))

    @_page("/installed")
    async def _installed() -> None:
        await _whole("Operators", installed_page(site))

    @_page("/installed/{name}")
    async def _connector(name: str) -> None:
        await _whole(name, connector_page(site, name))

    @_page("/doctor")
    async def _doctor() -> None:
        await _whole("Doctor", doctor_page(site))


def _page(path: str) -> ui.page:
    return ui.page(path, response_timeout=PATIENCE_S)


async def _whole(title: str, page: Awaitable[None]) -> None:
    """A page; or why there is none, with a way on."""
    try:
        await page
    except ConsoleError as error:
        with frame(title):
            heading(title)
            html(missing(error))
