"""Puts what a table declares into the config of its operator: options, columns, metadata and keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from arroyo_core.pipeline.field_options import has_option, is_map, writable_fields
from arroyo_core.pipeline.mistakes import Mistakes, nearest
from arroyo_core.proto import options_pb2
from arroyo_sql.aliases import DEFAULTS, FORMATS, METADATA, OPTIONS, PREFIXES, Alias
from arroyo_sql.column_types import type_name
from arroyo_sql.options import ConfigDraft, Target, Unknown, find_field, fitting
from arroyo_sql.script import Column, Option, OptionValue, Table

CONNECTOR, TYPE = "connector", "type"
_EVENT_TIME = "event_time_field"
_UNSTRUCTURED = "json.unstructured"
_CHANGES = "debezium_json"


def physical_columns(table: Table) -> tuple[Column, ...]:
    """The columns that the source reads: all but those that are computed or of a message's metadata."""
    return tuple(column for column in table.columns if column.generated is None and column.metadata is None)


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Puts the options of a table into the config of its operator."""

    table: Table
    operator: str
    kind: type[Message]
    draft: ConfigDraft
    mistakes: Mistakes

    @property
    def descriptor(self) -> Descriptor:
        return cast(Descriptor, self.kind.DESCRIPTOR)

    def fill(self) -> None:
        options = self.table.options
        for key, option in options.items():
            if key not in (CONNECTOR, TYPE) and not self._is_of_planner(key):
                self._put(key, option)
        self._put_format()
        for name, value in DEFAULTS.get(self.operator, {}).items():
            if not self.draft.has(name):
                self.draft.put([name], value, self.table.options[CONNECTOR].at)

    def _is_of_planner(self, key: str) -> bool:
        """Whether it is about the table, and no field of the operator: its event time may be a computed column."""
        if key != _EVENT_TIME:
            return False
        name = self.table.options[key].value
        computed = {column.name for column in self.table.columns if column.generated is not None}
        return name in computed or _EVENT_TIME not in self.descriptor.fields_by_name

    def _put(self, key: str, option: Option) -> None:
        if self._is_of_format(key):
            return
        target = find_field(self.descriptor, key)
        alias = None
        if isinstance(target, Unknown):
            alias = self._alias(key)
            if alias is not None:
                target = find_field(self.descriptor, alias.path)
        if isinstance(target, Unknown):
            self._add_unknown(key, option, target)
            return
        value = option.value
        if alias is not None and isinstance(value, str) and value in alias.values:
            value = alias.values[value]
        if not self.draft.put_option(target, option, fitting(value, target.field)):
            message = f"option {key!r} says what another option of the table says: {'.'.join(target.keys)}"
            self.mistakes.add(message, at=option.key_at, value=key)

    def _alias(self, key: str) -> Alias | None:
        alias = OPTIONS.get(self.operator, {}).get(key)
        if alias is not None:
            return alias
        prefix, _, rest = key.partition(".")
        held = PREFIXES.get(self.operator, {}).get(prefix)
        return Alias(f"{held}.{rest}") if held and rest else None

    def _add_unknown(self, key: str, option: Option, unknown: Unknown) -> None:
        connector = self.table.options[CONNECTOR].value
        names = [*unknown.choices, *OPTIONS.get(self.operator, {})]
        if unknown.name == key and not unknown.choices:
            self.mistakes.add(f"option {key!r} has no parts", at=option.key_at, value=key)
            return
        of = f"connector {connector!r} ({self.operator})" if unknown.name == key.split(".")[0] else f"option {key!r}"
        self.mistakes.add(
            f"{of} has no option {unknown.name!r}",
            at=option.key_at,
            value=key,
            allowed=unknown.choices,
            suggestion=nearest(unknown.name, names) or nearest(key, names),
        )

    @property
    def _format(self) -> str | None:
        """The name of the format, where the operator takes one with settings."""
        found = self.descriptor.fields_by_name.get("format")
        if found is None or found.message_type is None or found.message_type.full_name != "google.protobuf.Value":
            return None
        for key in ("format", "format.name", "value.format"):
            option = self.table.options.get(key)
            if option is not None and isinstance(option.value, str):
                name = option.value.lower()
                return FORMATS.get(name, name)
        return None

    def _is_of_format(self, key: str) -> bool:
        """Whether it is the format or, as `json.time_zone`, one of its settings: they are put together at the end."""
        name = self._format
        if name is None:
            return False
        prefix = key.partition(".")[0]
        if prefix in self.descriptor.fields_by_name and prefix != "format":
            return False
        return prefix == "format" or key == "value.format" or (FORMATS.get(prefix, prefix) == name and key != prefix)

    def _put_format(self) -> None:
        name = self._format
        if name is None:
            return
        options = {key: option for key, option in self.table.options.items() if self._is_of_format(key)}
        first = next(option for key, option in options.items() if key in ("format", "format.name", "value.format"))
        unstructured = options.pop(_UNSTRUCTURED, None)
        if unstructured is not None and str(unstructured.value).lower() == "true":
            name = "raw_string"
        settings = {
            key.partition(".")[2]: option
            for key, option in options.items()
            if "." in key and key not in ("format.name", "value.format")
        }
        if not settings:
            self.draft.put(["format"], name, first.at)
            return
        self.draft.put(["format", "name"], name, first.at)
        for path, option in settings.items():
            self.draft.put_option(Target(("format", *path.split("."))), option, option.value)


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """Puts the declared columns of a source into its config, as far as it has fields for them."""

    table: Table
    operator: str
    descriptor: Descriptor
    draft: ConfigDraft
    mistakes: Mistakes

    def fill(self) -> None:
        fields = writable_fields(self.descriptor)
        if "schema" in fields and physical_columns(self.table) and _is_columns(fields["schema"]):
            put_schema(self.table, self.draft)
        self._put_metadata(fields)
        self._put_event_time(fields)
        self._put_key()

    def _put_metadata(self, fields: Mapping[str, FieldDescriptor]) -> None:
        columns = [column for column in self.table.columns if column.metadata is not None]
        for column in columns:
            at = column.metadata_at or column.at
            if "metadata" not in fields:
                message = f"{self.operator} has no metadata: column {column.name!r} cannot be METADATA"
                self.mistakes.add(message, at=at, value=column.metadata)
                continue
            part = str(column.metadata).lower()
            self.draft.put(["metadata", column.name], METADATA.get(part, part), at)

    def _put_event_time(self, fields: Mapping[str, FieldDescriptor]) -> None:
        watermark = self.table.watermark
        columns = {column.name: column for column in self.table.columns}
        option = self.table.options.get(_EVENT_TIME)
        if option is not None and columns and option.value not in columns:
            message = f"'event_time_field' names the column {option.value!r}, which the table does not have"
            name = str(option.value)
            near = nearest(name, columns)
            self.mistakes.add(message, at=option.at, value=name, allowed=tuple(columns), suggestion=near)
        if watermark is None:
            return
        column = columns.get(watermark.column)
        if column is not None and not pa.types.is_timestamp(column.type):
            message = f"the column of a WATERMARK is a TIMESTAMP: {watermark.column!r} is not"
            self.mistakes.add(message, at=watermark.at, value=watermark.column)
        if option is not None and option.value != watermark.column:
            message = f"'event_time_field' is {option.value!r}, and the WATERMARK is for {watermark.column!r}"
            self.mistakes.add(f"{message}: they must be the same column", at=option.at, value=str(option.value))
        if _EVENT_TIME in fields and column is not None and column.generated is None:
            self.draft.put([_EVENT_TIME], watermark.column, watermark.at)

    def _put_key(self) -> None:
        """The primary key of changes is a setting of their format; that of plain rows says nothing to a source."""
        written = self.draft.config.get("format")
        name = written.get("name") if isinstance(written, dict) else written
        if name != _CHANGES or not self.table.primary_key or self.draft.has("primary_key"):
            return
        at = self.draft.places["format"]
        if not isinstance(written, dict):
            self.draft.config["format"] = {"name": name}
        self.draft.put(["format", "primary_key"], list(self.table.primary_key), at)


def put_schema(table: Table, draft: ConfigDraft) -> None:
    """The physical columns as the schema, unless an option gives one."""
    if draft.has("schema"):
        return
    draft.config["schema"] = {}
    draft.places["schema"] = table.at
    for column in physical_columns(table):
        draft.config["schema"][column.name] = type_name(column.type)
        draft.places[f"schema.{column.name}"] = column.type_at


def put_sink_keys(table: Table, descriptor: Descriptor, draft: ConfigDraft) -> None:
    """The primary key is the key of messages, for a sink that has keys."""
    keys: list[OptionValue] = [*table.primary_key]
    for name in ("key_fields", "primary_key"):
        if keys and name in writable_fields(descriptor) and not draft.has(name):
            draft.put([name], keys, table.at)
            return


def _is_columns(field: FieldDescriptor) -> bool:
    """Whether a field has columns by name, and no text of a schema."""
    return is_map(field) or has_option(field, options_pb2.ordered_map)
