"""Every operator of std keeps the rules of `arroyo_testing.conformance`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from arroyo_testing.conformance import Conformance, OperatorCase, Stream

from arroyo_core.api.updating import UPDATING_META, UPDATING_TYPE
from arroyo_core.udf import async_udf, batch_udf

TIME = pa.timestamp("us", tz="UTC")
SECOND = 1_000_000


def rows(*records: tuple[str | None, int | None, float]) -> pa.Table:
    """Key, value and seconds of event time."""
    return pa.table(
        {
            "k": pa.array([key for key, _, _ in records], pa.string()),
            "v": pa.array([value for _, value, _ in records], pa.int64()),
            "at": pa.array([round(seconds * SECOND) for _, _, seconds in records], pa.int64()).cast(TIME),
        }
    )


#: Out of order, with ties, nulls and keys that come back after a pause.
EVENTS = Stream(
    rows(
        ("a", 1, 0),
        ("b", 7, 1),
        ("a", 3, 1),
        (None, 4, 3),
        ("b", None, 2),
        ("a", 9, 6),
        ("c", 9, 5.5),
        ("a", -2, 12),
        ("b", 5, 13),
        ("c", 8, 12),
        (None, 6, 21),
        ("a", 7, 25),
    ),
    "at",
)
#: The second of two inputs.
OTHERS = Stream(
    rows(
        ("a", 10, 0),
        ("b", 20, 2),
        ("a", 30, 4),
        ("c", 40, 6),
        (None, 50, 7),
        ("a", 60, 12),
        ("b", 70, 14),
        ("z", 8, 20),
    ),
    "at",
)
#: Rows behind the watermark are late.
LATE = Stream(EVENTS.rows, "at", watermarks={4: 2 * SECOND, 6: 5 * SECOND, 10: 14 * SECOND})
PLAIN = Stream(EVENTS.rows.drop_columns(["at"]))


def changes() -> pa.Table:
    """Results of three keys that are added, taken back and added again."""
    record = [("a", 1, False), ("b", 2, False), ("a", 1, True), ("a", 5, False), ("c", 9, False), ("b", 2, True)]
    record += [("a", 5, True), ("a", 6, False), ("b", 4, False)]
    meta = [{"is_retract": gone, "id": key.encode() * 16} for key, _, gone in record]
    return pa.table(
        {
            "k": [key for key, _, _ in record],
            "v": [value for _, value, _ in record],
            UPDATING_META: pa.array(meta, UPDATING_TYPE),
        }
    )


NESTED = pa.table(
    {
        "k": ["a", "b", "c", "d", "e"],
        "tags": pa.array([["x", "y"], [], None, ["z"], [None]], pa.list_(pa.string())),
        "place": pa.array([{"x": 1, "y": 2}, None, {"x": None, "y": 3}, {"x": 4, "y": 4}, {"x": 5, "y": 0}]),
    }
)


@batch_udf(schema=lambda schema: schema.append(pa.field("twice", pa.int64())))
def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.append_column("twice", pc.multiply(batch.column("v").cast(pa.int64()), 2))


@async_udf
async def looked_up(key: str) -> str | None:
    return {"a": "Rome", "b": "Oslo"}.get(key)


def lookup(folder: Path) -> dict[str, Any]:
    path = folder / "places.parquet"
    pq.write_table(pa.table({"k": ["a", "a", "b", "z"], "city": ["Rome", "Bari", "Oslo", None]}), path)
    return {"table": {"path": str(path)}, "on": [{"left": "k"}], "type": "left"}


AGGREGATES = [
    {"function": "count"},
    {"function": "sum", "column": "v"},
    {"function": "max", "column": "v", "as": "most"},
]
FILTERED = [*AGGREGATES[:2], {**AGGREGATES[2], "filter": "v < 9"}]
HOLISTIC = [{"function": "median", "column": "v"}, {"function": "count_distinct", "column": "v"}]
IN_ORDER = [
    {"function": "list", "column": "v", "as": "listed", "order_by": [{"column": "v", "descending": True}]},
    {"function": "list", "column": "v", "distinct": True, "as": "values", "order_by": [{"column": "v"}]},
    {"function": "last", "column": "k", "as": "greatest", "order_by": [{"column": "v", "nulls_last": False}]},
    {"function": "string_agg", "column": "k", "distinct": True, "order_by": [{"column": "k"}], "as": "keys"},
    {"function": "sum", "column": "v", "distinct": True, "as": "sum"},
    {"function": "regr_slope", "column": "v", "other": "v", "as": "slope"},
    {"function": "percentile_cont", "column": "v", "percentile": 0.25, "as": "quarter"},
    {"function": "approx_percentile_with_weight", "column": "v", "other": "v", "percentile": 0.5, "as": "weighted"},
]
ON_K = [{"left": "k"}]
LAG = {"function": "lag", "column": "v", "as": "before"}
LEAD = {"function": "lead", "column": "v", "offset": 2, "default": "0", "as": "behind"}

CASES = [
    OperatorCase("std.filter", {"predicate": "v > 3 or k = 'a'"}, [EVENTS], is_ordered=True),
    OperatorCase(
        "std.filter",
        {"predicate": "10 / (v - 9) < 2", "on_error": "dead_letter"},
        [EVENTS],
        id="std.filter with dead letters",
        # In which run, where and when a row failed; the row and the error are compared.
        ignore=["_error_incarnation", "_error_epoch", "_error_subtask", "_error_time"],
    ),
    OperatorCase("std.project", {"expressions": {"w": "v * 2", "up": "upper(k)"}, "keep": ["v", "at"]}, [EVENTS]),
    OperatorCase("std.project", {"drop": ["k"]}, [EVENTS], id="std.project that drops", is_ordered=True),
    OperatorCase("std.sql", {"query": "select upper(k) as k, v + 1 as w, at from input where v is not null"}, [EVENTS]),
    OperatorCase("std.key_by", {"keys": ["k"]}, [EVENTS], is_ordered=True),
    OperatorCase("std.watermark", {"column": "at", "max_lateness": "2s", "idle_time": "1m"}, [Stream(EVENTS.rows)]),
    OperatorCase("std.union", {}, [EVENTS, OTHERS]),
    OperatorCase("std.unnest", {"column": "tags", "as": "tag", "outer": True, "ordinality": "n"}, [NESTED]),
    OperatorCase("std.unnest", {"column": "place", "as": "at_"}, [NESTED], id="std.unnest of structs"),
    OperatorCase("std.stdout", {"format": "csv", "limit": 3}, [EVENTS]),
    OperatorCase("std.blackhole", {}, [EVENTS]),
    OperatorCase("std.tumbling_window", {"size": "5s", "keys": ["k"], "aggregates": FILTERED}, [EVENTS]),
    OperatorCase(
        "std.tumbling_window",
        {"size": "5s", "aggregates": HOLISTIC, "late": "side_output", "allowed_lateness": "1s"},
        [LATE],
        id="std.tumbling_window with late rows",
    ),
    OperatorCase(
        "std.tumbling_window",
        {"size": "10s", "keys": ["k"], "aggregates": AGGREGATES, "early": "1s"},
        [EVENTS],
        id="std.tumbling_window with early results",
    ),
    OperatorCase(
        "std.sliding_window", {"size": "6s", "slide": "3s", "keys": ["k"], "aggregates": AGGREGATES}, [EVENTS]
    ),
    OperatorCase("std.assign_window", {"size": "6s", "slide": "3s"}, [EVENTS]),
    OperatorCase("std.session_window", {"gap": "3s", "keys": ["k"], "aggregates": AGGREGATES}, [EVENTS]),
    OperatorCase("std.updating_aggregate", {"keys": ["k"], "aggregates": AGGREGATES}, [PLAIN]),
    OperatorCase(
        "std.tumbling_window", {"size": "9s", "aggregates": IN_ORDER}, [EVENTS], id="std.tumbling_window in order"
    ),
    OperatorCase(
        "std.session_window",
        {"gap": "3s", "keys": ["k"], "aggregates": IN_ORDER},
        [EVENTS],
        id="std.session_window in order",
    ),
    OperatorCase(
        "std.updating_aggregate",
        {"aggregates": [*AGGREGATES, *IN_ORDER], "empty_group": True},
        [changes()],
        id="std.updating_aggregate with an empty group",
    ),
    OperatorCase(
        "std.updating_aggregate",
        {"keys": ["k"], "aggregates": IN_ORDER},
        [changes()],
        id="std.updating_aggregate of changes in order",
    ),
    OperatorCase(
        "std.updating_aggregate",
        {"keys": ["k"], "aggregates": [{"function": "count", "as": "_rows"}]},
        [changes()],
        id="std.updating_aggregate with a result named as its own count",
    ),
    OperatorCase(
        "std.updating_aggregate",
        {"keys": ["k"], "aggregates": AGGREGATES[:2]},
        [changes()],
        id="std.updating_aggregate of changes",
    ),
    OperatorCase("std.deduplicate", {"keys": ["k"], "ttl": "1h"}, [EVENTS]),
    OperatorCase("std.deduplicate", {"keys": ["k"], "keep": "last"}, [EVENTS], id="std.deduplicate of last rows"),
    OperatorCase("std.upsert", {"keys": ["k"]}, [changes()], latest_by=["k"], removed_by="_deleted"),
    OperatorCase(
        "std.top_n",
        {"n": 2, "partition_by": ["k"], "order_by": [{"column": "v", "descending": True}], "rank_column": "rank"},
        [EVENTS],
    ),
    OperatorCase(
        "std.top_n",
        {"n": 1, "partition_by": ["at"], "order_by": [{"column": "v"}]},
        [EVENTS],
        id="std.top_n of event times",
    ),
    OperatorCase(
        "std.window_function",
        {"expression": "row_number() over (partition by k, at order by v)", "as": "n"},
        [EVENTS],
    ),
    OperatorCase("std.neighbors", {"keys": ["k"], "values": [LAG]}, [EVENTS]),
    OperatorCase("std.neighbors", {"keys": ["k"], "values": [LAG, LEAD]}, [EVENTS], id="std.neighbors behind"),
    OperatorCase(
        "std.neighbors",
        {"keys": ["k"], "values": [LEAD, LAG], "ttl": "2s", "order_by": [{"column": "v", "descending": True}]},
        [EVENTS],
        id="std.neighbors within a time",
    ),
    OperatorCase("std.neighbors", {"values": [LEAD], "ttl": 0}, [EVENTS], id="std.neighbors of all rows"),
    OperatorCase("std.window_join", {"on": ON_K, "size": "5s", "type": "full"}, [EVENTS, OTHERS]),
    OperatorCase("std.join", {"on": ON_K, "type": "full", "ttl": "1h"}, [EVENTS, OTHERS]),
    OperatorCase("std.join", {"on": ON_K, "type": "left"}, [changes(), EVENTS], id="std.join of changes"),
    OperatorCase("std.interval_join", {"on": ON_K, "lower": "-2s", "upper": "3s", "type": "full"}, [EVENTS, OTHERS]),
    OperatorCase(
        "std.window_join",
        {"on": ON_K, "size": "5s", "type": "anti", "condition": "v < right_v"},
        [EVENTS, OTHERS],
        id="std.window_join of rows without a match",
    ),
    OperatorCase(
        "std.window_join",
        {"size": "5s", "type": "left", "condition": "v * 10 < right_v"},
        [EVENTS, OTHERS],
        id="std.window_join without keys",
    ),
    OperatorCase(
        "std.join",
        {"on": ON_K, "type": "semi", "condition": "v * 2 < right_v"},
        [EVENTS, OTHERS],
        id="std.join of rows with a match",
    ),
    OperatorCase(
        "std.join",
        {"on": ON_K, "type": "anti", "condition": "v < right_v"},
        [changes(), EVENTS],
        id="std.join of changes without a match",
    ),
    OperatorCase(
        "std.interval_join",
        {"on": ON_K, "lower": "-2s", "upper": "3s", "type": "semi", "condition": "v < right_v"},
        [EVENTS, OTHERS],
        id="std.interval_join of rows with a match",
    ),
    OperatorCase("std.asof_join", {"on": ON_K, "tolerance": "5s"}, [EVENTS, OTHERS]),
    OperatorCase("std.lookup_join", lookup, [PLAIN]),
    OperatorCase(
        "std.process",
        {"function": "process_examples:CountUntilQuiet", "arguments": {"wait_us": 2 * SECOND}, "keys": ["k"]},
        [EVENTS],
        skip={"any_cut_in_a_pipeline": "its timers count the rows that have come when they fire, and more come first"},
    ),
    OperatorCase(
        "std.process",
        {"function": "process_examples:CountOfMoment", "arguments": {"wait_us": 2 * SECOND}, "keys": ["k", "at"]},
        [EVENTS],
        id="std.process with keys of a moment",
    ),
    OperatorCase("std.map_batches", {"function": "doubled"}, [EVENTS]),
    OperatorCase("std.async_udf", {"function": "looked_up", "arguments": ["k"], "as": "city"}, [EVENTS]),
]

conformance = Conformance("arroyo_std.plugin", CASES, udfs=[doubled, looked_up])
