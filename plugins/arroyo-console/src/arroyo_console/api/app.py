"""The application that the server serves: the API, the pages, and the guard before both."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.types import ASGIApp

from arroyo_console.api import jobs, login, pipelines, server
from arroyo_console.api.problems import add_handlers
from arroyo_console.api.requests import visitor_of
from arroyo_console.safety.access import AccessRules
from arroyo_console.safety.middleware import Guard
from arroyo_console.service import Console
from arroyo_console.values import Role


def make_api(console: Console, rules: AccessRules) -> FastAPI:
    """The API without its guard. It supervises jobs from its start to its end."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await run_in_threadpool(console.start)
        yield
        await run_in_threadpool(console.stop)

    app = FastAPI(
        title="Arroyo console",
        version=version("arroyo-console"),
        summary="Pipelines and their jobs: make, run, watch, change and explain them.",
        openapi_url="/v1/openapi.json",
        # Both load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.console = console
    app.state.rules = rules
    add_handlers(app)
    for module in (server, pipelines, jobs, login):
        app.include_router(module.router)
    return app


def _role_of(request: Request) -> Role:
    visitor = visitor_of(request)
    return visitor.role if visitor is not None else Role.READ


def make_app(console: Console, rules: AccessRules, *, has_pages: bool = True) -> ASGIApp:
    """What is served."""
    app = make_api(console, rules)
    if has_pages:
        # Here: it takes a second to import.
        from arroyo_console.pages import mount

        mount(app, console, role_of=_role_of)
    return Guard(app, rules)
