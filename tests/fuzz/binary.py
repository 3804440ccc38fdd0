"""Avro and Protobuf, and the schemas that formats are told by: a registry's, or a pipeline's of somebody else.

The first byte of an input chooses which of them the rest is.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from arroyo_formats import FormatChoice, find_format
from arroyo_formats.files import WHOLE_FILE
from fsspec.implementations.local import LocalFileSystem
from google.protobuf import json_format

from arroyo_core.api import with_defaults

from .targets import ROOT

_FS = LocalFileSystem()
_PROTO = ROOT / "plugins" / "arroyo-formats" / "tests" / "support" / "everything.proto"
#: What a native decoder reads, and what only Python does.
_FAST: dict[str, Any] = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "a", "type": "int"},
        {"name": "b", "type": ["null", "string"]},
        {"name": "c", "type": {"type": "array", "items": ["null", "long"]}},
        {"name": "d", "type": {"type": "map", "values": "double"}},
        {"name": "e", "type": {"type": "enum", "name": "e", "symbols": ["A", "B", "C"]}},
        {"name": "f", "type": ["null", {"type": "record", "name": "i", "fields": [{"name": "x", "type": "boolean"}]}]},
        {"name": "g", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}
_PLAIN: dict[str, Any] = {
    **_FAST,
    "fields": [
        *_FAST["fields"],
        {"name": "k", "type": "bytes"},
        {"name": "l", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "m", "type": ["int", "string", {"type": "fixed", "name": "x", "size": 3}]},
    ],
}
#: Formats with settings that messages are read by.
READ: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("avro", {"schema": json.dumps(_FAST)}),
    ("avro", {"schema": json.dumps(_PLAIN)}),
    ("avro", {"schema": json.dumps(_FAST), "framing": "single_object"}),
    ("protobuf", {"schema_file": str(_PROTO), "message": "everything.Row"}),
)


def run(data: bytes) -> None:
    if data:
        _KINDS[data[0] % len(_KINDS)](data[1:])


@cache
def choice(index: int) -> FormatChoice:
    name, settings = READ[index]
    return _choose(name, settings)


def _choose(name: str, settings: Mapping[str, Any]) -> FormatChoice:
    found = find_format(name)
    written = found.settings_type()
    json_format.ParseDict(dict(settings), written)
    return FormatChoice(found, with_defaults(written)).resolve()


def _message(index: int, data: bytes) -> None:
    """A row, or bad; alone, and beside itself and nothing. A row that is written is the same when it is read again."""
    chosen = choice(index)
    reader = chosen.reader(chosen.schema(None))
    alone, among = reader.read([data]), reader.read([b"", data, data])
    for decoded, count in ((alone, 1), (among, 3)):
        decoded.batch.validate(full=True)
        places = list(range(count)) if decoded.origins is None else decoded.origins.tolist()
        assert sorted([*places, *(each.index for each in decoded.bad)]) == list(range(count)), "a message is lost"
        assert all(each.error and "\n" not in each.error for each in decoded.bad)
    is_bad = bool(alone.bad)
    assert is_bad == any(each.index == 1 for each in among.bad) == any(each.index == 2 for each in among.bad)
    if not is_bad:
        written = chosen.writer(alone.batch.schema).write(alone.batch).messages.to_pylist()
        again = reader.read(written)
        assert not again.bad, f"what was written cannot be read: {again.bad[0]}"
        is_same = again.batch.equals(alone.batch) or _text(again.batch) == _text(alone.batch)
        assert is_same, "what was written is read as something else"


def _avro_file(data: bytes) -> None:
    path = Path(_folder().name) / "x.avro"
    path.write_bytes(data)
    chosen = _choose("avro", {})
    files = chosen.files()
    schema = files.read_schema(chosen.settings, _FS, str(path))
    files.cut(chosen.settings, _FS, str(path), size=len(data), part_bytes=64)
    reader = files.reader(chosen.settings, _FS, schema=schema, declared=None, batch_rows=10, on_bad=_never)
    for batch, _ in reader.read(str(path), WHOLE_FILE, 0):
        assert batch is not None
        batch.validate(full=True)


def _schema(name: str, data: bytes) -> None:
    """A schema as text: its columns, or a mistake."""
    chosen = _choose(name, {"schema": data.decode("utf-8", errors="replace")})
    chosen.reader(chosen.schema(None)).read([b"{}", b""])


def _descriptors(data: bytes) -> None:
    chosen = _choose("protobuf", {"descriptor_set": base64.b64encode(data).decode()})
    chosen.reader(chosen.schema(None)).read([b"", b"\x08\x01"])


_KINDS: Sequence[Callable[[bytes], None]] = (
    *(partial(_message, index) for index in range(len(READ))),
    _avro_file,
    partial(_schema, "avro"),
    partial(_schema, "json"),
    _descriptors,
)


@cache
def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="arroyo-fuzz-")


def _text(batch: pa.RecordBatch) -> str:
    """The rows as text, in which not a number is equal to itself; times may be in years that Python has not."""
    try:
        return str(batch.to_pylist())
    except (OverflowError, ValueError):
        return str([str(column) for column in batch.columns])


def _never(_: object) -> None:
    raise AssertionError("there are no lines in Avro")
