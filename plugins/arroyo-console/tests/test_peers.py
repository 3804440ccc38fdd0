from __future__ import annotations

import os
import socket
from contextlib import closing

import httpx
import pytest
from arroyo_console.safety.access import AccessRules, DeniedError, Request
from arroyo_console.safety.peers import is_known_here, may_enter, user_of

from tests.other_user import NOBODY, try_as_other_user

from .support.serving import ServerProcess
from .support.texts import bounded

pytestmark = pytest.mark.skipif(not is_known_here(), reason="this machine does not say whose a socket is")

TEXT = bounded("mine", path="./out")
CREATE = """
import json, sys, urllib.error, urllib.request
body = json.dumps({"query": sys.argv[2], "language": "yaml", "start": False}).encode()
asked = urllib.request.Request(sys.argv[1], data=body, headers={"content-type": "application/json"})
try:
    print(urllib.request.urlopen(asked, timeout=30).status)
except urllib.error.HTTPError as error:
    print(error.code, json.loads(error.read())["detail"])
"""
SEND_AND_CLOSE = """
import json, socket, sys
body = json.dumps({"query": sys.argv[3], "language": "yaml", "start": False}).encode()
head = f"POST /v1/pipelines HTTP/1.1\\r\\nhost: 127.0.0.1\\r\\ncontent-type: application/json\\r\\n"
for _ in range(int(sys.argv[2])):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as other:
        other.sendall(f"{head}content-length: {len(body)}\\r\\n\\r\\n".encode() + body)
        port = other.getsockname()[1]
print(port)
"""


@pytest.fixture(params=["127.0.0.1", "::1"])
def listener(request):
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    if family == socket.AF_INET6 and not _has_ipv6():
        pytest.skip("this machine has no IPv6")
    with socket.create_server((request.param, 0), family=family) as made:
        yield made


def _has_ipv6():
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def test_the_client_of_a_connection_is_the_user_of_its_process(listener):
    with socket.create_connection(listener.getsockname()[:2]) as client, closing(listener.accept()[0]):
        ends = client.getsockname()[:2], listener.getsockname()[:2]
        assert user_of(*ends) == os.getuid()
        assert may_enter(*ends)


def test_a_connection_that_its_process_has_closed_belongs_to_nobody(listener):
    client = socket.create_connection(listener.getsockname()[:2])
    ends = client.getsockname()[:2], listener.getsockname()[:2]
    with closing(listener.accept()[0]):
        client.close()
        assert user_of(*ends) is None
        assert not may_enter(*ends)


def test_a_connection_of_another_user_is_theirs_and_of_nobody_once_it_is_closed():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = try_as_other_user(SEND_AND_CLOSE, listener.getsockname()[1], 1, "")
        with closing(listener.accept()[0]):
            assert not may_enter(("127.0.0.1", int(port)), listener.getsockname())


def test_without_a_connection_over_tcp_nobody_enters_where_users_are_looked_up():
    rules = AccessRules(may_enter=may_enter)
    with pytest.raises(DeniedError, match="for the user who started it"):
        rules.admit(Request(method="GET", headers={"host": "127.0.0.1"}))


def test_another_user_gets_nothing_from_a_server_on_loopback(tmp_path):
    with closing(ServerProcess(tmp_path)) as server:
        said = try_as_other_user(CREATE, f"{server.url}/v1/pipelines", TEXT)
        assert said.startswith("403 this server is for the user who started it"), (NOBODY, said)
        # Also where the other end is gone before anybody can look.
        assert try_as_other_user(SEND_AND_CLOSE, server.port, 20, TEXT)
        assert server.get("/v1/pipelines")["items"] == []
        # What they sent would have been taken from its own user.
        assert server.post("/v1/pipelines", {"query": TEXT, "language": "yaml", "start": False})


def test_a_token_lets_another_user_in(tmp_path):
    token = "t" * 30
    with closing(ServerProcess(tmp_path, environment={"ARROYO_CONSOLE_TOKEN": token})) as server:
        answer = httpx.get(f"{server.url}/v1/pipelines", headers={"authorization": f"Bearer {token}"}, timeout=30)
        assert answer.status_code == 200
        assert try_as_other_user(CREATE, f"{server.url}/v1/pipelines", TEXT).startswith("401 ")
