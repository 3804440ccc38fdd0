"""Brings the formats; everything heavy is imported when one is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from arroyo_core.plugin import hookimpl


@hookimpl
def arroyo_format() -> Sequence[Any]:
    from arroyo_formats.extras import format_with_extra

    return [
        format_with_extra("avro", "arroyo_formats.avro.format", "AvroFormat"),
        format_with_extra("protobuf", "arroyo_formats.protobuf.format", "ProtobufFormat"),
    ]
