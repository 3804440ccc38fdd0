"""A schema registry on a loopback port: subjects, versions, numbers, references, compatibility, authentication.

Over the REST API that Confluent documents. Avro schemas are compared; of other kinds any version is compatible.
"""

from __future__ import annotations

import itertools
import json
import re
import ssl
import sys
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from arroyo_formats.avro.resolution import resolve
from arroyo_formats.avro.schema import SchemaError, parse

#: Each registry has a path of its own: a process keeps schemas by URL, and a later registry may get the port of an
#: earlier one.
_paths = (f"/registry-{number}" for number in itertools.count(1))


@dataclass
class RefusalError(Exception):
    status: int
    code: int
    message: str


@dataclass
class RegistryState:
    """What the registry has, and how it behaves."""

    #: By number: kind, text, references.
    schemas: list[dict[str, Any]] = field(default_factory=list)
    #: By subject the numbers of its versions.
    subjects: dict[str, list[int]] = field(default_factory=dict)
    compatibility: str = "BACKWARD"
    of_subjects: dict[str, str] = field(default_factory=dict)
    #: As `Authorization` has to be; empty where anybody may ask.
    authorization: str = ""
    #: So many requests are answered with this status.
    failures: list[int] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    url: str = ""

    def require_basic(self, user: str, password: str) -> None:
        self.authorization = "Basic " + b64encode(f"{user}:{password}".encode()).decode()

    def require_token(self, token: str) -> None:
        self.authorization = f"Bearer {token}"

    def count(self, method: str, path: str) -> int:
        return sum(asked == (method, path) for asked in self.requests)

    def add(self, subject: str, schema: Any, kind: str = "AVRO", references: list[dict[str, Any]] | None = None) -> int:
        """Add a schema without any question about compatibility."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        entry = {"schemaType": kind, "schema": text, "references": references or []}
        if entry not in self.schemas:
            self.schemas.append(entry)
        number = self.schemas.index(entry) + 1
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number


def _answer(state: RegistryState, method: str, path: str, query: dict[str, list[str]], body: Any) -> Any:
    for pattern, verb, call in ROUTES:
        match = re.fullmatch(pattern, path)
        if match and verb == method:
            return call(state, [unquote(part) for part in match.groups()], query, body)
    raise RefusalError(404, 404, f"HTTP 404 Not Found: {path}")


def _by_id(state: RegistryState, parts: list[str], query: Any, body: Any) -> Any:
    number = int(parts[0])
    if not 1 <= number <= len(state.schemas):
        raise RefusalError(404, 40403, f"Schema {number} not found")
    entry = state.schemas[number - 1]
    # As the original does: Avro is what it is unless it says otherwise.
    kind = {} if entry["schemaType"] == "AVRO" else {"schemaType": entry["schemaType"]}
    return {"schema": entry["schema"], "references": entry["references"], **kind}


def _versions(state: RegistryState, subject: str) -> list[int]:
    if subject not in state.subjects:
        raise RefusalError(404, 40401, f"Subject '{subject}' not found.")
    return state.subjects[subject]


def _version(state: RegistryState, parts: list[str], query: Any, body: Any) -> Any:
    subject, wanted = parts
    versions = _versions(state, subject)
    version = len(versions) if wanted == "latest" else int(wanted)
    if not 1 <= version <= len(versions):
        raise RefusalError(404, 40402, f"Version {wanted} not found.")
    number = versions[version - 1]
    return {"subject": subject, "version": version, "id": number, **_by_id(state, [str(number)], query, body)}


def _entry(body: Any) -> dict[str, Any]:
    kind = body.get("schemaType", "AVRO")
    return {"schemaType": kind, "schema": body["schema"], "references": body.get("references", [])}


def _lookup(state: RegistryState, parts: list[str], query: Any, body: Any) -> Any:
    (subject,) = parts
    for version, number in enumerate(_versions(state, subject), 1):
        if state.schemas[number - 1] == _entry(body):
            return {"subject": subject, "version": version, "id": number, "schema": body["schema"]}
    raise RefusalError(404, 40403, "Schema not found")


def _register(state: RegistryState, parts: list[str], query: Any, body: Any) -> Any:
    (subject,) = parts
    problems = _problems(state, subject, _entry(body))
    if problems:
        raise RefusalError(409, 409, f"Schema being registered is incompatible with an earlier schema: {problems}")
    return {"id": state.add(subject, body["schema"], body.get("schemaType", "AVRO"), body.get("references"))}


def _check(state: RegistryState, parts: list[str], query: Any, body: Any) -> Any:
    (subject,) = parts
    _versions(state, subject)
    problems = _problems(state, subject, _entry(body))
    return {"is_compatible": not problems, "messages": problems if query.get("verbose") else []}


def _config(state: RegistryState, parts: list[str], query: Any, body: Any) -> Any:
    if not parts:
        return {"compatibilityLevel": state.compatibility}
    if parts[0] in state.of_subjects:
        return {"compatibilityLevel": state.of_subjects[parts[0]]}
    if query.get("defaultToGlobal") == ["true"]:
        return {"compatibilityLevel": state.compatibility}
    raise RefusalError(404, 40408, f"Subject '{parts[0]}' does not have subject-level compatibility configured")


def _problems(state: RegistryState, subject: str, entry: dict[str, Any]) -> list[str]:
    """Why a schema cannot be the next version."""
    if entry["schemaType"] != "AVRO":
        return []
    try:
        new = _parsed(state, entry)
    except SchemaError as error:
        raise RefusalError(422, 42201, f"Invalid schema: {error}") from error
    level = state.of_subjects.get(subject, state.compatibility)
    versions = state.subjects.get(subject, [])
    compared = versions if level.endswith("_TRANSITIVE") else versions[-1:]
    problems = []
    for number in compared:
        old = _parsed(state, state.schemas[number - 1])
        pairs = {"BACKWARD": [(old, new)], "FORWARD": [(new, old)], "FULL": [(old, new), (new, old)], "NONE": []}
        for writer, reader in pairs[level.removesuffix("_TRANSITIVE")]:
            try:
                resolve(writer, reader)
            except SchemaError as error:
                problems.append(str(error))
    return problems


def _parsed(state: RegistryState, entry: dict[str, Any]) -> Any:
    texts = [
        _version(state, [each["subject"], str(each["version"])], {}, None)["schema"] for each in entry["references"]
    ]
    return parse(entry["schema"], texts)


ROUTES: list[tuple[str, str, Callable[..., Any]]] = [
    (r"/schemas/ids/(-?\d+)", "GET", _by_id),
    (r"/subjects/([^/]+)/versions/([^/]+)", "GET", _version),
    (r"/subjects/([^/]+)/versions", "POST", _register),
    (r"/subjects/([^/]+)", "POST", _lookup),
    (r"/compatibility/subjects/([^/]+)/versions", "POST", _check),
    (r"/config", "GET", _config),
    (r"/config/([^/]+)", "GET", _config),
]


def _handler(state: RegistryState, root: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def log_message(self, *args: Any) -> None:
            """Nothing: tests ask `requests`."""

        def _serve(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            url = urlsplit(self.path)
            path = url.path.removeprefix(root)
            state.requests.append((self.command, path))
            if state.failures:
                return self._send(state.failures.pop(0), {"error_code": 50001, "message": "not now"})
            if state.authorization and self.headers.get("Authorization") != state.authorization:
                return self._send(401, {"error_code": 401, "message": "Unauthorized"})
            try:
                self._send(200, _answer(state, self.command, path, parse_qs(url.query), body))
            except RefusalError as refusal:
                self._send(refusal.status, {"error_code": refusal.code, "message": refusal.message})

        def _send(self, status: int, answer: Any) -> None:
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(content)
            self.close_connection = True

    return Handler


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Not printed where a client does not trust the certificate and hangs up: that is what tests are about."""
        if not isinstance(sys.exception(), ssl.SSLError | ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def running_registry(tls: ssl.SSLContext | None = None) -> Iterator[RegistryState]:
    """A registry with nothing in it, until the block ends; over TLS if there is a certificate."""
    state = RegistryState()
    root = next(_paths)
    server = _Server(("127.0.0.1", 0), _handler(state, root))
    if tls is not None:
        # The handshake is the first read of the connection's own thread: the server must not wait for it.
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    state.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}{root}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
