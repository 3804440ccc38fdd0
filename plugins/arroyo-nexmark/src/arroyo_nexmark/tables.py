"""The four tables, as batches made from event numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from arroyo_nexmark.auctions import AUCTION, Auctions
from arroyo_nexmark.bids import BID, Bids
from arroyo_nexmark.columns import TIMESTAMP, Columns, timestamps
from arroyo_nexmark.people import PERSON, People
from arroyo_nexmark.randomness import Bools, Int64s
from arroyo_nexmark.rules import Kind, Rules


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the benchmark; `kind` is None for the one that has all kinds."""

    name: str
    schema: pa.Schema
    kind: Kind | None

    def select(self, fields: Sequence[str]) -> pa.Schema:
        """The schema of these columns, in this order."""
        return pa.schema([self.schema.field(name) for name in fields])


_COLUMNS: dict[Kind, tuple[type[Columns], pa.Schema]] = {
    Kind.PERSON: (People, PERSON),
    Kind.AUCTION: (Auctions, AUCTION),
    Kind.BID: (Bids, BID),
}

EVENT = pa.schema(
    [
        pa.field("event_type", pa.int32()),
        *(pa.field(kind.name.lower(), pa.struct(list(_COLUMNS[kind][1]))) for kind in Kind),
        pa.field("date_time", TIMESTAMP),
    ]
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        Table("bid", BID, Kind.BID),
        Table("auction", AUCTION, Kind.AUCTION),
        Table("person", PERSON, Kind.PERSON),
        Table("event", EVENT, None),
    )
}


def make_batch(table: Table, schema: pa.Schema, rules: Rules, numbers: Int64s) -> pa.RecordBatch:
    """The columns of `schema` for these events, which all are of the table's kind; a row per event, in their order."""
    if table.kind is None:
        columns = [_event_column(name, rules, numbers) for name in schema.names]
    else:
        made = _COLUMNS[table.kind][0](rules, numbers)
        columns = [getattr(made, name) for name in schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _event_column(name: str, rules: Rules, numbers: Int64s) -> pa.Array:
    if name == "date_time":
        return timestamps(rules.event_time_us(numbers))
    kinds = rules.kinds(numbers)
    if name == "event_type":
        return pa.array(kinds.astype(np.int32))
    kind = Kind[name.upper()]
    return _scattered(kind, rules, numbers, kinds == kind)


def _scattered(kind: Kind, rules: Rules, numbers: Int64s, mask: Bools) -> pa.Array:
    """A struct for every event of the kind, null for all others."""
    factory, schema = _COLUMNS[kind]
    made = factory(rules, numbers[mask])
    structs = pa.StructArray.from_arrays([getattr(made, name) for name in schema.names], fields=list(schema))
    return structs.take(pa.array(np.cumsum(mask) - 1, mask=~mask))
