"""A catalogue that means harm, and what one that does not should never be sent."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from arroyo_openlineage.client import without_secrets
from arroyo_openlineage.lineage import Lineage

from arroyo_core import Pipeline, Stream
from arroyo_core.cli.main import main
from arroyo_core.runtime.local import LocalExecutor

SECRET = "s3cr3tT0ken"


class Stranger:
    """A server that answers as it is told, and remembers what it was sent."""

    def __init__(self, answer: Any) -> None:
        self.received: list[tuple[dict[str, str], str]] = []
        self.written = 0
        stranger = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                stranger.received.append((dict(self.headers), body))
                answer(stranger, self)

            def log_message(self, format: str, *args: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def fine(stranger: Stranger, request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.end_headers()


def refusing(stranger: Stranger, request: BaseHTTPRequestHandler) -> None:
    request.send_response(400)
    request.end_headers()


#: More than sockets hold, and less than would harm the tests if it were read.
ENDLESS = 64 << 20


def endless(stranger: Stranger, request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.end_headers()
    try:
        while stranger.written < ENDLESS:
            stranger.written += request.wfile.write(b" " * 65536)
    except OSError:
        # Whoever asked has gone.
        return


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client writes into it."""
    monkeypatch.setattr(os, "environ", {**os.environ})


@pytest.fixture
def strangers() -> Iterator[Any]:
    made: list[Stranger] = []

    def start(answer: Any) -> Stranger:
        made.append(Stranger(answer))
        return made[-1]

    yield start
    for each in made:
        each.close()


def rows(folder: Path, *, expression: str = "name") -> Pipeline:
    (folder / "in").mkdir()
    (folder / "in/rows.csv").write_text("name\nAda Lovelace\n")
    source = Stream.source("filesystem.source", path=folder / "in", format="csv", id="people")
    return Pipeline.build(source.project({"x": expression}).blackhole(), name="people")


def run(pipeline: Pipeline, **settings: Any) -> None:
    with Lineage([pipeline.plan], **settings) as listener:
        pipeline.run(executor=LocalExecutor(pipeline.plugins), listener=listener)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_events_and_headers_do_not_follow_a_redirect(
    strangers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    elsewhere = strangers(fine)

    def redirecting(stranger: Stranger, request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        request.send_header("Location", f"http://{elsewhere.address}/api")
        request.end_headers()

    catalogue = strangers(redirecting)
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__CUSTOM_HEADERS", json.dumps({"X-Api-Key": SECRET}))
    run(rows(tmp_path), url=f"http://{catalogue.address}")
    assert catalogue.received[0][0]["X-Api-Key"] == SECRET
    assert elsewhere.received == []
    (warning,) = [each.getMessage() for each in caplog.records if "OpenLineage" in each.getMessage()]
    assert "redirects are not followed" in warning


@pytest.mark.parametrize("by_environment", [False, True])
def test_an_answer_without_end_is_not_read(
    strangers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_environment: bool
) -> None:
    catalogue = strangers(endless)
    url: str | None = f"http://{catalogue.address}"
    if by_environment:
        monkeypatch.setenv("OPENLINEAGE_URL", f"http://{catalogue.address}")
        url = None
    run(rows(tmp_path), url=url)
    assert len(catalogue.received) == 2
    assert catalogue.written < ENDLESS


def test_the_token_of_a_repository_is_not_sent(strangers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / ".git/config").write_text(f'[remote "origin"]\n\turl = https://ci:{SECRET}@git.example/people.git\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENLINEAGE__FACETS__SOURCE_CODE_LOCATION__DISABLED", "false")
    catalogue = strangers(fine)
    run(rows(tmp_path), url=f"http://{catalogue.address}")
    sent = [json.loads(body)["job"]["facets"]["sourceCodeLocation"]["url"] for _, body in catalogue.received]
    assert sent == ["https://git.example/people.git"] * 2
    assert not [body for _, body in catalogue.received if SECRET in body]


def test_rows_in_messages_are_not_sent(strangers: Any, tmp_path: Path) -> None:
    catalogue = strangers(fine)
    with pytest.raises(Exception, match="Ada Lovelace"):
        run(rows(tmp_path, expression="CAST(name AS BIGINT)"), url=f"http://{catalogue.address}")
    event = json.loads(catalogue.received[-1][1])
    assert event["eventType"] == "FAIL"
    assert "the log of the job has its message" in event["run"]["facets"]["errorMessage"]["message"]
    assert "Lovelace" not in catalogue.received[-1][1]


def test_a_password_in_the_url_of_the_catalogue_is_in_no_log(
    strangers: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    catalogue = strangers(refusing)
    with caplog.at_level(logging.DEBUG, logger="arroyo_core"):
        run(rows(tmp_path), url=f"http://me:{SECRET}@{catalogue.address}/?key={SECRET}")
    texts = [each.getMessage() for each in caplog.records]
    assert [text for text in texts if "400" in text]
    assert not [text for text in texts if SECRET in text]


def test_settings_that_the_client_refuses_are_a_sentence_without_secrets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "people.yaml"
    file.write_text(rows(tmp_path).to_yaml())
    assert main(["run", str(file), "--in-process", "--openlineage", f"me:{SECRET}@nowhere"]) == 0
    said = capsys.readouterr().err
    assert "the client of OpenLineage refuses its settings" in said
    assert SECRET not in said


def test_urls_lose_their_secrets_wherever_they_stand() -> None:
    text = f"400 Client Error for url: https://me:{SECRET}@host:1/api?sig={SECRET} ('http://{SECRET}@b/')"
    assert without_secrets(text) == "400 Client Error for url: https://host:1/api ('http://b/')"
