"""`ArroyoSchema`: an Arrow schema that knows its event time and its keys."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from arroyo_core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ArroyoSchema:
    """The type of a stream.

    `timestamp_column` names the event-time column (any Arrow timestamp), None where there is none.
    `key_columns` names the columns the stream is partitioned by: None for a stream that is not
    keyed, `()` for one global group, whose rows all go to subtask 0.
    """

    schema: pa.Schema
    timestamp_column: str | None = None
    key_columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        names = self.schema.names
        if len(set(names)) != len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise ConfigError(f"columns appear twice: {', '.join(twice)}")
        for name in (*([self.timestamp_column] if self.timestamp_column else []), *(self.key_columns or ())):
            if name not in names:
                raise ConfigError(f"no column {name!r}", value=name, allowed=names)
        if self.timestamp_column and not pa.types.is_timestamp(self.schema.field(self.timestamp_column).type):
            found = self.schema.field(self.timestamp_column).type
            raise ConfigError(f"event-time column {self.timestamp_column!r} is {found}, not a timestamp")

    @property
    def names(self) -> list[str]:
        return list(self.schema.names)

    @property
    def is_keyed(self) -> bool:
        return self.key_columns is not None

    def with_keys(self, key_columns: tuple[str, ...] | None) -> ArroyoSchema:
        return replace(self, key_columns=key_columns)

    def with_schema(self, schema: pa.Schema) -> ArroyoSchema:
        """The same stream with other columns; keys and timestamp stay where all their columns do."""
        names = set(schema.names)
        keys = self.key_columns
        return ArroyoSchema(
            schema,
            self.timestamp_column if self.timestamp_column in names else None,
            keys if keys is not None and names.issuperset(keys) else None,
        )
