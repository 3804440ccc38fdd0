"""Brings the formats; everything heavy is imported when one is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from arroyo_core.plugin import hookimpl


@hookimpl
def arroyo_format() -> Sequence[Any]:
    from arroyo_formats.arrow.format import ArrowFormat
    from arroyo_formats.csv.format import CsvFormat
    from arroyo_formats.debezium.format import DebeziumJsonFormat
    from arroyo_formats.extras import format_with_extra
    from arroyo_formats.json.format import JsonFormat
    from arroyo_formats.parquet.format import ParquetFormat
    from arroyo_formats.raw import RawBytesFormat, RawStringFormat
    from arroyo_formats.schemas_pb2 import AvroSettings, ProtobufSettings

    return [
        ArrowFormat(),
        format_with_extra("avro", "AvroFormat", AvroSettings),
        CsvFormat(),
        DebeziumJsonFormat(),
        JsonFormat(),
        ParquetFormat(),
        format_with_extra("protobuf", "ProtobufFormat", ProtobufSettings),
        RawBytesFormat(),
        RawStringFormat(),
    ]
