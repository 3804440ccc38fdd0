"""Registers the operators of this distribution; they import their libraries when they are made."""

from __future__ import annotations

from arroyo_core.api import Registry
from arroyo_core.plugin import hookimpl
from arroyo_std import constructors, join_constructors, row_constructors, udf_constructors, window_constructors


@hookimpl
def arroyo_register(registry: Registry) -> None:
    registry.add("std.filter", constructors.FilterConstructor())
    registry.add("std.project", constructors.ProjectConstructor())
    registry.add("std.key_by", constructors.KeyByConstructor())
    registry.add("std.watermark", constructors.WatermarkConstructor())
    registry.add("std.union", constructors.UnionConstructor())
    registry.add("std.unnest", constructors.UnnestConstructor())
    registry.add("std.stdout", constructors.StdoutConstructor())
    registry.add("std.blackhole", constructors.BlackholeConstructor())
    registry.add("std.tumbling_window", window_constructors.TumblingWindowConstructor())
    registry.add("std.sliding_window", window_constructors.SlidingWindowConstructor())
    registry.add("std.assign_window", window_constructors.AssignWindowConstructor())
    registry.add("std.session_window", window_constructors.SessionWindowConstructor())
    registry.add("std.updating_aggregate", window_constructors.UpdatingAggregateConstructor())
    registry.add("std.window_join", join_constructors.WindowJoinConstructor())
    registry.add("std.deduplicate", row_constructors.DeduplicateConstructor())
    registry.add("std.join", join_constructors.JoinConstructor())
    registry.add("std.top_n", row_constructors.TopNConstructor())
    registry.add("std.interval_join", join_constructors.IntervalJoinConstructor())
    registry.add("std.sql", row_constructors.SqlConstructor())
    registry.add("std.asof_join", join_constructors.AsofJoinConstructor())
    registry.add("std.process", row_constructors.ProcessConstructor())
    registry.add("std.lookup_join", join_constructors.LookupJoinConstructor())
    registry.add("std.window_function", row_constructors.WindowFunctionConstructor())
    registry.add("std.neighbors", row_constructors.NeighborsConstructor())
    registry.add("std.upsert", row_constructors.UpsertConstructor())
    registry.add("std.map_batches", udf_constructors.MapBatchesConstructor())
    registry.add("std.async_udf", udf_constructors.AsyncUdfConstructor())
