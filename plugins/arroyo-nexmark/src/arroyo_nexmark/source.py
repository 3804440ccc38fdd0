"""`nexmark.source`: its config, checked, and the operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from arroyo_core.api import END_OF_TIME_US, ArroyoSchema, DisplayableOperator, SourceContext
from arroyo_core.errors import ConfigError
from arroyo_nexmark import nexmark_pb2
from arroyo_nexmark.counting import CountingSource, check_rate
from arroyo_nexmark.randomness import Int64s
from arroyo_nexmark.rules import SCATTER, Rules
from arroyo_nexmark.splits import ENDLESS, Slice
from arroyo_nexmark.tables import TABLES, Table, make_batch

#: Blocks are whole cycles, so that the kinds in one are known without looking.
CYCLES_PER_BLOCK = 10
BATCH_ROWS = 32_768
BATCH_EVENTS = 524_288
BATCH_BYTES = 32 * 2**20

#: The options of `Rules` with the greatest value of each: products with these stay within 64 bits.
_LIMITS = {
    "person_proportion": 10_000,
    "auction_proportion": 10_000,
    "bid_proportion": 10_000,
    "event_rate": 10**12,
    "out_of_order_group_size": 2**32,
    "hot_auction_ratio": 2**32 - 1,
    "hot_seller_ratio": 2**32 - 1,
    "hot_bidder_ratio": 2**32 - 1,
    "in_flight_auctions": 2**31,
    "active_people": 2**31,
    "avg_person_size": 2**20,
    "avg_auction_size": 2**20,
    "avg_bid_size": 2**20,
}


class NexmarkSource(CountingSource):
    """Emits one table of the Nexmark stream."""

    def __init__(
        self, table: Table, fields: list[str], rules: Rules, *, events: int | None = None, rate: float | None = None
    ) -> None:
        schema = table.select(fields)
        block = rules.cycle * CYCLES_PER_BLOCK
        super().__init__(
            schema=ArroyoSchema(schema, "date_time" if "date_time" in fields else None),
            block=block,
            end=events,
            rate=rate,
            budget=_batch_events(table, rules),
        )
        self._table = table
        self._rules = rules
        first, last = (0, rules.cycle) if table.kind is None else rules.offsets(table.kind)
        offsets = np.arange(block, dtype=np.int64)
        #: Where in a whole block the rows of the table are.
        self._pattern: Int64s = offsets[(offsets % rules.cycle >= first) & (offsets % rules.cycle < last)]

    def name(self) -> str:
        return "nexmark.source"

    def is_selective(self) -> bool:
        return True

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        """What decides which event is at a position; there may be more of them, or faster."""
        rules = asdict(self._rules)
        base_time_us = rules.pop("base_time_us")
        # Only where groups are scattered it matters where the last one ends.
        is_scattered = self._rules.out_of_order_group_size > 1
        return {
            "table": self._table.name,
            **{name: str(value) for name, value in rules.items()},
            "base_time": (datetime.fromtimestamp(0, UTC) + timedelta(microseconds=base_time_us)).isoformat(),
            "events": self._shown_events() if is_scattered else "any number",
        }

    def display(self) -> DisplayableOperator:
        fields = ", ".join(self._schema.names)
        details = (
            ("table", self._table.name),
            ("events", self._shown_events()),
            ("seed", str(self._rules.seed)),
            ("fields", fields),
        )
        return DisplayableOperator(self.name(), details)

    def _shown_events(self) -> str:
        return "no end" if self._end is None else str(self._end)

    def make(self, positions: Slice, ctx: SourceContext) -> pa.RecordBatch:
        return make_batch(self._table, ctx.output_schema.schema, self._rules, self._numbers(positions))

    def _numbers(self, positions: Slice) -> Int64s:
        """The events of the table's kind at these positions."""
        if self._rules.out_of_order_group_size == 1 and bool((positions.lengths == self._block).all()):
            whole: Int64s = np.add.outer(positions.starts, self._pattern)
            return whole.ravel()
        numbers = self._rules.numbers_at(positions.positions(), self._end)
        if self._table.kind is None:
            return numbers
        chosen: Int64s = numbers[self._rules.kinds(numbers) == self._table.kind]
        return chosen


def from_config(config: nexmark_pb2.NexmarkSource) -> NexmarkSource:
    """The operator; raises `ConfigError` naming the field that is wrong."""
    table = TABLES[nexmark_pb2.NexmarkSource.Table.Name(config.table)]
    events = config.events if config.HasField("events") else None
    if events is not None and events > ENDLESS:
        raise ConfigError(f"events must be at most {ENDLESS}", field="events", value=events)
    rate = check_rate(config.rate) if config.HasField("rate") else None
    rules = _rules(config)
    if events and events * 1_000_000 // rules.event_rate + rules.base_time_us > END_OF_TIME_US:
        raise ConfigError("the last events would be after the year 9999", field="events", value=events)
    return NexmarkSource(table, _fields(config, table), rules, events=events, rate=rate)


def _fields(config: nexmark_pb2.NexmarkSource, table: Table) -> list[str]:
    allowed = table.schema.names
    fields = list(config.fields)
    for index, field in enumerate(fields):
        at = f"fields[{index}]"
        if field not in allowed:
            raise ConfigError(f"table {table.name!r} has no column {field!r}", field=at, value=field, allowed=allowed)
        if field in fields[:index]:
            raise ConfigError(f"column {field!r} is named twice", field=at, value=field)
    return fields or list(allowed)


def _rules(config: nexmark_pb2.NexmarkSource) -> Rules:
    options: dict[str, int] = {}
    for option, limit in _LIMITS.items():
        value: int = getattr(config, option)
        least = 0 if option.endswith("_size") and option.startswith("avg_") else 1
        if not least <= value <= limit:
            raise ConfigError(f"{option} must be from {least} to {limit}, not {value}", field=option, value=value)
        options[option] = value
    group = options["out_of_order_group_size"]
    if group % SCATTER == 0:
        raise ConfigError(
            f"out_of_order_group_size must not be a multiple of {SCATTER}, the factor that scatters a group",
            field="out_of_order_group_size",
            value=group,
        )
    return Rules(seed=config.seed, base_time_us=config.base_time.ToMicroseconds(), **options)


def _batch_events(table: Table, rules: Rules) -> int:
    """Events per batch: enough for `BATCH_ROWS` rows, within bounds of memory."""
    sizes = {"bid": rules.avg_bid_size, "auction": rules.avg_auction_size, "person": rules.avg_person_size}
    size = max(sizes.get(table.name, max(sizes.values())), 1)
    rows = max(min(BATCH_ROWS, BATCH_BYTES // size), 1)
    share = 1.0
    if table.kind is not None:
        first, last = rules.offsets(table.kind)
        share = (last - first) / rules.cycle
    return max(min(int(rows / share), BATCH_EVENTS), 1)
