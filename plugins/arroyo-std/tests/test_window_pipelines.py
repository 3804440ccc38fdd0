"""Whole pipelines of windows in process: many epochs, shuffles, partial aggregates; the rows are DuckDB's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from arroyo_std.plugin import arroyo_register
from arroyo_testing import run_in_process
from google.protobuf import struct_pb2

from arroyo_core.api import (
    ArroyoSchema,
    ConstructedOperator,
    OperatorConstructor,
    Registry,
    SourceCollector,
    SourceContext,
    SourceFinishType,
    SourceOperator,
)
from arroyo_core.plugin import PluginSet
from arroyo_core.state import global_table_config

ROWS = 3_000
PARTS = 6
BATCH = 100
SECOND_US = 1_000_000


def make_rows() -> pa.Table:
    """Rows with nulls in keys and values, up to two seconds out of order, around 1970."""
    random = np.random.default_rng(11)
    times = np.arange(ROWS) * 40_000 - random.integers(0, 2 * SECOND_US, ROWS) - 20 * SECOND_US
    keys = random.integers(0, 8, ROWS)
    prices = random.integers(-50, 1_000, ROWS)
    return pa.table(
        {
            "k": pa.array(keys, mask=keys == 7),
            "price": pa.array(prices, mask=prices < 0),
            "t": pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC")),
        }
    )


TABLE = make_rows()


class Ticks(SourceOperator):
    """Row i is of part i modulo the number of parts; a subtask reads its parts in turn, and remembers how far."""

    def name(self) -> str:
        return "test.ticks"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return ArroyoSchema(TABLE.schema, "t")

    def tables(self) -> Any:
        return global_table_config("offsets", "rows read, by part")

    def run(self, ctx: SourceContext, collector: SourceCollector) -> SourceFinishType:
        offsets = ctx.table_manager.get_global_keyed_state("offsets", key_type=int, value_type=int)
        parts = range(ctx.task_info.task_index, PARTS, ctx.task_info.parallelism)
        rows = {part: TABLE.take(pa.array(np.arange(part, ROWS, PARTS))) for part in parts}
        while (control := ctx.control()) is None:
            # All parts abreast, so that their times stay close to each other.
            open_parts = [part for part in parts if (offsets.get(part) or 0) < rows[part].num_rows]
            if not open_parts:
                return SourceFinishType.FINAL
            part = min(open_parts, key=lambda part: offsets.get(part) or 0)
            start = offsets.get(part) or 0
            batch = rows[part].slice(start, BATCH).combine_chunks().to_batches()[0]
            collector.collect(batch)
            offsets.insert(part, start + batch.num_rows)
        return control.finish_type


class TicksConstructor(OperatorConstructor[struct_pb2.Struct]):
    config_type = struct_pb2.Struct

    def with_config(self, config: struct_pb2.Struct, registry: Registry) -> ConstructedOperator:
        return ConstructedOperator.from_source(Ticks())


@pytest.fixture(scope="module")
def plugins() -> PluginSet:
    registry = Registry()
    arroyo_register(registry)
    registry.add("test.ticks", TicksConstructor())
    return PluginSet(registry, [])


AGGREGATES = [
    {"function": "count", "as": "n"},
    {"function": "sum", "column": "price", "as": "total"},
    {"function": "max", "column": "price", "as": "top"},
    {"function": "count", "filter": "price > 500", "as": "high"},
]
SQL = "count(*) n, sum(price)::bigint total, max(price) top, count(*) filter (price > 500) high"
BIN = "(epoch_us(t) + 1000000000) // {us} * {us} - 1000000000"

CASES: dict[str, tuple[dict[str, Any], str]] = {
    "tumbling": (
        {"operator": "std.tumbling_window", "config": {"size": "5s", "keys": ["k"], "aggregates": AGGREGATES}},
        f"select k, {BIN.format(us=5 * SECOND_US)} s, s + 5000000 e, {SQL} from rows group by k, s",
    ),
    "tumbling without keys": (
        {"operator": "std.tumbling_window", "config": {"size": "5s", "aggregates": AGGREGATES}},
        f"select {BIN.format(us=5 * SECOND_US)} s, s + 5000000 e, {SQL} from rows group by s",
    ),
    "tumbling of medians": (
        {
            "operator": "std.tumbling_window",
            "config": {
                "size": "5s",
                "keys": ["k"],
                "aggregates": [
                    {"function": "median", "column": "price", "as": "middle"},
                    {"function": "count_distinct", "column": "price", "as": "kinds"},
                ],
            },
        },
        f"select k, {BIN.format(us=5 * SECOND_US)} s, s + 5000000 e, median(price) middle, count(distinct price) kinds "
        "from rows group by k, s",
    ),
    "sliding": (
        {
            "operator": "std.sliding_window",
            "config": {"size": "6s", "slide": "2s", "keys": ["k"], "aggregates": AGGREGATES},
        },
        f"select k, {BIN.format(us=2 * SECOND_US)} - i * 2000000 s, s + 6000000 e, {SQL} "
        "from rows, range(3) r(i) group by k, s",
    ),
    "session": (
        {"operator": "std.session_window", "config": {"gap": "1s", "keys": ["k"], "aggregates": AGGREGATES}},
        "with cut as (select *, epoch_us(t) u, coalesce(u - lag(u) over (partition by k order by u) >= 1000000, true)"
        "::int c from rows), named as (select *, sum(c) over (partition by k order by u) g from cut) "
        f"select k, min(u) s, max(u) + 1000000 e, {SQL} from named group by k, g",
    ),
}


def answer(sql: str) -> list[dict[str, Any]]:
    plain = TABLE.set_column(2, "t", TABLE.column("t").cast(pa.timestamp("us")))
    with duckdb.connect() as connection:
        connection.register("rows", plain)
        return connection.sql(sql).to_arrow_table().to_pylist()


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def run(plugins, tmp_path, capsys, nodes: list[dict[str, Any]], parallelism: int) -> list[dict[str, Any]]:
    pipeline = {
        "name": "windows",
        "checkpoint": {"rows": 700},
        "nodes": [
            {"id": "ticks", "operator": "test.ticks"},
            {
                "id": "timed",
                "operator": "std.watermark",
                "inputs": ["ticks"],
                "config": {"max_lateness": "30s", "period": "500ms"},
            },
            *nodes,
            {"id": "out", "operator": "std.stdout", "inputs": [nodes[-1]["id"]], "config": {"limit": 100_000}},
        ],
    }
    path = tmp_path / "pipeline.yaml"
    path.write_text(json.dumps(pipeline))
    capsys.readouterr()
    result = run_in_process(path, plugins=plugins, parallelism=parallelism)
    assert result.is_finished
    assert result.epochs > 2
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("case", CASES)
def test_windows_of_a_pipeline_are_those_of_duckdb(plugins, tmp_path, capsys, case, parallelism):
    window, sql = CASES[case]
    nodes = [
        {"id": "windows", "inputs": ["timed"], **window},
        {
            "id": "plain",
            "operator": "std.project",
            "inputs": ["windows"],
            "config": {
                "drop": ["window_start", "window_end", "window_time"],
                "expressions": {
                    "s": "arrow_cast(arrow_cast(window_start, 'Timestamp(Microsecond, None)'), 'Int64')",
                    "e": "arrow_cast(arrow_cast(window_end, 'Timestamp(Microsecond, None)'), 'Int64')",
                },
            },
        },
    ]
    found = run(plugins, tmp_path, capsys, nodes, parallelism)
    assert in_order(found) == in_order(answer(sql))


@pytest.mark.parametrize("parallelism", [1, 3])
def test_changes_of_a_pipeline_end_in_what_duckdb_says(plugins, tmp_path, capsys, parallelism):
    nodes = [
        {
            "id": "totals",
            "operator": "std.updating_aggregate",
            "inputs": ["timed"],
            "config": {"keys": ["k"], "aggregates": AGGREGATES},
        }
    ]
    live: dict[Any, dict[str, Any]] = {}
    retracts = 0
    for row in run(plugins, tmp_path, capsys, nodes, parallelism):
        is_retract = row.pop("_updating_meta")["is_retract"]
        retracts += is_retract
        if is_retract:
            assert live.pop(row["k"]) == row
        else:
            assert row["k"] not in live
            live[row["k"]] = row
    assert retracts > 0
    assert in_order(list(live.values())) == in_order(answer(f"select k, {SQL} from rows group by k"))
