"""ptars: reads and writes messages in Rust, for the types that it is right for.

What it does not see as the rules want is looked for afterwards, and read again: several values of a `oneof`, the same
key of a map twice, times out of range. Lengths of packed numbers of a fixed width it does not check at all. Its columns
are in the order of the fields' numbers, ours in the order in which fields are declared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import ptars
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor as Fd

from arroyo_formats.columns import cast
from arroyo_formats.format import BadMessage, Indices
from arroyo_formats.protobuf.plain import PlainDecoder, PlainEncoder
from arroyo_formats.protobuf.shape import Field, Kind, Label, Value

_FIXED = frozenset(
    {Fd.TYPE_FLOAT, Fd.TYPE_DOUBLE, Fd.TYPE_FIXED32, Fd.TYPE_FIXED64, Fd.TYPE_SFIXED32, Fd.TYPE_SFIXED64}
)
#: Columns of strings have 32-bit offsets.
_MAX_BYTES = 2**29


def is_fast(message: Any) -> bool:
    """Whether this message type is one that ptars is right for: of proto3, and with fields in all it contains.

    Those that are inside of others must be declared in the order of their numbers: only columns are put in order.
    """
    found = _contained(message)
    inside = [field.message_type for each in found for field in each.fields if field.message_type is not None]
    return all(_is_right(each) for each in found) and all(_is_in_order(each) for each in inside)


def _is_in_order(message: Any) -> bool:
    numbers = [field.number for field in message.fields]
    return numbers == sorted(numbers)


def _is_right(message: Any) -> bool:
    # google.type.Date and the like are dates to it, and messages to everybody else.
    is_plain = not message.full_name.startswith("google.type.")
    return is_plain and bool(message.fields) and _syntax(message) == "proto3"


def _syntax(message: Any) -> str:
    file = descriptor_pb2.FileDescriptorProto()
    message.file.CopyToProto(file)
    return file.syntax


def _contained(message: Any) -> list[Any]:
    found = {message.full_name: message}
    level = [message]
    while level:
        inner = [field.message_type for each in level for field in each.fields if field.message_type is not None]
        level = [each for each in inner if each.full_name not in found]
        found |= {each.full_name: each for each in level}
    return list(found.values())


class FastDecoder:
    """Reads messages of one type that `is_fast`."""

    def __init__(self, descriptor: Any, fields: Sequence[Field], unit: str) -> None:
        config = ptars.PtarsConfig(timestamp_unit=unit, duration_unit=unit, enum_repr="string")
        # Kept: the handler belongs to it.
        self._pool = ptars.HandlerPool([descriptor.file], config=config)
        self._handler = self._pool.get_for_message(descriptor)
        self._fields = fields
        self._plain = PlainDecoder(descriptor, fields)
        self._checks_first = any(
            field.type in _FIXED and field.is_repeated for each in _contained(descriptor) for field in each.fields
        )

    def decode(self, bodies: Sequence[bytes]) -> tuple[list[pa.Array], list[BadMessage]]:
        """The columns of those that are messages, and the others."""
        bodies = list(bodies)
        bad: list[BadMessage] = []
        if self._checks_first:
            bad, bodies = self._refuse(bodies)
        columns = self._try(bodies)
        if columns is None and not self._checks_first:
            bad, bodies = self._refuse(bodies)
            columns = self._try(bodies)
        if columns is None:
            columns, more = self._plain.decode(bodies)
            return columns, _merged(bad, more)
        return self._again(bodies, columns, bad)

    def _refuse(self, bodies: list[bytes]) -> tuple[list[BadMessage], list[bytes]]:
        bad = self._plain.refusals(bodies)
        refused = {each.index for each in bad}
        return bad, [body for i, body in enumerate(bodies) if i not in refused] if bad else bodies

    def _try(self, bodies: list[bytes]) -> list[pa.Array] | None:
        if sum(map(len, bodies)) > _MAX_BYTES:
            return None
        try:
            batch = self._handler.list_to_record_batch(bodies)
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException:  # a panic in Rust is no Exception
            return None
        return [batch.column(field.name) for field in self._fields]

    def _again(
        self, bodies: list[bytes], columns: list[pa.Array], bad: list[BadMessage]
    ) -> tuple[list[pa.Array], list[BadMessage]]:
        doubtful = doubts(self._fields, columns)
        if not len(doubtful):
            return columns, bad
        rows, more = self._plain.decode([bodies[place] for place in doubtful.tolist()])
        # Those come behind the others, and are put where they belong; those that are bad are left out.
        refused = {each.index for each in more}
        order = np.arange(len(bodies))
        kept = [place for i, place in enumerate(doubtful.tolist()) if i not in refused]
        order[kept] = len(bodies) + np.arange(len(kept))
        gone = doubtful[sorted(refused)] if refused else doubtful[:0]
        taken = pa.array(np.delete(order, gone))
        both = [pa.concat_arrays([_as(a, b.type), b]) for a, b in zip(columns, rows, strict=True)]
        places = [BadMessage(int(doubtful[each.index]), each.error) for each in more]
        return [each.take(taken) for each in both], _merged(bad, places)


def _as(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return cast(values, kind).values


def _relaxed(kind: pa.DataType) -> pa.DataType:
    """The type without promises about nulls, which stand under null parents."""
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _relaxed(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_relaxed(kind.value_type))
    return pa.map_(kind.key_type, _relaxed(kind.item_type)) if pa.types.is_map(kind) else kind


def _merged(first: list[BadMessage], second: Sequence[BadMessage]) -> list[BadMessage]:
    """`second` are places among what `first` left."""
    if not first or not second:
        return [*first, *second]
    places = np.arange(max(each.index for each in second) + len(first) + 1)
    left = np.setdiff1d(places, [each.index for each in first])
    moved = [BadMessage(int(left[each.index]), each.error) for each in second]
    return sorted([*first, *moved], key=lambda each: each.index)


def doubts(fields: Sequence[Field], columns: Sequence[pa.Array]) -> Indices:
    """The rows that the other decoder may see otherwise."""
    found = _doubts(fields, columns)
    return np.flatnonzero(found) if found is not None else np.empty(0, np.int64)


def _doubts(fields: Sequence[Field], columns: Sequence[pa.Array]) -> Any:
    found: Any = None
    for oneof in {field.oneof for field in fields if field.oneof}:
        set_of = [_valid(column) for f, column in zip(fields, columns, strict=True) if f.oneof == oneof]
        found = _either(found, np.sum(set_of, axis=0) > 1)
    for field, column in zip(fields, columns, strict=True):
        if field.label is Label.ONE:
            found = _either(found, _value_doubts(field.value, column))
            continue
        inner = column.items if field.label is Label.MAP else column.values
        found = _either(found, _of_parents(column, _value_doubts(field.value, inner)))
        if field.label is Label.MAP:
            found = _either(found, _of_parents(column, _repeated_keys(column)))
    return found


def _value_doubts(value: Value, values: pa.Array) -> Any:
    if value.kind is Kind.MESSAGE:
        return _doubts(value.fields, values.flatten())
    if value.kind in (Kind.TIMESTAMP, Kind.DURATION):
        numbers = values.cast(pa.int64())
        # Where ptars stops counting.
        ends = pc.or_(pc.equal(numbers, 2**63 - 1), pc.equal(numbers, -(2**63)))
        return ends.fill_null(False).to_numpy(zero_copy_only=False) if pc.any(ends).as_py() else None
    return None


def _repeated_keys(column: pa.Array) -> Any:
    keys = column.keys
    if len(keys) <= 1:
        return None
    codes = keys.dictionary_encode().indices.to_numpy().astype(np.int64)
    parents = np.repeat(np.arange(len(column)), np.diff(column.offsets.to_numpy()))
    pairs = parents * (int(codes.max()) + 1) + codes
    _, first = np.unique(pairs, return_index=True)
    if len(first) == len(pairs):
        return None
    is_again = np.ones(len(pairs), bool)
    is_again[first] = False
    return is_again


def _of_parents(column: pa.Array, found: Any) -> Any:
    if found is None or not found.any():
        return None
    parents = np.zeros(len(column), bool)
    parents[np.repeat(np.arange(len(column)), np.diff(column.offsets.to_numpy()))[found]] = True
    return parents


def _valid(column: pa.Array) -> Any:
    return column.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)


def _either(first: Any, second: Any) -> Any:
    return second if first is None else first if second is None else first | second


class FastEncoder:
    """Writes messages of one type that `is_fast`, of columns as `to_fields` makes them."""

    def __init__(self, descriptor: Any, fields: Sequence[Field], unit: str) -> None:
        config = ptars.PtarsConfig(timestamp_unit=unit, duration_unit=unit, enum_repr="int32")
        self._pool = ptars.HandlerPool([descriptor.file], config=config)
        self._handler = self._pool.get_for_message(descriptor)
        self._schema = pa.schema([(field.name, _relaxed(field.type)) for field in self._handler.schema()])
        self._plain = PlainEncoder(descriptor, fields)
        self._names = [field.name for field in fields]

    def encode(self, columns: Sequence[pa.Array]) -> pa.Array:
        """`binary`, a message for each row."""
        if any(_has_negative_zero(column) for column in columns):
            # It takes them for zeros, which need not be written.
            return self._plain.encode(columns)
        named = dict(zip(self._names, columns, strict=True))
        arrays = [_as(named[field.name], field.type) for field in self._schema]
        return self._handler.record_batch_to_array(pa.RecordBatch.from_arrays(arrays, schema=self._schema))


def _has_negative_zero(values: pa.Array) -> bool:
    kind = values.type
    if pa.types.is_struct(kind):
        return any(_has_negative_zero(child) for child in values.flatten())
    if pa.types.is_list(kind):
        return _has_negative_zero(values.values)
    if pa.types.is_map(kind):
        return _has_negative_zero(values.items)
    if not pa.types.is_floating(kind):
        return False
    numbers = values.to_numpy(zero_copy_only=False)
    return bool(np.any((numbers == 0) & np.signbit(numbers)))
