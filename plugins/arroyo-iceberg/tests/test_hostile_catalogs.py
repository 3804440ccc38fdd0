"""Whoever writes to a table, or answers for its catalog, chooses neither code that runs here nor where secrets go."""

from __future__ import annotations

import gzip
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from arroyo_iceberg import catalog as catalogs
from arroyo_iceberg.catalog import CatalogSettings, check_catalog, read_table_name
from arroyo_iceberg.file_io import LimitedFileIO
from arroyo_iceberg.iceberg_pb2 import Catalog as CatalogConfig
from google.protobuf import json_format
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from arroyo_core.api import with_defaults
from arroyo_core.errors import DataError

NAME = read_table_name("shop.rows")
CODE = """
class Evil:
    def __init__(self, *args, **kwargs):
        open({marker!r}, "w").close()
"""


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Is there when the code has run, which can be imported as any module here can."""
    marker = tmp_path / "ran"
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "evil_of_table.py").write_text(CODE.format(marker=str(marker)))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "evil_of_table", raising=False)
    catalogs._open.cache_clear()
    return marker


def settings(**config: Any) -> CatalogSettings:
    return check_catalog(with_defaults(json_format.ParseDict(config, CatalogConfig())))


def table_with(folder: Path, properties: dict[str, str]) -> CatalogSettings:
    """A table whose properties somebody has set."""
    uri = f"sqlite:///{folder}/catalog.db"
    found = SqlCatalog("default", uri=uri, warehouse=str(folder))
    found.create_namespace("shop")
    set_properties(found.create_table("shop.rows", pa.schema([("id", pa.int64())])), properties)
    return settings(type="sql", uri=uri, warehouse=str(folder))


def set_properties(table: Table, properties: dict[str, str]) -> None:
    """As a program does that is not this library, which would run here what they name."""
    path = Path(table.metadata_location.removeprefix("file://"))
    metadata = json.loads(path.read_text())
    metadata["properties"].update(properties)
    path.write_text(json.dumps(metadata))


def test_properties_of_a_table_choose_no_code_that_opens_files(ran: Path, tmp_path: Path) -> None:
    table = table_with(tmp_path, {"py-io-impl": "evil_of_table.Evil", "gcs.service.host": "http://evil"}).load(NAME)
    assert not ran.exists()
    assert type(table.io) is LimitedFileIO
    assert "gcs.service.host" not in table.io.properties


def test_properties_of_a_table_choose_no_code_that_places_files(ran: Path, tmp_path: Path) -> None:
    found = table_with(tmp_path, {})
    before = found.load(NAME)
    set_properties(before, {"write.py-location-provider.impl": "evil_of_table.Evil"})
    with pytest.raises(DataError, match=r"shop\.rows has the property write\.py-location-provider\.impl, which names"):
        found.load(NAME)
    with pytest.raises(DataError, match="names code"):
        before.append(pa.table({"id": [1]}))
    assert not ran.exists()


class Rest:
    """A REST catalog that answers what it is told."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.redirects: dict[str, str] = {}
        self.is_packed = False
        self.received: list[tuple[str, str, str]] = []
        rest = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                path = self.path.partition("?")[0]
                rest.received.append((path, self.headers.get("Authorization", ""), body))
                data = json.dumps(rest.answers.get(path, {})).encode()
                self.send_response(307 if path in rest.redirects else 200 if path in rest.answers else 404)
                if path in rest.redirects:
                    self.send_header("Location", rest.redirects[path])
                if rest.is_packed:
                    data = gzip.compress(data)
                    self.send_header("Content-Encoding", "gzip")
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self) -> None:
                self.answer()

            def do_POST(self) -> None:
                self.answer()

            def do_HEAD(self) -> None:
                self.answer()

            def log_message(self, format: str, *args: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.uri = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def rest() -> Iterator[Rest]:
    found = Rest()
    yield found
    found.close()


@pytest.fixture
def elsewhere() -> Iterator[Rest]:
    found = Rest()
    yield found
    found.close()


def test_a_rest_catalog_chooses_no_code(rest: Rest, ran: Path, tmp_path: Path) -> None:
    table = table_with(tmp_path, {"gcs.service.host": "http://evil"}).load(NAME)
    evil = "evil_of_table.Evil"
    rest.answers["/v1/config"] = {
        "defaults": {"py-io-impl": evil},
        "overrides": {"auth": {"type": "custom", "impl": evil, "custom": {}}, "py-io-impl": evil},
    }
    rest.answers["/v1/namespaces/shop/tables/rows"] = {
        "metadata-location": table.metadata_location,
        "metadata": json.loads(table.metadata.model_dump_json()),
        "config": {"py-io-impl": evil, "s3.region": "here"},
    }
    found = settings(type="rest", uri=rest.uri, token="t0ken").load(NAME)
    assert not ran.exists()
    assert type(found.io) is LimitedFileIO
    # What comes with a table from its catalog does count, and what its writers set does not.
    assert found.io.properties["s3.region"] == "here"
    assert "gcs.service.host" not in found.io.properties


def test_a_rest_catalog_does_not_send_credentials_elsewhere(rest: Rest, elsewhere: Rest, ran: Path) -> None:
    token = {"access_token": "given", "token_type": "bearer", "expires_in": 3600}
    for each in (rest, elsewhere):
        each.answers["/v1/oauth/tokens"] = token
    rest.answers["/v1/config"] = {
        "defaults": {},
        "overrides": {"oauth2-server-uri": f"{elsewhere.uri}/v1/oauth/tokens", "credential": "other:one"},
    }
    rest.answers["/v1/namespaces"] = {"namespaces": [["shop"]]}
    found = settings(type="rest", uri=rest.uri, credential="me:s3cr3t").open()
    assert found.list_namespaces() == [("shop",)]
    assert elsewhere.received == []
    assert any("s3cr3t" in body for _, _, body in rest.received)
    assert found.properties["credential"] == "me:s3cr3t"


@pytest.mark.parametrize("is_packed", [False, True])
def test_an_answer_that_is_too_large_is_not_read(
    rest: Rest, ran: Path, monkeypatch: pytest.MonkeyPatch, is_packed: bool
) -> None:
    rest.is_packed = is_packed
    rest.answers["/v1/config"] = {"defaults": {}, "overrides": {"padding": "a" * (4 << 20)}}
    assert settings(type="rest", uri=rest.uri, token="t0ken").open().properties["padding"]
    catalogs._open.cache_clear()
    monkeypatch.setenv("ARROYO_MAX_ICEBERG_ANSWER_BYTES", "2MiB")
    with pytest.raises(DataError, match=r"too much: .*ARROYO_MAX_ICEBERG_ANSWER_BYTES"):
        settings(type="rest", uri=rest.uri, token="t0ken").open()


@pytest.mark.parametrize("name", ["location", "write.data.path", "write.metadata.path"])
def test_a_table_elsewhere_has_no_place_on_this_host(rest: Rest, ran: Path, tmp_path: Path, name: str) -> None:
    table = table_with(tmp_path, {}).load(NAME)
    metadata = json.loads(table.metadata.model_dump_json())
    metadata["location"] = "s3://bucket/shop/rows"
    (metadata if name == "location" else metadata["properties"])[name] = "file:///home/somebody"
    rest.answers["/v1/config"] = {"defaults": {}, "overrides": {}}
    rest.answers["/v1/namespaces/shop/tables/rows"] = {
        "metadata-location": "s3://bucket/shop/rows/metadata/1.metadata.json",
        "metadata": metadata,
        "config": {},
    }
    with pytest.raises(DataError, match="names 'file:///home/somebody', a file of this host"):
        settings(type="rest", uri=rest.uri, token="t0ken").load(NAME)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"format-version": 2}', "no JSON"])
def test_metadata_that_cannot_be_read_are_an_error_of_ours(ran: Path, tmp_path: Path, text: str) -> None:
    found = table_with(tmp_path, {})
    Path(found.load(NAME).metadata_location.removeprefix("file://")).write_text(text)
    with pytest.raises(DataError, match=r"cannot load table shop\.rows .* cannot be read"):
        found.load(NAME)


@pytest.mark.parametrize("path", ["/v1/oauth/tokens", "/v1/config"])
def test_a_login_does_not_follow_a_redirect_to_another_host(rest: Rest, elsewhere: Rest, ran: Path, path: str) -> None:
    """Another name of this host is another host."""
    rest.answers["/v1/oauth/tokens"] = {"access_token": "given", "token_type": "bearer", "expires_in": 3600}
    rest.redirects[path] = f"{elsewhere.uri.replace('127.0.0.1', 'localhost')}{path}"
    with pytest.raises(DataError, match="sends to the host 'localhost', which is not followed"):
        settings(type="rest", uri=rest.uri, credential="me:s3cr3t").open()
    assert elsewhere.received == []
