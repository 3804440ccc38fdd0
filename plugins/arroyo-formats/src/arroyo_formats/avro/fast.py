"""pyruhvro: decodes and encodes Avro in Rust, for the schemas that it is right for.

It is given a schema of its own, with the same bytes: without logical types, every whole number a `long`, every named
type with a name of its own. Of what is left, it panics on bytes and fixed, and cannot hold records in nullable records.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyruhvro

from arroyo_formats.avro.plain import PlainDecoder
from arroyo_formats.avro.schema import NULL, Array, Enum, Fixed, Map, Node, Record, Scalar, Union
from arroyo_formats.format import BadMessage

#: Follows every value, so that bytes that are left over are noticed: nobody who writes messages knows it.
_END = secrets.token_bytes(7) + b"\x3f"
_END_VALUE = pa.array(memoryview(_END).cast("d"), pa.float64())[0]
_END_FIELD = "end_of_value"
#: Fewer values than this are not worth another call.
_SMALL = 16
#: Columns of strings have 32-bit offsets.
_MAX_BYTES = 2**29


def is_fast(record: Record) -> bool:
    """Whether this schema is one that pyruhvro is right for."""
    return bool(record.fields) and all(_is_fast(field.type) for field in record.fields)


def _is_fast(node: Node, *, in_null: bool = False) -> bool:
    """`in_null`: within a record that may be null."""
    match node:
        case Scalar():
            return node.kind not in ("bytes", "null")
        case Fixed():
            return False
        case Enum():
            return True
        case Array():
            return _is_fast(node.items)
        case Map():
            return _is_fast(node.values)
        case Record():
            return not in_null and bool(node.fields) and all(_is_fast(field.type) for field in node.fields)
        case Union():
            if len(node.branches) != 2 or NULL not in node.branches:
                return False
            ((_, inner),) = node.values
            if isinstance(inner, Record):
                return bool(inner.fields) and all(_is_fast(field.type, in_null=True) for field in inner.fields)
            return _is_fast(inner)


def storage_schema(record: Record) -> dict[str, Any]:
    """The schema as storage has it, as JSON: the same bytes, and no logical types."""
    names = iter(range(1 << 30))
    written: dict[str, Any] = _storage(record, names)
    return written


def _storage(node: Node, names: Any) -> Any:
    match node:
        case Scalar():
            return "long" if node.kind == "int" else node.kind
        case Fixed():
            return {"type": "fixed", "name": f"n{next(names)}", "size": node.size}
        case Enum():
            return {"type": "enum", "name": f"n{next(names)}", "symbols": list(node.symbols)}
        case Array():
            return {"type": "array", "items": _storage(node.items, names)}
        case Map():
            return {"type": "map", "values": _storage(node.values, names)}
        case Record():
            name = f"n{next(names)}"
            fields = [{"name": field.name, "type": _storage(field.type, names)} for field in node.fields]
            return {"type": "record", "name": name, "fields": fields}
        case Union():
            return [_storage(branch, names) for branch in node.branches]


class FastDecoder:
    """Decodes values of one schema that `is_fast`; those that pyruhvro refuses are decoded again, for the reason."""

    def __init__(self, record: Record) -> None:
        schema = storage_schema(record)
        end = _END_FIELD
        while any(field.name == end for field in record.fields):
            end += "_"
        schema["fields"].append({"name": end, "type": "double"})
        self._schema = json.dumps(schema)
        self._names = [field.name for field in record.fields]
        self._plain = PlainDecoder(record)

    def decode(self, bodies: Sequence[bytes]) -> tuple[pa.StructArray, list[BadMessage]]:
        """A row for each value that is one, and the others."""
        parts: list[pa.StructArray] = []
        bad: list[BadMessage] = []
        self._decode([body + _END for body in bodies], 0, parts, bad)
        if len({part.type for part in parts}) != 1:
            # There are no rows, or pyruhvro refuses what is right: the plain decoder has one type for all.
            return self._plain.decode(bodies)
        return (parts[0] if len(parts) == 1 else pa.concat_arrays(parts)), bad

    def _decode(self, ended: list[bytes], first: int, parts: list[pa.StructArray], bad: list[BadMessage]) -> None:
        """Halves what cannot be decoded as a whole: a bad value costs as much as the logarithm of its neighbours."""
        if not ended:
            return
        found = self._try(ended)
        if found is not None:
            parts.append(found)
        elif len(ended) <= _SMALL:
            rows, refused = self._plain.decode([body[: -len(_END)] for body in ended])
            bad += [BadMessage(first + each.index, each.error) for each in refused]
            if len(rows):
                again = self._try([body for i, body in enumerate(ended) if i not in {each.index for each in refused}])
                parts.append(rows if again is None else again)
        else:
            half = len(ended) // 2
            self._decode(ended[:half], first, parts, bad)
            self._decode(ended[half:], first + half, parts, bad)

    def _try(self, ended: list[bytes]) -> pa.StructArray | None:
        if len(ended) > _SMALL and sum(map(len, ended)) > _MAX_BYTES:
            return None
        try:
            batch = pa.record_batch(pyruhvro.deserialize_array(ended, self._schema))
            # It takes any bytes for a string.
            batch.validate(full=True)
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException:  # a panic in Rust is no Exception
            return None
        *columns, ends = batch.columns
        if not pc.all(pc.equal(ends, _END_VALUE)).as_py():
            return None
        return pa.StructArray.from_arrays(columns, self._names)


class FastEncoder:
    """Encodes storage of one schema that `is_fast`."""

    def __init__(self, record: Record) -> None:
        self._schema = json.dumps(storage_schema(record))

    def encode(self, rows: pa.StructArray) -> pa.Array:
        """`binary`, a value for each row."""
        batch = pa.RecordBatch.from_struct_array(rows)
        return pa.chunked_array(pyruhvro.serialize_record_batch(batch, self._schema, 1), pa.binary()).combine_chunks()
