"""Errors as problem details (RFC 9457): what is wrong, where, and what is allowed."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from arroyo_devtools.lint.secrets import hide_secrets
from fastapi import FastAPI, Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException

from arroyo_console.errors import ConsoleError
from arroyo_console.values import Problem
from arroyo_core.errors import ArroyoError, Domain, error_domain

logger = logging.getLogger(__name__)

_TITLES = {400: "bad request", 403: "not allowed", 404: "not found", 409: "conflict", 422: "invalid", 429: "busy"}


class ProblemDetails(BaseModel):
    """What is wrong with a request."""

    model_config = ConfigDict(extra="forbid")

    title: str
    status: int
    detail: str
    #: The field or the parameter that is meant.
    where: str | None = None
    allowed: list[str] = []
    #: Mistakes in a text.
    problems: list[Problem] = []


#: For the OpenAPI document: what every operation may answer.
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemDetails, "description": text}
    for status, text in {
        400: "The request is malformed",
        401: "No token and no session",
        403: "Reading is allowed, and this changes something; or another site asks; or another server supervises",
        404: "There is no such thing",
        409: "It cannot be done in the state that something is in",
        413: "The request is too large",
        421: "The server has another name",
        422: "A field or a text is invalid",
        429: "The server is busy",
        503: "Storage or a service does not answer now",
    }.items()
}


def add_handlers(app: FastAPI) -> None:
    app.add_exception_handler(ConsoleError, _console_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(ArroyoError, _arroyo_error)
    app.add_exception_handler(Exception, _fault)


def problem_response(
    status: int, detail: str, *, headers: Mapping[str, str] | None = None, **more: Any
) -> JSONResponse:
    problem = ProblemDetails(title=_TITLES.get(status, "error"), status=status, detail=hide_secrets(detail), **more)
    return JSONResponse(
        jsonable_encoder(problem),
        status_code=status,
        media_type="application/problem+json",
        headers=dict(headers) if headers else None,
    )


async def _console_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ConsoleError)
    return problem_response(
        error.status, error.message, where=error.where, allowed=list(error.allowed), problems=list(error.problems)
    )


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
    # The value itself is not repeated: it may be a secret in the wrong field.
    return problem_response(422, f"{where}: {first['msg']}", where=where)


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return problem_response(error.status_code, str(error.detail), headers=error.headers)


async def _arroyo_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ArroyoError)
    # What a user can fix is a conflict with what is stored; else storage or a service has failed.
    return problem_response(409 if error_domain(error) is Domain.USER else 503, str(error))


async def _fault(request: Request, error: Exception) -> JSONResponse:
    logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return problem_response(500, f"{type(error).__name__}: the server's log has more")
