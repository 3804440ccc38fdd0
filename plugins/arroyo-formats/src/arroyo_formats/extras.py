"""Formats whose libraries come with an extra, and may be missing."""

from __future__ import annotations

import importlib
from typing import Any

from google.protobuf.message import Message

from arroyo_core.errors import ConfigError
from arroyo_formats.format import Format, MessageReader, MessageWriter


def format_with_extra(extra: str, type_name: str, settings: type[Message]) -> Format:
    """The format that an extra is called after; where a library is missing, one that says so when it is used."""
    try:
        found: Format = getattr(importlib.import_module(f"arroyo_formats.{extra}.format"), type_name)()
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "arroyo_formats":
            raise
        return _missing(extra, settings, error.name)
    return found


def _missing(extra: str, settings: type[Message], library: str) -> Format:
    def refuse() -> ConfigError:
        return ConfigError(
            f"format {extra} needs {library}: pip install 'arroyo-formats[{extra}]'", field="format", value=extra
        )

    class MissingFormat(Format):
        name = extra
        settings_type = settings

        def resolve(self, settings: Any) -> Any:
            raise refuse()

        def schema(self, settings: Any, declared: Any) -> Any:
            raise refuse()

        def reader(self, settings: Any, schema: Any) -> MessageReader:
            raise refuse()

        def writer(self, settings: Any, schema: Any) -> MessageWriter:
            raise refuse()

    return MissingFormat()
