"""Debezium's envelopes in JSON: a change of a row in each, `{"before": {...}, "after": {...}, "op": "u"}`.

`c` (created) and `r` (read) add the row `after`, `d` (deleted) takes back the row `before`, `u` (updated) does both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api.hashing import is_hashable
from arroyo_core.api.updating import (
    UPDATING_META,
    interleave_updates,
    make_updates,
    retract_mask,
    row_ids,
)
from arroyo_core.errors import ConfigError
from arroyo_formats.format import Indices
from arroyo_formats.json.parser import JsonParser, object_type, read_json
from arroyo_formats.text.salvage import BadTextError

BEFORE, AFTER, OP = "before", "after", "op"
ADDING, TAKING_BACK = ("c", "r", "u"), ("u", "d")
_HAS = "has "
_SIDES = (BEFORE, AFTER)

Mask = npt.NDArray[np.bool_]


class DebeziumParser(JsonParser):
    """Parses objects to one flat row each: `op`, and for both sides whether it is there, and its columns.

    One with another `op`, or without the side that its `op` needs, is bad.
    """

    def __init__(self, schema: pa.Schema, *, unit: str = "line", skips_blank: bool = True) -> None:
        super().__init__(flat_schema(schema), unit=unit, skips_blank=skips_blank)
        self._row_schema = schema

    def _object_type(self) -> Any:
        row = pa.struct(list(self._row_schema))
        return object_type([pa.field(OP, pa.string()), *(pa.field(side, row) for side in _SIDES)])

    def parse(self, data: bytes) -> pa.RecordBatch:
        batch = super().parse(data)
        _check(batch)
        return batch

    def _key(self, column: str) -> str:
        return _column(column)

    def _read(self, data: bytes, types: Mapping[str, pa.DataType]) -> pa.Table:
        # Arrow takes any bytes for a string, and would fail much later.
        data.decode("utf-8")
        sides = {
            side: pa.struct([(_column(name), kind) for name, kind in types.items() if name.startswith(f"{side}.")])
            for side in _SIDES
        }
        table = read_json(data, pa.schema([*sides.items(), (OP, pa.string())]))
        columns = {OP: table.column(OP)}
        for side, kind in sides.items():
            struct = table.column(side).combine_chunks()
            columns[f"{_HAS}{side}"] = struct.is_valid()
            # flatten() takes the struct's nulls into its fields.
            columns |= {f"{side}.{field.name}": found for field, found in zip(kind, struct.flatten(), strict=True)}
        return pa.table({name: columns[name] for name in types})


def flat_schema(schema: pa.Schema) -> pa.Schema:
    """What an object is parsed to, for rows of this schema."""
    fields = [pa.field(OP, pa.string())]
    for side in _SIDES:
        fields.append(pa.field(f"{_HAS}{side}", pa.bool_()))
        fields += [pa.field(f"{side}.{field.name}", field.type) for field in schema]
    return pa.schema(fields)


def expand(flat: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The changes of parsed objects as an updating batch, in order; its ids are all the same."""
    objects = np.arange(flat.num_rows)
    parts = []
    for side, is_retract in ((BEFORE, True), (AFTER, False)):
        mask = _is_op(flat, TAKING_BACK if is_retract else ADDING)
        columns = [flat.column(f"{side}.{name}") for name in schema.names]
        rows = pa.RecordBatch.from_arrays(columns, schema=schema).filter(pa.array(mask))
        parts.append((make_updates(rows, is_retract=is_retract, ids=_no_ids(rows.num_rows)), objects[mask]))
    (retracts, retract_ranks), (appends, append_ranks) = parts
    return interleave_updates(retracts, appends, retract_ranks=retract_ranks, append_ranks=append_ranks)


def origins(flat: pa.RecordBatch) -> Indices:
    """For each row of `expand` the number of the object it came from."""
    counts = _is_op(flat, TAKING_BACK).astype(np.int64) + _is_op(flat, ADDING)
    return np.repeat(np.arange(flat.num_rows), counts)


def set_ids(batch: pa.RecordBatch, keys: Sequence[str]) -> pa.RecordBatch:
    """The updating batch with the id of each row made from the key columns."""
    rows = batch.drop_columns([UPDATING_META])
    return make_updates(rows, is_retract=retract_mask(batch), ids=row_ids(rows, keys))


def key_columns(schema: pa.Schema, primary_key: Sequence[str]) -> tuple[str, ...]:
    """The columns that make the id of a row: those configured, else all that can; raises `ConfigError`."""
    for position, name in enumerate(primary_key):
        place = f"primary_key[{position}]"
        if name not in schema.names:
            raise ConfigError(f"no column {name!r}", field=place, value=name, allowed=schema.names)
        if not is_hashable(schema.field(name).type):
            raise ConfigError(f"column {name!r} is {schema.field(name).type}: it cannot be a key", field=place)
    return tuple(primary_key) or tuple(field.name for field in schema if is_hashable(field.type))


def row_schema(envelope: pa.Schema) -> pa.Schema:
    """The columns of rows, from what was inferred of objects; empty if they are no envelopes."""
    fields: dict[str, pa.Field] = {}
    for side in (AFTER, BEFORE):
        kind = envelope.field(side).type if side in envelope.names else pa.null()
        for field in kind if pa.types.is_struct(kind) else ():
            if field.name not in fields or pa.types.is_null(fields[field.name].type):
                fields[field.name] = field
    return pa.schema(list(fields.values()))


def envelopes(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Indices]:
    """An object for each change of a batch of any stream, and the number of the row that it is about.

    A row that is taken back and then added again is one update, about the row that is added.
    """
    mask = retract_mask(batch)
    rows = batch.drop_columns([UPDATING_META]) if UPDATING_META in batch.schema.names else batch
    places = np.arange(batch.num_rows)
    before, after = np.where(mask, places, -1), np.where(mask, -1, places)
    if mask.any():
        retracts, appends = _pairs(batch, mask)
        before[appends] = retracts
        keep = np.ones(batch.num_rows, dtype=np.bool_)
        keep[retracts] = False
        before, after = before[keep], after[keep]
    ops = np.where(after < 0, "d", np.where(before < 0, "c", "u"))
    columns = [_side(rows, before), _side(rows, after), pa.array(ops, pa.string())]
    return pa.RecordBatch.from_arrays(columns, names=[BEFORE, AFTER, OP]), np.where(after < 0, before, after)


def _pairs(batch: pa.RecordBatch, mask: Mask) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows that are taken back, and those of the same id that come next, where these are added."""
    ids = pc.dictionary_encode(batch.column(UPDATING_META).field("id"), null_encoding="encode")
    codes = ids.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    is_pair = (codes[order][:-1] == codes[order][1:]) & mask[order][:-1] & ~mask[order][1:]
    return order[:-1][is_pair], order[1:][is_pair]


def _side(rows: pa.RecordBatch, places: npt.NDArray[np.int64]) -> pa.StructArray:
    is_absent = pa.array(places < 0)
    found = rows.take(pa.array(np.maximum(places, 0)))
    return pa.StructArray.from_arrays(found.columns, fields=list(rows.schema), mask=is_absent)


def _check(flat: pa.RecordBatch) -> None:
    is_known = _is_op(flat, ("c", "r", "u", "d"))
    if not is_known.all():
        row = int(np.argmin(is_known))
        found = flat.column(OP)[row].as_py()
        reason = f"op is {found!r}, not one of c, r, u and d" if found else "there is no op: c, r, u or d"
        raise BadTextError(reason, row)
    for side, ops in ((BEFORE, TAKING_BACK), (AFTER, ADDING)):
        lacks = _is_op(flat, ops) & ~flat.column(f"{_HAS}{side}").to_numpy(zero_copy_only=False)
        if lacks.any():
            row = int(np.argmax(lacks))
            raise BadTextError(f"op is {flat.column(OP)[row].as_py()!r}, and {side} is missing", row)


def _is_op(flat: pa.RecordBatch, ops: Sequence[str]) -> Mask:
    found: Mask = pc.is_in(flat.column(OP), value_set=pa.array(ops)).to_numpy(zero_copy_only=False)
    return found


def _no_ids(rows: int) -> pa.FixedSizeBinaryArray:
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), rows, [None, pa.py_buffer(bytes(16 * rows))])


def _column(name: str) -> str:
    return name.partition(".")[2]
