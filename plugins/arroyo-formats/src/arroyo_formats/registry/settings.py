"""The setting `registry` of formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from arroyo_core.errors import ConfigError


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
        try:
            registry.ca = Path(registry.ca_file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"cannot read {registry.ca_file}: {error}", field="registry.ca_file", value=registry.ca_file
            ) from error
        registry.ca_file = ""
