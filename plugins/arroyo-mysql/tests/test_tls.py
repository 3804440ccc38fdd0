"""Sessions and changes over TLS, with a server whose certificate an authority of our own has signed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from arroyo_mysql import connection
from arroyo_mysql.connection import Server, read_connection
from arroyo_mysql.connection_pb2 import Connection
from arroyo_testing.databases import Materialized, catch_up
from google.protobuf import json_format

from arroyo_core.api import with_defaults
from arroyo_core.errors import ConfigError
from tests.certificates import make_certificates
from tests.mysql_server import MysqlServer, running_server, shared_server

from .cdc.support import Table

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    folder.chmod(0o755)
    for above in folder.parents:
        if above.name.startswith("pytest-"):
            above.chmod(0o755)
    found, _ = make_certificates(folder / "own")
    make_certificates(folder / "other")
    return found


@pytest.fixture(scope="module")
def secure(authority: Path) -> Iterator[MysqlServer]:
    """A server that takes no session of its user without TLS."""
    shared_server()  # skips, or fails, where there is none
    pem = authority.with_name("server.pem")
    with running_server({"ssl-ca": str(authority), "ssl-cert": str(pem), "ssl-key": str(pem)}) as server:
        server.execute("create user inside@'127.0.0.1' identified by 'secret' require ssl")
        server.execute("grant all on *.* to inside@'127.0.0.1'")
        yield server


def reach(server: MysqlServer, **fields: Any) -> Server:
    given = {**server.config, "user": "inside", "password": "secret", **fields}
    return read_connection(with_defaults(json_format.ParseDict(given, Connection())))


def cipher(server: Server) -> str:
    with closing(server.connect()) as session:
        return str(session.execute("show status like 'Ssl_cipher'")[0][1])


@pytest.mark.parametrize("mode", ["prefer", "require", "verify_ca", "verify_full"])
def test_sessions_are_encrypted(secure: MysqlServer, authority: Path, mode: str) -> None:
    root = {"sslrootcert": str(authority)} if mode.startswith("verify") else {}
    assert cipher(reach(secure, sslmode=mode, **root)) != ""


def test_nothing_is_encrypted_where_that_is_said(secure: MysqlServer) -> None:
    assert cipher(reach(secure, sslmode="disable", user="tests", password=secure.config["password"])) == ""
    with pytest.raises(ConfigError, match="Access denied"):
        cipher(reach(secure, sslmode="disable"))


@pytest.mark.parametrize("mode", ["verify_ca", "verify_full"])
def test_a_certificate_of_another_authority_is_refused(secure: MysqlServer, authority: Path, mode: str) -> None:
    other = authority.parents[1] / "other" / "authority.pem"
    with pytest.raises(ConfigError) as refused:
        cipher(reach(secure, sslmode=mode, sslrootcert=str(other)))
    assert refused.value.field == "connection.sslrootcert"


def test_a_certificate_of_another_host_is_refused(secure: MysqlServer, authority: Path) -> None:
    wanted = {"host": "localhost", "sslrootcert": str(authority)}
    assert cipher(reach(secure, sslmode="verify_ca", **wanted)) != ""
    with pytest.raises(ConfigError) as refused:
        cipher(reach(secure, sslmode="verify_full", **wanted))
    assert refused.value.field == "connection.sslrootcert"


def test_changes_are_read_over_tls(secure: MysqlServer, authority: Path) -> None:
    made, result = Table(secure), Materialized()
    made.fill(3)
    inside = {"user": "inside", "password": "secret", "sslmode": "verify_full", "sslrootcert": str(authority)}
    source = made.source(connection={**secure.config, **inside})
    catch_up(source, result, made)
    made.run("update $t set name = 'x' where id = 2")
    catch_up(source, result, made)
    made.close()


def test_one_context_serves_all_sessions_until_a_file_changes(
    secure: MysqlServer, authority: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str | None] = []
    original = connection.ssl.create_default_context

    def counted(*args: Any, cafile: str | None = None, **options: Any) -> Any:
        made.append(cafile)
        return original(*args, cafile=cafile, **options)

    monkeypatch.setattr(connection.ssl, "create_default_context", counted)
    connection._make_tls_context.cache_clear()
    for _ in range(3):
        cipher(reach(secure))
    assert made == [None]
    copy = tmp_path / "authority.pem"
    copy.write_bytes(authority.read_bytes())
    for _ in range(2):
        cipher(reach(secure, sslmode="verify_ca", sslrootcert=str(copy)))
    copy.write_bytes((authority.parents[1] / "other" / "authority.pem").read_bytes())
    with pytest.raises(ConfigError):
        cipher(reach(secure, sslmode="verify_ca", sslrootcert=str(copy)))
    assert made == [None, str(copy), str(copy)]
