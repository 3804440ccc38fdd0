"""Columns on their way from messages to rows: values that do not fit make their message bad, and harm no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_formats.format import BadMessage, Decoded, Indices

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Column:
    """Values, and the places of those that do not fit, with the reason."""

    values: pa.Array
    bad: Mapping[int, str] = field(default_factory=dict)

    def and_bad(self, more: Mapping[int, str]) -> Column:
        return Column(self.values, {**more, **self.bad}) if more else self


#: Takes values of one type to another. Null stays null.
Step = Callable[[pa.Array], Column]


def flagged(is_bad: pa.Array, reason: str) -> dict[int, str]:
    """The places where a boolean array is true."""
    if not pc.any(is_bad).as_py():
        return {}
    return dict.fromkeys(np.flatnonzero(is_bad.fill_null(False).to_numpy(zero_copy_only=False)).tolist(), reason)


def attempt(values: pa.Array, call: Callable[[pa.Array], pa.Array], kind: pa.DataType, reason: str) -> Column:
    """What `call` makes of all values; those that it refuses are null, and bad.

    Halves what is refused, so a bad value costs the logarithm of its neighbours.
    """
    bad: dict[int, str] = {}
    parts: list[pa.Array] = []
    _attempt(values, 0, call, kind, reason, parts, bad)
    return Column(parts[0] if len(parts) == 1 else pa.concat_arrays(parts), bad)


def _attempt(
    values: pa.Array,
    first: int,
    call: Callable[[pa.Array], pa.Array],
    kind: pa.DataType,
    reason: str,
    parts: list[pa.Array],
    bad: dict[int, str],
) -> None:
    try:
        parts.append(call(values))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, ValueError):
        if len(values) <= 1:
            parts.append(pa.nulls(len(values), kind))
            if len(values):
                bad[first] = reason
            return
        half = len(values) // 2
        _attempt(values[:half], first, call, kind, reason, parts, bad)
        _attempt(values[half:], first + half, call, kind, reason, parts, bad)


def cast(values: pa.Array, kind: pa.DataType) -> Column:
    """Cast where no value is harmed; the others are bad. Fields of structs are found by name, and null where absent."""
    if values.type.equals(kind):
        return Column(values)
    if pa.types.is_struct(kind) and pa.types.is_struct(values.type):
        return _cast_struct(values, kind)
    if pa.types.is_list(kind) and pa.types.is_list(values.type):
        values = compact(values)
        items = cast_field(values.values, kind.value_field)
        made = pa.ListArray.from_arrays(values.offsets, items.values, type=kind, mask=null_mask(values))
        return Column(made, parents_of(values, items.bad))
    if pa.types.is_map(kind) and pa.types.is_map(values.type):
        values = compact(values)
        keys, items = cast_field(values.keys, kind.key_field), cast_field(values.items, kind.item_field)
        made = pa.MapArray.from_arrays(values.offsets, keys.values, items.values, type=kind, mask=null_mask(values))
        return Column(made, parents_of(values, {**keys.bad, **items.bad}))
    return attempt(values, lambda part: part.cast(kind, safe=True), kind, f"a value does not fit {kind}")


def cast_field(values: pa.Array, wanted: pa.Field, hidden: pa.Array | None = None) -> Column:
    """As `cast`; a null is bad where the field has none, but for `hidden` places, under a null parent."""
    column = cast(values, wanted.type)
    if wanted.nullable or not values.null_count:
        return column
    is_wrong = values.is_null() if hidden is None else pc.and_not(values.is_null(), hidden)
    return column.and_bad(flagged(is_wrong, "null, where it cannot be null"))


def _cast_struct(values: pa.Array, kind: pa.DataType) -> Column:
    mask = null_mask(values)
    found = dict(zip((field.name for field in values.type), values.flatten(), strict=True))
    bad: dict[int, str] = {}
    arrays = []
    for wanted in kind:
        column = cast_field(found.get(wanted.name, pa.nulls(len(values), wanted.type)), wanted, mask)
        arrays.append(column.values)
        bad |= {row: f"{wanted.name}: {reason}" for row, reason in column.bad.items() if row not in bad}
    return Column(pa.StructArray.from_arrays(arrays, fields=list(kind), mask=mask), within_valid(values, bad))


def null_mask(values: pa.Array) -> pa.Array | None:
    """Where values are null, as the makers of nested arrays take it."""
    return values.is_null() if values.null_count else None


def compact(values: pa.Array) -> pa.Array:
    """The same lists or maps, with no items but theirs: not of a larger array, nor of lists that are null."""
    return values.take(pa.array(np.arange(len(values))))


def parents_of(values: pa.Array, bad: Mapping[int, str]) -> dict[int, str]:
    """For places in the items of lists or maps, the places of the lists."""
    if not bad:
        return {}
    offsets = values.offsets.to_numpy()
    places = np.searchsorted(offsets, np.fromiter(bad, np.int64, len(bad)), side="right") - 1
    return dict(zip(places.tolist(), bad.values(), strict=True))


def within_valid(values: pa.Array, bad: Mapping[int, str]) -> dict[int, str]:
    """Without those of a null parent, where anything may stand."""
    if not bad or not values.null_count:
        return dict(bad)
    is_valid = values.is_valid().to_numpy(zero_copy_only=False)
    return {place: reason for place, reason in bad.items() if is_valid[place]}


@dataclass(frozen=True, slots=True)
class Rows:
    """What some messages hold, on its way to a batch."""

    columns: Sequence[Column]
    #: Messages that have no row in the columns, by their places among all.
    undecoded: Sequence[BadMessage] = ()
    #: Places in the columns of rows that do not fit as a whole, with the reason.
    wrong: Mapping[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class Gathering:
    """Collects rows of messages that were read in groups, and gives them in the order of the messages."""

    schema: pa.Schema
    count: int
    _parts: list[pa.RecordBatch] = field(default_factory=list)
    _origins: list[Indices] = field(default_factory=list)
    _bad: list[BadMessage] = field(default_factory=list)

    def add(self, rows: Rows, origins: Indices) -> None:
        """The rows of the messages of these numbers."""
        undecoded = [each.index for each in rows.undecoded]
        kept = np.delete(origins, undecoded) if undecoded else origins
        self._bad += [BadMessage(int(origins[each.index]), each.error) for each in rows.undecoded]
        wrong = dict(rows.wrong)
        for name, column in zip(self.schema.names, rows.columns, strict=True):
            wrong |= {place: f"{name}: {reason}" for place, reason in column.bad.items() if place not in wrong}
        arrays = [column.values for column in rows.columns]
        if wrong:
            self._bad += [BadMessage(int(kept[place]), reason) for place, reason in wrong.items()]
            is_right = np.ones(len(kept), bool)
            is_right[list(wrong)] = False
            kept = kept[is_right]
            arrays = [array.filter(pa.array(is_right)) for array in arrays]
        self._parts.append(_batch(arrays, self.schema, len(kept)))
        self._origins.append(kept)

    def add_bad(self, bad: Sequence[BadMessage]) -> None:
        self._bad += bad

    def decoded(self) -> Decoded:
        bad = sorted(self._bad, key=lambda each: each.index)
        if len(self._parts) == 1:
            return Decoded(self._parts[0], self._origins[0] if bad else None, bad)
        if not self._parts:
            return Decoded(_batch([pa.nulls(0, f.type) for f in self.schema], self.schema, 0), _no_rows(bad), bad)
        origins = np.concatenate(self._origins)
        order = np.argsort(origins, kind="stable")
        table = pa.Table.from_batches(self._parts, schema=self.schema).combine_chunks()
        (whole,) = table.to_batches() or [_batch([pa.nulls(0, f.type) for f in self.schema], self.schema, 0)]
        return Decoded(whole.take(pa.array(order)), origins[order] if bad else None, bad)


def _no_rows(bad: Sequence[BadMessage]) -> Indices | None:
    return np.empty(0, np.int64) if bad else None


def _batch(arrays: Sequence[pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    if not arrays:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
    return pa.RecordBatch.from_arrays(list(arrays), schema=schema)
