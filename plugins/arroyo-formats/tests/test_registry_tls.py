"""A schema registry over TLS, whose certificate an authority of our own has signed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from arroyo_formats.json.format import JsonFormat
from arroyo_formats.registry import SchemaRegistry
from arroyo_formats.registry.transport import Transport

from arroyo_core.errors import ConfigError
from tests.certificates import make_certificates

from .support.formats_in_tests import choose, read
from .support.registry_server import RegistryState, running_registry

SCHEMA = {"properties": {"id": {"type": "integer"}}}


def chosen(state: RegistryState, ca_file: Path | None) -> Any:
    more = {"ca_file": str(ca_file)} if ca_file else {}
    return choose(JsonFormat(), registry={"url": state.url, "subject": "s", **more})


def test_the_authority_of_the_file_is_trusted(tmp_path: Path):
    authority, server = make_certificates(tmp_path / "a")
    with running_registry(server) as registry:
        assert registry.url.startswith("https://")
        registry.add("s", SCHEMA, kind="JSON")
        choice = chosen(registry, authority)
        authority.unlink()
        assert choice.resolve() == choice, "executors need no file"
        assert read(choice, [b'\0\0\0\0\1{"id": 1}']).batch.to_pydict() == {"id": [1]}
        asked = SchemaRegistry.of(choice.settings.registry).by_id(1)
        assert json.loads(asked.text) == SCHEMA


@pytest.mark.parametrize("is_given", [True, False])
def test_another_authority_is_a_mistake_that_says_so(tmp_path: Path, is_given: bool):
    _, server = make_certificates(tmp_path / "a")
    other, _ = make_certificates(tmp_path / "b")
    with running_registry(server) as registry:
        with pytest.raises(
            ConfigError, match=rf"certificate of the schema registry {registry.url} is not trusted"
        ) as it:
            chosen(registry, other if is_given else None)
        assert it.value.field == "format.registry.ca_file"
        assert "give the authority that signed it as ca_file" in str(it.value)
        assert registry.requests == []


def test_a_certificate_that_is_not_trusted_is_no_outage(tmp_path: Path):
    _, server = make_certificates(tmp_path / "a")
    other, _ = make_certificates(tmp_path / "b")
    waits: list[float] = []
    with running_registry(server) as registry:
        wary = SchemaRegistry(Transport(urls=(registry.url,), ca=other.read_text(), sleep=waits.append))
        with pytest.raises(ConfigError, match="is not trusted"):
            wary.by_id(1)
    assert waits == []


def test_a_certificate_of_another_host_is_not_trusted(tmp_path: Path):
    authority, server = make_certificates(tmp_path / "a", address="127.0.0.2")
    with running_registry(server) as registry:
        with pytest.raises(ConfigError, match=r"is not trusted \(IP address mismatch") as raised:
            chosen(registry, authority)
        assert "give the authority" not in str(raised.value), "it is not at fault"


@pytest.mark.parametrize("content", ["", "\n", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n"])
def test_a_file_without_certificates_is_refused_before_anything_is_asked(tmp_path: Path, content: str):
    (tmp_path / "ca.pem").write_text(content)
    with pytest.raises(ConfigError, match=r"ca\.pem has no certificates in PEM form") as raised:
        choose(JsonFormat(), registry={"url": "https://127.0.0.1:1", "ca_file": str(tmp_path / "ca.pem")})
    assert raised.value.field == "format.registry.ca_file"
