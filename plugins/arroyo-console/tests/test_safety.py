from __future__ import annotations

import pytest
from arroyo_console.safety.access import AccessRules, DeniedError, Request, host_name, is_loopback
from arroyo_console.safety.sessions import COOKIE
from arroyo_console.safety.tokens import Tokens, make_token, read_tokens
from arroyo_console.values import Role

from arroyo_core.errors import SetupError

WRITE, READ = "w" * 30, "r" * 30
TOKENS = Tokens.of({Role.WRITE: WRITE, Role.READ: READ})


def _request(method="GET", host="127.0.0.1:5115", client="127.0.0.1", is_websocket=False, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(method=method, headers={"host": host, **named}, client=client, is_websocket=is_websocket)


def test_on_loopback_everybody_of_this_machine_may_write():
    assert AccessRules().admit(_request()).role is Role.WRITE


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[", "localhost.evil.example:5115"])
def test_another_name_for_this_machine_is_refused(host):
    with pytest.raises(DeniedError, match="not called"):
        AccessRules().admit(_request(host=host))


@pytest.mark.parametrize("host", ["localhost:5115", "127.0.0.1", "[::1]:5115", "LOCALHOST:1"])
def test_names_of_this_machine_are_fine(host):
    assert AccessRules().admit(_request(host=host)) is not None


def test_a_name_can_be_allowed():
    rules = AccessRules(names=frozenset({"jobs.acme"}))
    assert rules.admit(_request(host="jobs.acme:80")) is not None


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE", "PUT"])
@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://[", ""])
def test_what_a_page_of_another_site_sends_is_refused(method, origin):
    with pytest.raises(DeniedError, match="another site"):
        AccessRules().admit(_request(method, origin=origin))


def test_a_browser_that_says_cross_site_is_refused_without_an_origin_too():
    with pytest.raises(DeniedError, match="another site"):
        AccessRules().admit(_request("POST", sec_fetch_site="cross-site"))
    assert AccessRules().admit(_request("POST", sec_fetch_site="same-origin", origin="http://127.0.0.1:5115"))


def test_a_websocket_of_another_site_is_refused():
    with pytest.raises(DeniedError, match="another site"):
        AccessRules().admit(_request(is_websocket=True, origin="http://evil.example"))


def test_a_token_says_its_role_and_a_wrong_one_is_refused():
    rules = AccessRules(host="0.0.0.0", tokens=TOKENS)
    assert rules.admit(_request(host="any.name", authorization=f"Bearer {WRITE}")).role is Role.WRITE
    assert rules.admit(_request(authorization=f"bearer {READ}")).role is Role.READ
    assert rules.admit(_request()) is None
    for wrong in (WRITE[:-1], WRITE + "w", "", "é", WRITE.upper()):
        with pytest.raises(DeniedError) as denied:
            rules.admit(_request(authorization=f"Bearer {wrong}"))
        assert denied.value.status == 401


def test_a_session_has_the_role_of_its_token_and_a_script_needs_the_second_secret():
    rules = AccessRules(host="0.0.0.0", tokens=TOKENS)
    session = rules.sessions.begin(Role.WRITE)
    cookie = f"{COOKIE}={session.id}; other=1"
    assert rules.admit(_request(cookie=cookie)).role is Role.WRITE
    with pytest.raises(DeniedError, match="x-csrf-token"):
        rules.admit(_request("POST", cookie=cookie))
    with pytest.raises(DeniedError, match="x-csrf-token"):
        rules.admit(_request("POST", cookie=cookie, x_csrf_token="guess"))
    assert rules.admit(_request("POST", cookie=cookie, x_csrf_token=session.csrf))
    assert rules.admit(_request("POST", cookie=cookie, origin="http://127.0.0.1:5115"))
    with pytest.raises(DeniedError, match="needs an Origin"):
        rules.admit(_request(is_websocket=True, cookie=cookie))
    rules.sessions.end(session.id)
    assert rules.admit(_request(cookie=cookie)) is None


def test_a_proxy_says_who_asks_and_nobody_else_may():
    rules = AccessRules(host="0.0.0.0", proxy_header="X-User", writers=frozenset({"ann"}))
    assert rules.admit(_request(x_user="ann")).role is Role.WRITE
    assert rules.admit(_request(x_user="bob")).role is Role.READ
    assert rules.admit(_request(x_user="")) is None
    assert rules.admit(_request(x_user="ann", client="10.0.0.9")) is None


def test_tokens_come_from_the_environment_or_from_a_file_of_this_user(tmp_path):
    path = tmp_path / "token"
    make_token(path)
    made = path.read_text().strip()
    make_token(path)
    assert path.read_text().strip() == made
    assert path.stat().st_mode & 0o777 == 0o600
    tokens, used = read_tokens({}, file=path)
    assert (tokens.role_of(made), used) == (Role.WRITE, {Role.WRITE: path})
    tokens, used = read_tokens({"ARROYO_CONSOLE_TOKEN": WRITE, "ARROYO_CONSOLE_READ_TOKEN": READ}, file=path)
    assert (tokens.role_of(WRITE), tokens.role_of(READ), tokens.role_of(made)) == (Role.WRITE, Role.READ, None)
    assert not used
    path.chmod(0o640)
    with pytest.raises(SetupError, match="others cannot read"):
        read_tokens({}, file=path)


@pytest.mark.parametrize("token", ["short", "with a space in the middle of it", "é" * 30])
def test_what_is_no_token_is_refused(token):
    with pytest.raises(SetupError, match="is not a token"):
        read_tokens({"ARROYO_CONSOLE_TOKEN": token}, file=None)


def test_one_token_cannot_have_two_roles():
    with pytest.raises(SetupError, match="must not be the same"):
        read_tokens({"ARROYO_CONSOLE_TOKEN": WRITE, "ARROYO_CONSOLE_READ_TOKEN": WRITE}, file=None)


def test_tokens_are_not_in_what_is_printed():
    assert WRITE not in repr(TOKENS)
    assert WRITE not in repr(AccessRules(tokens=TOKENS))


@pytest.mark.parametrize(
    ("host", "is_local"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("127.9.9.9", True), ("0.0.0.0", False), ("::", False),
     ("10.0.0.1", False), ("jobs.acme", False)],
)  # fmt: skip
def test_loopback_is_told_from_other_addresses(host, is_local):
    assert is_loopback(host) is is_local


def test_host_names_have_no_ports():
    assert host_name("[::1]:80") == "::1"
    assert host_name("Jobs.Acme:80") == "jobs.acme"
