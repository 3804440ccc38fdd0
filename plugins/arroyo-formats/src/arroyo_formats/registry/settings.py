"""The setting `registry` of formats."""

from __future__ import annotations

import ssl
from typing import Any

from arroyo_core.errors import ConfigError
from arroyo_formats.driver_files import read_text


def with_subject(settings: Any, topic: str, part: str) -> Any:
    """A copy with the subject of a topic, where there is a registry and no subject."""
    copy = type(settings)()
    copy.CopyFrom(settings)
    if copy.HasField("registry") and not copy.registry.subject:
        copy.registry.subject = f"{topic}-{part}"
    return copy


def resolve_registry(registry: Any) -> None:
    """Check the settings, and put the content of `ca_file` in; raises `ConfigError`."""
    if not registry.url:
        raise ConfigError("a registry needs its url", field="registry.url")
    for url in registry.url.split(","):
        if not url.strip().startswith(("http://", "https://")):
            raise ConfigError(
                f"{url.strip()!r} is not the address of a registry",
                field="registry.url",
                allowed=["http://", "https://"],
            )
        if "@" in url:
            raise ConfigError(
                "the address of a registry is shown in messages: set username and password instead",
                field="registry.url",
            )
    if registry.token and registry.username:
        raise ConfigError("a registry takes a token, or a username and a password", field="registry.token")
    if registry.version != "latest" and not registry.version.isdigit():
        raise ConfigError(
            f"{registry.version!r} is not a version",
            field="registry.version",
            value=registry.version,
            allowed=["latest", "1", "2"],
        )
    if registry.ca_file:
        registry.ca = _read_authorities(registry.ca_file)
        registry.ca_file = ""


def _read_authorities(path: str) -> str:
    field = "registry.ca_file"
    found = read_text(path, field=field)
    try:
        # What has no certificate must not pass for none given: then those of the system would do.
        ssl.create_default_context(cadata=found or "nothing")
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"{path} has no certificates in PEM form", field=field, value=path) from error
    return found
