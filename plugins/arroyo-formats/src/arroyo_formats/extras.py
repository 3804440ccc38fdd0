"""Formats whose libraries come with an extra, and may be missing."""

from __future__ import annotations

import importlib
from typing import ClassVar, NoReturn

from arroyo_core.errors import ConfigError
from arroyo_formats.format import Format


def format_with_extra(extra: str, module: str, name: str) -> Format:
    """The format of a module; where a library is missing, one that says what brings it as soon as it is chosen."""
    try:
        found: Format = getattr(importlib.import_module(module), name)()
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "arroyo_formats":
            raise
        return _missing(extra, error.name)
    return found


def _missing(extra: str, library: str) -> Format:
    class MissingFormat(Format):
        name: ClassVar[str] = extra

        @property
        def settings_type(self) -> NoReturn:  # type: ignore[override]
            raise ConfigError(
                f"format {extra} needs {library}: pip install 'arroyo-formats[{extra}]'", field="format", value=extra
            )

    return MissingFormat()
