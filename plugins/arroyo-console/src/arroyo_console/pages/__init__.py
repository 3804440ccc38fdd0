"""The pages of the console, made with NiceGUI: they call `Console`, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request

    from arroyo_console.service import Console
    from arroyo_console.values import Role

__all__ = ["mount"]


def mount(app: FastAPI, console: Console, *, role_of: Callable[[Request], Role] | None = None) -> None:
    """Add the pages to an application, below all that has a route already; called once in a process.

    `role_of` says what somebody who sent a request may do; without it everybody may write. Pages hide what somebody may
    not do, and refuse it as well: a page is asked again by nobody once it is open.
    """
    from nicegui import ui

    from arroyo_console.pages.routes import add_routes

    add_routes(console, role_of)
    ui.run_with(
        app,
        title="Arroyo",
        language="en-US",
        dark=None,
        tailwind=False,
        binding_refresh_interval=None,
        reconnect_timeout=10.0,
        message_history_length=50,
        show_welcome_message=False,
        favicon=_ICON,
    )


_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#0b62c4"/>'
    '<path d="M5 11c5-5 8 5 13 1s6-2 9-1M5 18c5-5 8 5 13 1s6-2 9-1M5 25c5-5 8 5 13 1s6-2 9-1" fill="none" '
    'stroke="#fff" stroke-width="2.4" stroke-linecap="round"/></svg>'
)
