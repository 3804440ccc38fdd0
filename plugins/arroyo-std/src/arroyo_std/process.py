"""`std.process`: a function in Python with state and timers by key."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from arroyo_core.api import (
    END_OF_TIME_US,
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    DisplayableOperator,
    OperatorContext,
    Watermark,
)
from arroyo_core.api.updating import refuse_updating
from arroyo_core.errors import ConfigError
from arroyo_core.state import timestamp_table_config
from arroyo_std.columns import check_column, check_unique, normal_type
from arroyo_std.process_function import TIMER_AT, KeyedState, ProcessFunction, Timers, timer_schema
from arroyo_std.row_values import is_nested
from arroyo_std.setting_texts import names_text

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

STATE_TABLE = "s"
TIMERS_TABLE = "t"
#: Longer than any stream: state and timers stay until the function or the watermark is done with them.
_FOREVER = timedelta(days=10_000_000)


class Process(ArrowOperator):
    """Gives rows and due timers of each key to a `ProcessFunction`, with the key's state."""

    def __init__(
        self, function: ProcessFunction, keys: Sequence[str] = (), *, arguments: Mapping[str, Any] | None = None
    ) -> None:
        """`arguments` are what the function was made with, those that were left out included."""
        self._function = function
        self._keys = tuple(keys)
        self._arguments = arguments or {}

    def name(self) -> str:
        return "std.process"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        stream = inputs[0]
        if not self._function.accepts_updating:
            refuse_updating(stream, operator=f"{self.name()} with {type(self._function).__name__}")
        for position, key in enumerate(self._keys):
            check_column(key, stream.names, field=f"keys[{position}]")
            if key.startswith("_") or key == TIMER_AT or is_nested(stream.schema.field(key).type):
                raise ConfigError(f"column {key!r} cannot be a key", field=f"keys[{position}]", value=key)
        check_unique(self._keys, field="keys")
        self._state_schema(stream)
        output = self._function.output_schema(stream.with_keys(self._keys))
        if not isinstance(output, ArroyoSchema):
            raise ConfigError(
                f"output_schema of {type(self._function).__name__} gave {type(output).__name__}, not an ArroyoSchema",
                field="function",
            )
        return output

    def routing_keys(self, inputs: Sequence[ArroyoSchema]) -> Sequence[tuple[str, ...] | None]:
        return [self._keys]

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        state = ArroyoSchema(self._state_schema(inputs[0]), None, self._keys)
        timers = timer_schema(self._key_fields(inputs[0]))
        return {
            STATE_TABLE: timestamp_table_config(STATE_TABLE, "the state of each key", _FOREVER, True, state),
            TIMERS_TABLE: timestamp_table_config(TIMERS_TABLE, "timers by key", _FOREVER, False, timers),
        }

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        # Only its author knows which arguments matter to the state of a function: all of them, unless told.
        matters = self._function.state_arguments
        arguments = {name: each for name, each in self._arguments.items() if matters is None or name in matters}
        return {
            "function": self._function_name(),
            "arguments": names_text(f"{name} {json.dumps(each)}" for name, each in sorted(arguments.items())),
            "keys": names_text(self._keys),
        }

    def _function_name(self) -> str:
        kind = type(self._function)
        return f"{kind.__module__}:{kind.__qualname__}"

    def display(self) -> DisplayableOperator:
        fields = [("function", self._function_name()), ("keys", ", ".join(self._keys))]
        return DisplayableOperator(self.name(), [(label, text) for label, text in fields if text])

    def on_start(self, ctx: OperatorContext) -> None:
        stream, manager = ctx.input_schemas[0], ctx.table_manager
        self._state = KeyedState(manager.get_last_key_value_table(STATE_TABLE), self._state_schema(stream))
        timers = manager.get_expiring_time_key_table(TIMERS_TABLE)
        self._timers = Timers(timers, timer_schema(self._key_fields(stream)))
        self._function.on_start(ctx)

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        # What people write takes the first row for granted.
        if batch.num_rows:
            self._function.on_batch(batch, self._state, self._timers, ctx, collector)

    def handle_watermark_int(
        self, watermark: Watermark, ctx: OperatorContext, collector: ArrowCollector
    ) -> Watermark | None:
        if watermark.event_time_us is not None:
            self._timers.fire(
                watermark.event_time_us,
                lambda due: self._function.on_timer(due, self._state, self._timers, ctx, collector),
                is_final=watermark.event_time_us >= END_OF_TIME_US,
            )
        return watermark

    def _key_fields(self, stream: ArroyoSchema) -> list[pa.Field]:
        return [pa.field(key, normal_type(stream.schema.field(key).type)) for key in self._keys]

    def _state_schema(self, stream: ArroyoSchema) -> pa.Schema:
        declared = self._function.state_schema(stream.with_keys(self._keys))
        if not isinstance(declared, pa.Schema):
            raise ConfigError(
                f"state_schema of {type(self._function).__name__} gave {type(declared).__name__}, not a pyarrow.Schema",
                field="function",
            )
        for name in declared.names:
            if name in self._keys or declared.names.count(name) > 1:
                raise ConfigError(
                    f"state_schema of {type(self._function).__name__} has a column {name!r} that is there already; "
                    "key columns are added to it",
                    field="function",
                )
        return pa.schema([*self._key_fields(stream), *(field.with_nullable(True) for field in declared)])
