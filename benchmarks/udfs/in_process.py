"""Functions called by `std.project` beside the same functions called directly, on the same batches, in turn."""

from __future__ import annotations

import time
from collections.abc import Callable

import pyarrow as pa
from arroyo_std.sql import Expression, compile_expressions

from arroyo_core.api import Registry
from arroyo_core.udf import udf

from . import functions
from .data import BATCH_ROWS, make_batch

Seconds = dict[str, list[float]]


def vectorised(scale: float) -> Seconds:
    declared = udf(arguments=[pa.float64(), pa.float64()], returns=pa.float64())(functions.distance)
    project = _project(declared, "distance(lat, lon)")
    batch = make_batch(BATCH_ROWS)
    lat, lon = batch.column("lat"), batch.column("lon")
    assert project(batch).equals(functions.distance(lat, lon))
    return _in_turn(
        {
            "`@udf` over arrays in std.project": lambda: project(batch),
            "the function itself": lambda: functions.distance(lat, lon),
        },
        runs=_runs(60, scale),
    )


def scalar(scale: float) -> Seconds:
    return _scalar(functions.slug, scale)


def cheap_scalar(scale: float) -> Seconds:
    return _scalar(functions.initials, scale)


def _scalar(function: Callable[[str], str], scale: float) -> Seconds:
    project = _project(udf(function), f"{function.__name__}(title)")
    batch = make_batch(BATCH_ROWS)
    column = batch.column("title")
    values = column.to_pylist()
    assert project(batch).to_pylist() == [function(value) for value in values]
    return _in_turn(
        {
            "`@udf` of one row in std.project": lambda: project(batch),
            "a list comprehension, from a list to a list": lambda: [function(value) for value in values],
            "a list comprehension, from Arrow to Arrow": lambda: pa.array(
                [function(value) for value in column.to_pylist()], pa.string()
            ),
        },
        runs=_runs(20, scale),
    )


def _project(function: object, sql: str) -> Callable[[pa.RecordBatch], pa.Array]:
    registry = Registry()
    registry.add_udf(function)  # type: ignore[arg-type]
    expression = Expression(name="x", sql=sql, field="expressions.x")
    compiled = compile_expressions([expression], make_batch(1).schema, registry)
    return lambda batch: compiled.evaluate(batch).column(0)


def _in_turn(sides: dict[str, Callable[[], object]], *, runs: int) -> Seconds:
    """Each side once a round, so that what else the machine does meets all of them."""
    seconds: Seconds = {name: [] for name in sides}
    for number in range(runs + 3):
        for name, call in sides.items():
            start = time.perf_counter()
            call()
            if number >= 3:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def _runs(usual: int, scale: float) -> int:
    return max(5, int(usual * scale))
