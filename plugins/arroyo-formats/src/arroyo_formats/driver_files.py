"""Files that only the driver has, such as schemas and certificates: their content goes into the settings."""

from __future__ import annotations

from pathlib import Path

from arroyo_core.api.limits import SCHEMA_BYTES
from arroyo_core.api.policy import current_policy
from arroyo_core.api.urls import absolute_url
from arroyo_core.errors import ConfigError


def driver_path(written: str) -> Path:
    """The file that a setting names, by the rule of all local paths: relative ones are below the working directory."""
    return Path(absolute_url(written).removeprefix("file://").removeprefix("local://"))


def read_text(written: str, *, field: str) -> str:
    """The content of the regular file that the setting `field` names; raises `ConfigError`."""
    path = driver_path(written)
    try:
        return current_policy().read_file(path, SCHEMA_BYTES, field=field).decode()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"cannot read {path}: {reason}", field=field, value=written) from error
