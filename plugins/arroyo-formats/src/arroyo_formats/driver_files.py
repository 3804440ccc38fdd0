"""Files that only the driver has, such as schemas and certificates: their content goes into the settings."""

from __future__ import annotations

from pathlib import Path

from arroyo_core.api.urls import absolute_url
from arroyo_core.errors import ConfigError


def driver_path(written: str) -> Path:
    """The file that a setting names, by the rule of all local paths: relative ones are below the working directory."""
    return Path(absolute_url(written).removeprefix("file://").removeprefix("local://"))


def read_text(written: str, *, field: str) -> str:
    """The content of the file that the setting `field` names; raises `ConfigError`."""
    path = driver_path(written)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"cannot read {path}: {reason}", field=field, value=written) from error
