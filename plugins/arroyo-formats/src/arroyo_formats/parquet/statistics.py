"""What the statistics of row groups tell of their columns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from arroyo_formats.conditions import ANYTHING, NOTHING_BUT_NULLS, Bounds, Kind, Pieces, kind_of
from arroyo_formats.conditions.bounds import NANOSECONDS, Value
from arroyo_formats.conform import plain_type

_UNITS = {
    "milliseconds": NANOSECONDS["ms"],
    "microseconds": NANOSECONDS["us"],
    "nanoseconds": NANOSECONDS["ns"],
}


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A column of a file, as Parquet stores it."""

    index: int
    physical: str
    #: What Parquet says of its values, such as the unit of times.
    logical: Mapping[str, Any]
    scale: int

    @property
    def type(self) -> str:
        return str(self.logical["Type"])


class GroupBounds:
    """The bounds of some columns, by row group of one file."""

    def __init__(self, file: pq.ParquetFile, pieces: Pieces) -> None:
        self._metadata = file.metadata
        #: None where the statistics of a column say nothing about the rows.
        self._leaves: dict[str, _Leaf | None] = {}
        self._missing: set[str] = set()
        names = file.schema_arrow.names
        for name in pieces.columns:
            if name not in names:
                self._missing.add(name)
                continue
            self._leaves[name] = self._leaf(file, name, pieces.types.get(name))

    def of(self, group: int, name: str) -> Bounds:
        """Never narrower than the values are."""
        if name in self._missing:
            return NOTHING_BUT_NULLS
        leaf = self._leaves[name]
        if leaf is None:
            return ANYTHING
        rows = self._metadata.row_group(group)
        chunk = rows.column(leaf.index)
        statistics = chunk.statistics if chunk.is_stats_set else None
        if statistics is None:
            return ANYTHING
        nulls = statistics.null_count if statistics.has_null_count else None
        if nulls is not None and nulls == rows.num_rows:
            return NOTHING_BUT_NULLS
        return _bounds(leaf, statistics, may_be_null=nulls != 0)

    def _leaf(self, file: pq.ParquetFile, name: str, wanted: pa.DataType | None) -> _Leaf | None:
        if file.schema_arrow.names.count(name) != 1:
            return None
        found = plain_type(file.schema_arrow.field(name).type)
        if not _keeps_order(found, found if wanted is None else wanted):
            return None
        # A struct may have a leaf of the same path as a column with a dot in its name.
        leaves = [index for index in range(len(file.schema)) if file.schema.column(index).path == name]
        if len(leaves) != 1:
            return None
        column = file.schema.column(leaves[0])
        return _Leaf(leaves[0], str(column.physical_type), json.loads(column.logical_type.to_json()), column.scale)


def wanted_runs(file: pq.ParquetFile, groups: Sequence[int], pieces: Pieces | None) -> list[tuple[range, bool]]:
    """The row groups, neighbours together that may have wanted rows, or have none."""
    if pieces is None:
        return [(range(groups[0], groups[-1] + 1), True)] if groups else []
    bounds = GroupBounds(file, pieces)
    runs: list[tuple[range, bool]] = []
    for group in groups:
        is_wanted = pieces.are_wanted(lambda name, group=group: bounds.of(group, name))  # type: ignore[misc]
        if is_wanted and runs and runs[-1][1]:
            runs[-1] = (range(runs[-1][0].start, group + 1), True)
        else:
            runs.append((range(group, group + 1), is_wanted))
    return runs


def _keeps_order(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of a file are the same as rows of the stream, or the job fails."""
    kind = kind_of(wanted)
    if kind is None or _file_kind(found) is not kind:
        return False
    if kind is not Kind.NUMBER or found == wanted:
        return True
    is_wider = found == pa.float32() and wanted == pa.float64()
    return is_wider or all(pa.types.is_integer(each) for each in (found, wanted))


def _file_kind(kind: pa.DataType) -> Kind | None:
    """Wherever the times of a file are shown, they are stored in UTC."""
    return Kind.TIME if pa.types.is_timestamp(kind) else kind_of(kind)


def _bounds(leaf: _Leaf, statistics: Any, *, may_be_null: bool) -> Bounds:
    unknown = Bounds(may_be_null=may_be_null)
    if not statistics.has_min_max:
        return unknown
    try:
        low, high = _value(leaf, statistics.min_raw), _value(leaf, statistics.max_raw)
    except (ValueError, KeyError, TypeError):
        return unknown
    if low is None or high is None or not low <= high:  # type: ignore[operator]
        return unknown
    return Bounds(_kind(leaf, low), low, high, may_be_null=may_be_null, may_be_nan=isinstance(low, float))


def _kind(leaf: _Leaf, value: Value) -> Kind:
    if isinstance(value, bool):
        return Kind.BOOLEAN
    if isinstance(value, bytes):
        return Kind.TEXT
    return {"Timestamp": Kind.TIME, "Date": Kind.DAY}.get(leaf.type, Kind.NUMBER)


def _value(leaf: _Leaf, raw: Any) -> Value | None:
    """The value of stored bytes; None for a type whose order in the file is another."""
    name, physical = leaf.type, leaf.physical
    if name == "Decimal":
        return _decimal(raw, leaf.scale)
    if name == "Timestamp" and physical == "INT64":
        return int(raw) * int(_UNITS[leaf.logical["timeUnit"]])
    if name == "Int" and not leaf.logical["isSigned"]:
        # What is stored has a sign.
        return int(raw) % (2**64 if physical == "INT64" else 2**32)
    if name == "String" and physical == "BYTE_ARRAY":
        return bytes(raw)
    if physical in ("INT32", "INT64") and name in ("Int", "Date", "None"):
        return int(raw)
    if physical in ("FLOAT", "DOUBLE") and name == "None":
        return float(raw)
    return bool(raw) if physical == "BOOLEAN" else None


def _decimal(raw: Any, scale: int) -> Value:
    number = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))
