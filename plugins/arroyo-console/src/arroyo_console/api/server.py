"""The server itself, what is installed, and sessions."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from arroyo_console.api.problems import RESPONSES, problem_response
from arroyo_console.api.requests import Asked, Name, SessionBody, SessionInfo, visitor_of
from arroyo_console.safety.access import AccessRules
from arroyo_console.safety.sessions import COOKIE, LIFE_S, Session
from arroyo_console.values import Connector, Finding, Function, Plugin, ServerInfo

router = APIRouter(prefix="/v1", tags=["server"], responses=RESPONSES)


@router.get("/ping")
def ping() -> dict[str, str]:
    """Whether the server is there; anybody may ask."""
    return {"pong": "arroyo-console"}


@router.get("/info")
def info(console: Asked) -> ServerInfo:
    """Its version, and whether it supervises jobs."""
    return console.info()


@router.get("/session")
def get_session(request: Request) -> SessionInfo:
    """Who asks, and the second secret of a browser's session."""
    rules: AccessRules = request.app.state.rules
    visitor = visitor_of(request)
    if visitor is None:
        return SessionInfo(needs_login=rules.needs_login)
    csrf = visitor.session.csrf if visitor.session is not None else ""
    return SessionInfo(role=visitor.role, user=visitor.user, needs_login=rules.needs_login, csrf=csrf)


@router.post("/session", response_model=SessionInfo)
def begin_session(body: SessionBody, request: Request, response: Response) -> Any:
    """Log a browser in: it gets a cookie."""
    rules: AccessRules = request.app.state.rules
    role = rules.tokens.role_of(body.token)
    if role is None:
        return problem_response(401, "the token is not one of this server's", where="token")
    session = rules.sessions.begin(role)
    set_cookie(response, session, is_secure=request.url.scheme == "https")
    return SessionInfo(role=role, needs_login=rules.needs_login, csrf=session.csrf)


@router.delete("/session", status_code=204)
def end_session(request: Request) -> Response:
    """Log out."""
    rules: AccessRules = request.app.state.rules
    visitor = visitor_of(request)
    if visitor is not None and visitor.session is not None:
        rules.sessions.end(visitor.session.id)
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, path="/")
    return response


@router.get("/connectors")
def connectors(console: Asked, kind: str | None = None) -> list[Connector]:
    """All operators that are installed; `kind` is source, operator or sink."""
    return list(console.connectors(kind=kind))


@router.get("/connectors/{name}")
def connector(name: Name, console: Asked) -> Connector:
    """One, with its settings and the JSON Schema of its config."""
    return console.connector(name)


@router.get("/udfs")
def udfs(console: Asked) -> list[Function]:
    """All user functions that are installed."""
    return list(console.functions())


@router.get("/plugins")
def plugins(console: Asked) -> list[Plugin]:
    """What is installed, and why something could not be loaded."""
    return list(console.plugins())


@router.get("/schema")
def schema(console: Asked) -> dict[str, Any]:
    """The JSON Schema of pipeline files, for editors."""
    return console.pipeline_schema()


@router.get("/doctor")
def doctor(console: Asked) -> list[Finding]:
    """Whether this machine is fit to run pipelines."""
    return list(console.doctor())


def set_cookie(response: Response, session: Session, *, is_secure: bool) -> None:
    """Not for scripts, and not sent from pages of other sites."""
    response.set_cookie(
        COOKIE, session.id, max_age=LIFE_S, path="/", httponly=True, samesite="strict", secure=is_secure
    )
