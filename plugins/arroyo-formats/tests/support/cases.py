"""What the behaviour suite has to know of a format beyond its contract; most need nothing."""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from arroyo_formats import Format, find_format
from arroyo_formats.avro.arrow_types import avro_schema
from google.protobuf import descriptor_pb2

from arroyo_core.api import ArroyoSchema, with_defaults
from arroyo_core.api.updating import make_updates, row_ids, with_updating
from arroyo_core.errors import ConfigError

Fd = descriptor_pb2.FieldDescriptorProto
Encode = Callable[[pa.RecordBatch], bytes]


def finite(value: Any) -> Any:
    """A value as JSON keeps it, which has no infinities and no NaN."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [finite(item) for item in value]
    return {key: finite(item) for key, item in value.items()} if isinstance(value, dict) else value


@dataclass(frozen=True)
class Case:
    """A format with settings for a schema."""

    #: Settings of the format, as YAML has them, for columns that are to be read and written.
    settings: Callable[[pa.Schema], dict[str, Any]] = lambda schema: {}
    #: What becomes of a value that is written and read.
    kept: Callable[[Any], Any] = lambda value: value
    #: Makes a message of rows where the format has no writer of messages.
    encode: Encode | None = None


def _parquet(batch: pa.RecordBatch) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_batches([batch]), stream)
    return stream.getvalue()


def _arrow(batch: pa.RecordBatch) -> bytes:
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, batch.schema) as writer:
        writer.write_batch(batch)
    return stream.getvalue()


def _avro(schema: pa.Schema) -> dict[str, Any]:
    return {"schema": json.dumps(avro_schema(schema))}


_PROTOBUF_TYPES = {
    pa.bool_(): Fd.TYPE_BOOL,
    pa.int32(): Fd.TYPE_INT32,
    pa.int64(): Fd.TYPE_INT64,
    pa.uint32(): Fd.TYPE_UINT32,
    pa.uint64(): Fd.TYPE_UINT64,
    pa.float32(): Fd.TYPE_FLOAT,
    pa.float64(): Fd.TYPE_DOUBLE,
    pa.string(): Fd.TYPE_STRING,
    pa.binary(): Fd.TYPE_BYTES,
}


def _protobuf(schema: pa.Schema) -> dict[str, Any]:
    """A message with an `optional` field for each column: with others, not every value comes back as it was."""
    file = descriptor_pb2.FileDescriptorProto(name="row.proto", syntax="proto3")
    message = file.message_type.add(name="Row")
    for place, field in enumerate(schema):
        if field.type not in _PROTOBUF_TYPES:
            raise ConfigError(f"no field is {field.type}", field="format")
        message.oneof_decl.add(name=f"_{field.name}")
        message.field.add(
            name=field.name,
            number=place + 1,
            label=Fd.LABEL_OPTIONAL,
            type=_PROTOBUF_TYPES[field.type],
            proto3_optional=True,
            oneof_index=place,
        )
    files = descriptor_pb2.FileDescriptorSet(file=[file])
    return {"descriptor_set": base64.b64encode(files.SerializeToString()).decode()}


#: By name; a format that is not here is tried with its default settings.
CASES = {
    "json": Case(kept=finite),
    "debezium_json": Case(kept=finite),
    "csv": Case(settings=lambda schema: {"newlines_in_values": True}),
    "parquet": Case(encode=_parquet),
    "arrow": Case(encode=_arrow),
    "avro": Case(settings=_avro),
    "protobuf": Case(settings=_protobuf),
}


class Subject:
    """A format for rows of one schema: what the suite works with. Raises `ConfigError` where it cannot hold them."""

    def __init__(self, name: str, schema: pa.Schema) -> None:
        self.case = CASES.get(name, Case())
        self.format: Format = find_format(name)
        written = self.format.settings_type(**self.case.settings(schema))
        self.settings = self.format.resolve(with_defaults(written))
        self.schema = self.format.schema(self.settings, schema)
        self._writer = None
        if self.case.encode is None:
            written_schema = with_updating(ArroyoSchema(schema)).schema if self.format.is_updating else schema
            self._writer = self.format.writer(self.settings, written_schema)

    def encode(self, batch: pa.RecordBatch) -> list[bytes]:
        """One message for each row, of rows that are only added."""
        if self.case.encode is not None:
            return [self.case.encode(batch.slice(row, 1)) for row in range(batch.num_rows)]
        assert self._writer is not None
        if self.format.is_updating:
            batch = make_updates(batch, is_retract=False, ids=row_ids(batch, []))
        encoded = self._writer.write(batch)
        origins = range(batch.num_rows) if encoded.origins is None else encoded.origins.tolist()
        assert list(origins) == list(range(batch.num_rows))
        assert encoded.messages.type == pa.large_binary()
        return encoded.messages.to_pylist()

    def reader(self) -> Any:
        return self.format.reader(self.settings, self.schema)


def can_hold(name: str, *kinds: pa.DataType) -> bool:
    """Whether the format holds columns of these types, as it says itself."""
    try:
        Subject(name, schema_of(kinds))
    except ConfigError:
        return False
    return True


def schema_of(kinds: Any) -> pa.Schema:
    return pa.schema([pa.field(f"c{place}", kind) for place, kind in enumerate(kinds)])
