"""What a table asks of whoever writes to it: columns, partitions, and features of its protocol."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from arroyo_core.errors import ConfigError, DataError
from arroyo_delta.types import fits, stored_schema

if TYPE_CHECKING:
    from deltalake import DeltaTable

#: Writers know these, or need not know them where they are not used; the use is looked for.
_KNOWN_FEATURES = frozenset(
    {
        "appendOnly",
        "invariants",
        "checkConstraints",
        "changeDataFeed",
        "generatedColumns",
        "columnMapping",
        "identityColumns",
        "timestampNtz",
        "deletionVectors",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
_COMPUTED = ("delta.generationExpression", "delta.invariants")
_TRANSACTION_RETENTION = "delta.setTransactionRetentionDuration"


@dataclass(frozen=True, slots=True)
class TableShape:
    """The columns of a table, and those among them that it is partitioned by."""

    schema: pa.Schema
    partition_by: tuple[str, ...]

    def written(self, stream: pa.Schema, *, can_add: bool) -> pa.Schema:
        """The columns that rows of a stream are written with: the table's, as far as there are any, then new ones.

        Raises `DataError` where the rows do not fit.
        """
        stored = stored_schema(stream)
        added = [name for name in stream.names if name not in self.schema.names]
        if added and not can_add:
            raise DataError(
                f"the table has no column {_named(added)}: choose schema_evolution: add, or leave it out in front of "
                f"the sink; the table has {_named(self.schema.names)}"
            )
        missing = [
            field.name
            for field in self.schema
            if field.name not in stream.names and (not field.nullable or field.name in self.partition_by)
        ]
        if missing:
            raise DataError(f"the input has no column {_named(missing)}, which the table needs")
        fields = []
        for field in self.schema:
            if field.name not in stream.names:
                continue
            found = stream.field(field.name).type
            if not fits(found, field.name, field.type):
                raise DataError(
                    f"column {field.name!r} is {found} in the input and {field.type} in the table: cast it in front of "
                    "the sink"
                )
            fields.append(field.remove_metadata())
        return pa.schema([*fields, *(stored.field(name) for name in added)])


def shape_of(table: DeltaTable) -> TableShape:
    schema = pa.schema(table.schema()).remove_metadata()
    return TableShape(schema, tuple(table.metadata().partition_columns))


def new_shape(stream: pa.Schema, partition_by: Sequence[str]) -> TableShape:
    """That of a table that is made for a stream; raises `ConfigError`."""
    return TableShape(stored_schema(stream), tuple(partition_by))


def check_partitions(schema: pa.Schema, columns: Sequence[str]) -> None:
    """Raise `ConfigError` where a table cannot be partitioned by the columns."""
    for index, name in enumerate(columns):
        place = f"partition_by[{index}]"
        if name not in schema.names:
            raise ConfigError(f"no column {name!r}", field=place, value=name, allowed=schema.names)
        if name in columns[:index]:
            raise ConfigError(f"column {name!r} is named twice", field=place, value=name)
        kind = schema.field(name).type
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_floating(kind):
            raise ConfigError(f"column {name!r} is {kind}: its values cannot name partitions", field=place, value=name)
    if columns and len(columns) == len(schema.names):
        raise ConfigError("a table must have a column that it is not partitioned by", field="partition_by")


def check_writable(table: DeltaTable, *, removes: bool) -> None:
    """Raise `DataError` for a table with rules that this sink does not know. `removes`: rows are taken away, too."""
    configuration = table.metadata().configuration
    protocol = table.protocol()
    unknown = sorted(set(protocol.writer_features or ()) - _KNOWN_FEATURES)
    problems = [f"the feature {name}" for name in unknown]
    problems += [f"the constraint {key}" for key in sorted(configuration) if key.startswith("delta.constraints.")]
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        problems.append("column mapping")
    for field in json.loads(table.schema().to_json())["fields"]:
        if any(key in _COMPUTED or key.startswith("delta.identity.") for key in field["metadata"]):
            problems.append(f"the column {field['name']!r}, whose values are computed or checked")
    if _TRANSACTION_RETENTION in configuration:
        problems.append(
            f"the property {_TRANSACTION_RETENTION}: the markers of this sink would expire, and an epoch that is "
            "committed again would be there twice"
        )
    if removes and configuration.get("delta.appendOnly", "").lower() == "true":
        problems.append("the property delta.appendOnly, and this mode takes rows away")
    if removes and "deletionVectors" in (protocol.writer_features or ()):
        problems.append("the feature deletionVectors, and this mode writes whole files")
    if problems:
        raise DataError(f"delta.sink does not write to a table with {'; nor with '.join(problems)}")


def _named(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)
