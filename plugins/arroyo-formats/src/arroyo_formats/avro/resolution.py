"""How values of one schema become columns of another: Avro's rules, on whole columns.

A plan is made once for two schemas; what they cannot agree on is found there. What only some values cannot (a null, a
symbol, a branch) makes their messages bad. Names of records are not compared: where there is a choice, they decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_formats.avro.arrow_types import arrow_type, storage_type
from arroyo_formats.avro.schema import (
    MISSING,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Node,
    Record,
    Scalar,
    SchemaError,
    Union,
    describe,
    members,
)
from arroyo_formats.avro.storage import default_value, from_storage
from arroyo_formats.columns import Column, Step, cast, flagged, null_mask, parents_of, within_valid

#: What a type may be read as, besides itself.
_PROMOTIONS: Mapping[str, frozenset[str]] = {
    "int": frozenset({"long", "float", "double"}),
    "long": frozenset({"float", "double"}),
    "float": frozenset({"double"}),
    "string": frozenset({"bytes"}),
    "bytes": frozenset({"string"}),
}
_TIMES = ("date", "time-", "timestamp-", "local-timestamp-")


class IncompatibleError(SchemaError):
    """Values of one schema can never be read as another; the message begins with the field."""


def resolve(writer: Record, reader: Record) -> Step:
    """Takes storage of the writer's schema to a struct of the reader's columns; raises `IncompatibleError`."""
    return _record(writer, reader, "")


def _resolve(writer: Node, reader: Node, at: str) -> Step:
    written, may_be_null = members(writer)
    wanted, takes_null = members(reader)
    if not written:
        if not takes_null:
            raise _error(at, writer, reader)
        kind = arrow_type(reader)
        return lambda values: Column(pa.nulls(len(values), kind))
    if not wanted:
        kind = pa.null()
        return lambda values: Column(
            pa.nulls(len(values), kind), flagged(values.is_valid(), f"a {describe(writer)} where only null is read")
        )
    if len(written) == len(wanted) == 1:
        step = _value(written[0], wanted[0], at)
    else:
        step = _several(written, wanted, reader, at)
    if not may_be_null or takes_null:
        return step
    # Only the values can tell.
    return lambda values: step(values).and_bad(flagged(values.is_null(), "null, where it cannot be null"))


def _value(writer: Node, reader: Node, at: str) -> Step:
    match writer, reader:
        case Scalar(), Scalar():
            return _scalar(writer, reader, at)
        case Fixed(), Fixed() if writer.size == reader.size:
            return from_storage(reader)
        case Enum(), Enum():
            return _enum(writer, reader)
        case Array(), Array():
            return _array(_resolve(writer.items, reader.items, f"{at}[]"), arrow_type(reader))
        case Map(), Map():
            return _map(_resolve(writer.values, reader.values, f"{at}{{}}"), arrow_type(reader))
        case Record(), Record():
            return _record(writer, reader, at)
    raise _error(at, writer, reader)


def _scalar(writer: Scalar, reader: Scalar, at: str) -> Step:
    if writer.kind != reader.kind and reader.kind not in _PROMOTIONS.get(writer.kind, ()):
        raise _error(at, writer, reader)
    if "decimal" in (writer.logical, reader.logical):
        both = (writer.precision, writer.scale), (reader.precision, reader.scale)
        if writer.logical == reader.logical and both[0] != both[1]:
            raise IncompatibleError(f"{at}: decimal{both[0]} cannot be read as decimal{both[1]}")
    if writer.logical == reader.logical or not (_is_time(writer) and _is_time(reader)):
        # Without a common meaning, the bytes have the reader's.
        read = from_storage(Scalar(writer.kind))
        if writer.kind == reader.kind:
            return from_storage(reader)
        target = arrow_type(reader)
        return lambda values: _then(read(values), target)
    as_written, target = from_storage(writer), arrow_type(reader)
    if pa.types.is_timestamp(target) != pa.types.is_timestamp(arrow_type(writer)):
        raise _error(at, writer, reader)
    return lambda values: _then(as_written(values), target)


def _is_time(node: Scalar) -> bool:
    return node.logical is not None and node.logical.startswith(_TIMES)


def _then(column: Column, kind: pa.DataType) -> Column:
    if pa.types.is_floating(kind):
        # Avro lets a long be read as a float, whatever digits that costs.
        return Column(column.values.cast(kind, safe=False), column.bad)
    return cast(column.values, kind).and_bad(column.bad)


def _enum(writer: Enum, reader: Enum) -> Step:
    unknown = [symbol for symbol in writer.symbols if symbol not in reader.symbols]
    if not unknown:
        return Column
    set_of = pa.array(unknown, pa.string())
    if reader.default is not None:
        default = pa.scalar(reader.default, pa.string())
        return lambda values: Column(pc.if_else(pc.is_in(values, set_of), default, values))
    reason = f"a symbol that enum {reader.name} does not have"
    return lambda values: Column(values, flagged(pc.is_in(values, set_of), reason))


def _array(item: Step, kind: pa.DataType) -> Step:
    def step(values: pa.Array) -> Column:
        items = item(values.values)
        lists = pa.ListArray.from_arrays(values.offsets, items.values, type=kind, mask=null_mask(values))
        return Column(lists, within_valid(values, parents_of(values, items.bad)))

    return step


def _map(item: Step, kind: pa.DataType) -> Step:
    def step(values: pa.Array) -> Column:
        items = item(values.items)
        maps = pa.MapArray.from_arrays(values.offsets, values.keys, items.values, type=kind, mask=null_mask(values))
        return Column(maps, within_valid(values, parents_of(values, items.bad)))

    return step


def _record(writer: Record, reader: Record, at: str) -> Step:
    places = {field.name: place for place, field in enumerate(writer.fields)}
    steps: list[tuple[int, Step]] = []
    for field in reader.fields:
        name = f"{at}.{field.name}" if at else field.name
        found = next((each for each in (field.name, *field.aliases) if each in places), None)
        if found is None:
            steps.append((-1, _default(field, name)))
        else:
            place = places[found]
            steps.append((place, _resolve(writer.fields[place].type, field.type, name)))
    fields = list(arrow_type(reader))

    def step(values: pa.StructArray) -> Column:
        bad: dict[int, str] = {}
        arrays = []
        for (place, inner), field in zip(steps, fields, strict=True):
            # A field that was not written: a column of any kind, as long as the others.
            column = inner(values.field(place) if place >= 0 else values)
            arrays.append(column.values)
            bad |= {row: f"{field.name}: {reason}" for row, reason in column.bad.items() if row not in bad}
        if not fields:
            return Column(pa.array([{}] * len(values), pa.struct([])))
        made = pa.StructArray.from_arrays(arrays, fields=fields, mask=null_mask(values))
        return Column(made, within_valid(values, bad))

    return step


def default_column(field: Field, rows: int) -> pa.Array:
    """The default of a field, as often as there are rows; raises `IncompatibleError` where it has none."""
    return _default(field, field.name)(pa.nulls(rows)).values


def _default(field: Field, at: str) -> Step:
    if field.default is MISSING:
        raise IncompatibleError(f"{at}: it was not written, and has no default")
    try:
        stored = pa.array([default_value(field.type, field.default)], storage_type(field.type))
    except (ValueError, TypeError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise IncompatibleError(f"{at}: {field.default!r} is no default of {describe(field.type)}") from error
    made = _resolve(field.type, field.type, at)(stored)
    if made.bad:
        raise IncompatibleError(f"{at}: {field.default!r} is no default of {describe(field.type)}")
    return lambda values: Column(made.values.take(pa.array(np.zeros(len(values), np.int64))))


def _several(written: Sequence[Node], wanted: Sequence[Node], reader: Node, at: str) -> Step:
    """Of a union: each branch is read as the first that takes it. Branches that none takes make their values bad."""
    chosen = [_choose(branch, wanted, at) for branch in written]
    if all(choice is None for choice in chosen):
        raise _error(at, Union(tuple(written)), reader)
    kind = arrow_type(reader)

    def step(values: pa.Array) -> Column:
        branches = values.flatten() if len(written) > 1 else [values]
        bad: dict[int, str] = {}
        targets: list[list[pa.Array]] = [[] for _ in wanted]
        for branch, node, choice in zip(branches, written, chosen, strict=True):
            if choice is None:
                bad |= flagged(branch.is_valid(), f"a {describe(node)}, which cannot be read here")
                continue
            target, inner = choice
            column = inner(branch)
            targets[target].append(column.values)
            bad |= within_valid(branch, column.bad)
        arrays = [
            pc.coalesce(*each) if len(each) > 1 else each[0] if each else pa.nulls(len(values), arrow_type(node))
            for each, node in zip(targets, wanted, strict=True)
        ]
        bad = within_valid(values, bad)
        if len(wanted) == 1:
            return Column(arrays[0], bad)
        return Column(pa.StructArray.from_arrays(arrays, fields=list(kind), mask=values.is_null()), bad)

    return step


def _choose(branch: Node, wanted: Sequence[Node], at: str) -> tuple[int, Step] | None:
    order = sorted(range(len(wanted)), key=lambda place: not _is_same(branch, wanted[place]))
    for place in order:
        try:
            return place, _value(branch, wanted[place], at)
        except IncompatibleError:
            continue
    return None


def _is_same(writer: Node, reader: Node) -> bool:
    if isinstance(writer, Scalar) and isinstance(reader, Scalar):
        return writer.kind == reader.kind
    if isinstance(writer, Fixed | Enum | Record) and isinstance(reader, Fixed | Enum | Record):
        return type(writer) is type(reader) and writer.name in (reader.name, *reader.aliases)
    return type(writer) is type(reader)


def _error(at: str, writer: Any, reader: Any) -> IncompatibleError:
    place = f"{at}: " if at else ""
    return IncompatibleError(f"{place}{describe(writer)} cannot be read as {describe(reader)}")
