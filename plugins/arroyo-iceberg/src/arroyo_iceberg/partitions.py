"""Hidden partitioning: how it is written in a config, and which rows of a batch are in which partition."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.errors import ConfigError

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import Transform
    from pyiceberg.typedef import Record

IDENTITY = "identity"
#: Transforms with a number in front of the column.
_COUNTED = ("bucket", "truncate")
_PLAIN = (IDENTITY, "year", "month", "day", "hour")
_CALL = re.compile(r"\s*(?P<name>[a-z]+)\s*\(\s*(?:(?P<count>[0-9]+)\s*,\s*)?(?P<column>.+?)\s*\)\s*")
_MOST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One field of a table's partitioning."""

    transform: str
    column: str
    #: Buckets, or the width that is left.
    count: int = 0

    def __str__(self) -> str:
        if self.transform == IDENTITY:
            return self.column
        return f"{self.transform}({f'{self.count}, ' if self.count else ''}{self.column})"

    @property
    def name(self) -> str:
        """What the field is called in a table that is made, as other writers call it."""
        if self.transform == IDENTITY:
            return self.column
        return f"{self.column}_{'trunc' if self.transform == 'truncate' else self.transform}"

    def make(self) -> Transform[Any, Any]:
        """The transform of pyiceberg."""
        from pyiceberg import transforms

        made: dict[str, Transform[Any, Any]] = {
            IDENTITY: transforms.IdentityTransform(),
            "year": transforms.YearTransform(),
            "month": transforms.MonthTransform(),
            "day": transforms.DayTransform(),
            "hour": transforms.HourTransform(),
        }
        if self.transform == "bucket":
            return transforms.BucketTransform(self.count)
        return transforms.TruncateTransform(self.count) if self.transform == "truncate" else made[self.transform]


def read_partition_fields(written: Sequence[str]) -> tuple[PartitionField, ...]:
    """The fields of a config; raises `ConfigError`."""
    fields = tuple(_read(text, f"partition_by[{index}]") for index, text in enumerate(written))
    for index, found in enumerate(fields):
        if found.column in [other.column for other in fields[:index]]:
            raise ConfigError(
                f"column {found.column!r} is there twice", field=f"partition_by[{index}]", value=written[index]
            )
    return fields


def _read(text: str, place: str) -> PartitionField:
    call = _CALL.fullmatch(text)
    if call is None:
        if not text.strip() or "(" in text:
            raise ConfigError("a column, or transform(column)", field=place, value=text, allowed=_allowed())
        return PartitionField(IDENTITY, text.strip())
    name, count = call["name"], call["count"]
    if name not in (*_COUNTED, *_PLAIN):
        raise ConfigError(f"there is no transform {name!r}", field=place, value=text, allowed=_allowed())
    if name in _COUNTED and not (count and 0 < int(count) <= _MOST):
        raise ConfigError(f"{name} needs a number: {name}(16, {call['column']})", field=place, value=text)
    if name not in _COUNTED and count:
        raise ConfigError(f"{name} takes no number", field=place, value=text)
    return PartitionField(name, call["column"], int(count or 0))


def _allowed() -> list[str]:
    return ["column", *(f"{name}(column)" for name in _PLAIN[1:]), *(f"{name}(16, column)" for name in _COUNTED)]


def check_partition_fields(fields: Sequence[PartitionField], schema: Schema) -> None:
    """Raise `ConfigError` for a column that is not there, or whose type the transform does not take."""
    names = [column.name for column in schema.columns]
    for index, found in enumerate(fields):
        place = f"partition_by[{index}]"
        if found.column not in names:
            raise ConfigError(f"no column {found.column!r}", field=place, value=str(found), allowed=names)
        kind = schema.find_field(found.column).field_type
        if not kind.is_primitive or not found.make().can_transform(kind):
            raise ConfigError(
                f"column {found.column!r} is {kind}, which cannot be partitioned by {found.transform}",
                field=place,
                value=str(found),
            )


def make_spec(fields: Sequence[PartitionField], schema: Schema) -> PartitionSpec:
    """The spec of a table that is made with this schema."""
    from pyiceberg import partitioning

    return partitioning.PartitionSpec(
        *(
            partitioning.PartitionField(
                source_id=schema.find_field(found.column).field_id,
                field_id=partitioning.PARTITION_FIELD_ID_START + index,
                transform=found.make(),
                name=found.name,
            )
            for index, found in enumerate(fields)
        )
    )


def describe_spec(spec: PartitionSpec, schema: Schema) -> list[str]:
    """The fields of a table as a config has them."""
    from pyiceberg.transforms import BucketTransform, TruncateTransform, VoidTransform

    described = []
    for found in spec.fields:
        transform = found.transform
        if isinstance(transform, VoidTransform):
            continue
        count = 0
        if isinstance(transform, BucketTransform):
            count = transform.num_buckets
        elif isinstance(transform, TruncateTransform):
            count = transform.width
        name = str(transform).partition("[")[0]
        described.append(str(PartitionField(name, schema.find_column_name(found.source_id) or "", count)))
    return described


class Partitioner:
    """Tells the rows of batches apart by the partition that they are in."""

    def __init__(self, spec: PartitionSpec, schema: Schema) -> None:
        self._spec = spec
        self._schema = schema
        self._fields = [
            (found, schema.find_column_name(found.source_id) or "", schema.find_field(found.source_id).field_type)
            for found in spec.fields
        ]

    def split(self, batch: pa.RecordBatch) -> Iterator[tuple[Record, pa.RecordBatch]]:
        """Each partition, and its rows in their order. The batch has the columns of the table."""
        from pyiceberg.typedef import Record

        if not self._fields:
            yield Record(), batch
            return
        if not batch.num_rows:
            return
        codes = np.zeros(batch.num_rows, dtype=np.int64)
        values: list[list[Any]] = []
        for found, name, kind in self._fields:
            column = found.transform.pyarrow_transform(kind)(_column(batch, name))
            if isinstance(column, pa.ChunkedArray):
                column = column.combine_chunks()
            encoded = pc.dictionary_encode(column, null_encoding="encode")
            values.append(encoded.dictionary.to_pylist())
            codes = codes * max(len(values[-1]), 1) + encoded.indices.to_numpy(zero_copy_only=False)
            # Back to dense codes, or many columns would overflow.
            present, codes = np.unique(codes, return_inverse=True)
            values = [_joined(values, present)]
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(len(values[0]) + 1))
        for code, key in enumerate(values[0]):
            rows = batch if len(values[0]) == 1 else batch.take(pa.array(order[starts[code] : starts[code + 1]]))
            yield self._record(key), rows

    def _record(self, values: tuple[Any, ...]) -> Record:
        from pyiceberg.partitioning import PartitionFieldValue, PartitionKey

        found = [
            PartitionFieldValue(field=each, value=value)
            for (each, _, _), value in zip(self._fields, values, strict=True)
        ]
        return PartitionKey(field_values=found, partition_spec=self._spec, schema=self._schema).partition


def _column(batch: pa.RecordBatch, path: str) -> pa.Array:
    name, *inner = path.split(".") if path not in batch.schema.names else [path]
    column = batch.column(name)
    for part in inner:
        column = pc.struct_field(column, part)
    return column


def _joined(values: list[list[Any]], present: np.ndarray) -> list[tuple[Any, ...]]:
    """The values of each combination that is there, of the columns so far and one more."""
    if len(values) == 1:
        return [(values[0][code],) for code in present]
    before, added = values
    return [(*before[code // len(added)], added[code % len(added)]) for code in present]
