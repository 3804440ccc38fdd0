"""What stops a job: events that are not read, statements, and columns that are not what they were."""

from __future__ import annotations

import pyarrow as pa

from arroyo_core.errors import DataError
from arroyo_mysql.cdc import binlog_events as events
from arroyo_mysql.cdc.binlog_types import BinlogColumn, why_unreadable
from arroyo_mysql.cdc.ddl import Effect
from arroyo_mysql.result_columns import ResultColumn


def check_type(column: ResultColumn, found: BinlogColumn) -> None:
    """Raises `DataError` where values of the column as it is in the binlog are not of the type that it is read as."""
    kind = found.arrow_type
    if kind == column.type or (kind is not None and _is_smaller(kind, column.type)):
        return
    now = f"is {kind} there" if kind is not None else f"is {why_unreadable(found.type_code)}"
    raise DataError(
        f"column {column.name!r} {now}, and is read as {column.type}; stop the job and plan it again, or "
        "leave the column out with columns: [...]"
    )


def _is_smaller(kind: pa.DataType, other: pa.DataType) -> bool:
    """Whether all integers of one type are of the other."""
    if not (pa.types.is_integer(kind) and pa.types.is_integer(other)):
        return False
    if pa.types.is_signed_integer(kind) == pa.types.is_signed_integer(other):
        return bool(kind.bit_width <= other.bit_width)
    return bool(pa.types.is_unsigned_integer(kind) and kind.bit_width < other.bit_width)


#: Events that stop a job, and why.
REFUSED_EVENTS = {
    events.INCIDENT: "the server has lost changes, and says so in its binlog (an incident): start the job over, "
    "without its state",
    events.PARTIAL_UPDATE: "the binlog has parts of JSON documents: binlog_row_value_options must be empty",
    events.PAYLOAD: "the binlog has compressed transactions: binlog_transaction_compression must be OFF",
    events.TAGGED_GTID: "the binlog has GTIDs with tags, which are not read",
}
#: What a statement has done to the table.
EFFECTS = {
    Effect.TRUNCATED: "it was emptied by TRUNCATE, and the rows that were there are not in the binlog: nobody can take "
    "them back",
    Effect.REPLACED: "it was dropped, renamed, or made again, and the rows that were there are not in the binlog: "
    "nobody can take them back",
    Effect.PARTITION: "one of its partitions was dropped, emptied or exchanged, and its rows are not in the binlog: "
    "nobody can take them back",
    Effect.STATEMENT: "rows were changed by a statement that the binlog has instead of the rows: a session had another "
    "binlog_format than ROW",
}
