"""Reads Protobuf messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from arroyo_formats.columns import Gathering, Rows, cast_field
from arroyo_formats.format import BadMessage, Decoded, Indices, MessageReader
from arroyo_formats.protobuf.compiling import ProtoError, compile_texts
from arroyo_formats.protobuf.descriptors import message_at
from arroyo_formats.protobuf.fast import FastDecoder, is_fast
from arroyo_formats.protobuf.message_type import MessageType
from arroyo_formats.protobuf.plain import PlainDecoder
from arroyo_formats.registry import Framed, SchemaRegistry, UnknownSchemaError, split
from arroyo_formats.registry.client import PROTOBUF
from arroyo_formats.registry.framing import read_indexes
from arroyo_formats.schemas_pb2 import ProtobufSettings

#: The file that a schema of the registry is compiled as: it has no name there.
_FILE = "schema.proto"


def decoder(kind: MessageType) -> Any:
    if is_fast(kind.descriptor):
        return FastDecoder(kind.descriptor, kind.fields, kind.unit)
    return PlainDecoder(kind.descriptor, kind.fields)


class ProtobufReader(MessageReader):
    """Reads messages of one type. Fields that its columns do not have are skipped, whoever wrote them."""

    def __init__(self, settings: ProtobufSettings, kind: MessageType, schema: pa.Schema) -> None:
        self.schema = schema
        self._kind = kind
        self._decoder = decoder(kind)
        self._names = [field.name for field in kind.fields]
        self._registry = SchemaRegistry.of(settings.registry) if settings.HasField("registry") else None
        #: By number of schema and place of message type: why its messages are bad; empty where they are not.
        self._known: dict[tuple[int, tuple[int, ...]], str] = {}
        self._compiled: dict[int, Any] = {}

    def read(self, messages: Sequence[bytes]) -> Decoded:
        gathering = Gathering(self.schema, len(messages))
        origins: Indices = np.arange(len(messages))
        if self._registry is not None:
            messages, origins = self._unframed(messages, gathering)
        columns, bad = self._decoder.decode(messages)
        rows = len(messages) - len(bad)
        gathering.add(Rows([self._column(field, columns, rows) for field in self.schema], bad), origins)
        return gathering.decoded()

    def _column(self, field: pa.Field, columns: Sequence[pa.Array], rows: int) -> Any:
        if field.name in self._names:
            return cast_field(columns[self._names.index(field.name)], field)
        return cast_field(pa.nulls(rows, field.type), field)

    def _unframed(self, messages: Sequence[bytes], gathering: Gathering) -> tuple[list[bytes], Indices]:
        framed = split(messages)
        gathering.add_bad(framed.bad)
        places = np.arange(len(messages)) if framed.origins is None else framed.origins
        if self._is_uniform(framed):
            return [body[1:] for body in framed.bodies], places
        bodies, origins, bad = [], [], []
        for schema_id, body, origin in zip(framed.ids.tolist(), framed.bodies, places.tolist(), strict=True):
            try:
                path, start = ((0,), 1) if body[:1] == b"\0" else read_indexes(body)
                problem = self._problem(schema_id, path)
            except ValueError as error:
                problem = str(error)
            if problem:
                bad.append(BadMessage(origin, problem))
            else:
                bodies.append(body[start:])
                origins.append(origin)
        gathering.add_bad(bad)
        return bodies, np.array(origins, np.int64)

    def _is_uniform(self, framed: Framed) -> bool:
        """Whether all messages are of the first type of one schema, which is the right one: mostly they are."""
        if not len(framed.ids) or not (framed.ids == framed.ids[0]).all():
            return False
        is_first = all(body[:1] == b"\0" for body in framed.bodies)
        return is_first and not self._problem(int(framed.ids[0]), (0,))

    def _problem(self, schema_id: int, path: tuple[int, ...]) -> str:
        """Why messages of this schema and type are bad; empty where they are not."""
        if (schema_id, path) not in self._known:
            try:
                name = message_at(self._files(schema_id), path)
                wrong = f"is a {name}, and not a {self._kind.name}" if name != self._kind.name else ""
            except UnknownSchemaError as error:
                # The registry may still get it, so it is asked again.
                return str(error)
            except ProtoError as error:
                wrong = f"schema {schema_id} cannot be read: {error}"
            self._known[schema_id, path] = wrong
        return self._known[schema_id, path]

    def _files(self, schema_id: int) -> Any:
        if schema_id not in self._compiled:
            assert self._registry is not None, "without a registry nothing is framed"
            found = self._registry.by_id(schema_id)
            if found.kind != PROTOBUF:
                raise ProtoError(f"it is of {found.kind}, not Protobuf")
            texts = {**dict(self._registry.referenced(found)), _FILE: found.text}
            self._compiled[schema_id] = compile_texts(texts, _FILE)
        return self._compiled[schema_id]
