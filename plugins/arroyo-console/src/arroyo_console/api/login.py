"""The page on which a browser logs in: a form, without a script."""

from __future__ import annotations

from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from arroyo_console.api.server import set_cookie
from arroyo_console.safety.access import AccessRules

router = APIRouter(include_in_schema=False)

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Log in - Arroyo</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px system-ui, sans-serif; max-width: 24rem; margin: 15vh auto; padding: 0 1rem; }}
label, input, button {{ display: block; width: 100%; box-sizing: border-box; font: inherit; }}
input, button {{ margin-top: .5rem; padding: .6rem; }}
</style></head><body><main><h1>Arroyo</h1>{note}
<form method="post" action="/login"><label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button type="submit">Log in</button></form></main></body></html>"""
_MAX_FORM = 4_096


@router.get("/login")
def login_page() -> HTMLResponse:
    return _page("")


@router.post("/login")
async def log_in(request: Request) -> Response:
    rules: AccessRules = request.app.state.rules
    body = (await request.body())[:_MAX_FORM]
    token = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0].strip()
    role = rules.tokens.role_of(token)
    if role is None:
        return _page('<p role="alert">That is not a token of this server.</p>', status=401)
    response = RedirectResponse("/", status_code=303)
    set_cookie(response, rules.sessions.begin(role), is_secure=request.url.scheme == "https")
    return response


def _page(note: str, *, status: int = 200) -> HTMLResponse:
    headers = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'"}
    return HTMLResponse(_PAGE.format(note=note), status_code=status, headers=headers)
