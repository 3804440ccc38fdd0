"""Windows and updating aggregates over keys and values of every kind, through state and back."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from arroyo_core.api import ArroyoSchema

TIME = pa.timestamp("ms")
#: Two values of each type that can be a key.
KEYS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [-128, 127]),
    (pa.uint64(), [0, 2**64 - 1]),
    (pa.float32(), [1.5, float("inf")]),
    (pa.float64(), [0.0, -1.0]),
    (pa.bool_(), [True, False]),
    (pa.string(), ["", "é"]),
    (pa.large_string(), ["x", "y" * 100]),
    (pa.string_view(), ["x", "a text that is longer than a view holds"]),
    (pa.binary(), [b"", b"\0"]),
    (pa.binary(4), [b"abcd", b"\0\0\0\0"]),
    (pa.decimal128(20, 3), [Decimal("1.500"), Decimal("-7.001")]),
    (pa.date32(), [datetime.date(1969, 1, 1), datetime.date(2020, 2, 29)]),
    (pa.timestamp("ns", "Europe/Rome"), [0, -1]),
    (pa.duration("s"), [0, 5]),
    (pa.time64("us"), [0, 1]),
    (pa.dictionary(pa.int8(), pa.string()), ["x", "y"]),
    (pa.struct({"x": pa.int64(), "y": pa.string()}), [{"x": 1, "y": None}, {"x": None, "y": "z"}]),
]
#: Values that `first`, `last` and `list` must carry.
VALUES: list[tuple[pa.DataType, list[Any]]] = [
    *KEYS,
    (pa.float16(), [1.5, 2.5]),
    (pa.list_(pa.int64()), [[], [1, None]]),
    (pa.list_(pa.string_view()), [["x"], ["y", None]]),
    (pa.map_(pa.string(), pa.int64()), [[("a", 1)], []]),
]
OPERATORS: list[tuple[str, dict[str, Any]]] = [
    ("std.tumbling_window", {"size": 10_000}),
    ("std.sliding_window", {"size": 10_000, "slide": 5_000}),
    ("std.session_window", {"gap": 10_000}),
    ("std.updating_aggregate", {}),
]


def make_stream(kind: pa.DataType, values: list[Any]) -> tuple[ArroyoSchema, pa.RecordBatch]:
    """Both values and a null, each at two moments."""
    if pa.types.is_dictionary(kind):
        column = pa.array([*values, None], kind.value_type).dictionary_encode().cast(kind)
    else:
        column = pa.array([*values, None], kind)
    schema = pa.schema({"k": kind, "at": TIME})
    times = pa.array([1, 1, 1, 2, 2, 2], pa.int64()).cast(TIME)
    rows = pa.RecordBatch.from_arrays([pa.concat_arrays([column, column]), times], schema=schema)
    return ArroyoSchema(schema, "at"), rows


def run_twice(run, operator, stream, rows) -> pa.Table:
    """The rows in two epochs."""
    subtask = run(operator, [stream])
    for part in (rows.slice(0, 3), rows.slice(3)):
        subtask.process(part)
        if "_updating_meta" in subtask.output_schema.names:
            subtask.take_output()
        subtask.checkpoint()
        subtask.restore()
    subtask.end_of_data()
    return subtask.output


@pytest.mark.parametrize(("operator", "shape"), OPERATORS, ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize(
    ("kind", "values"), KEYS, ids=lambda value: str(value) if isinstance(value, pa.DataType) else ""
)
def test_keys_of_every_type_come_back_from_state_as_they_were(make, run, kind, values, operator, shape):
    stream, rows = make_stream(kind, values)
    count = [{"function": "count", "as": "n"}]
    output = run_twice(run, lambda: make(operator, keys=["k"], aggregates=count, **shape), stream, rows)
    if "_updating_meta" in output.column_names:
        output = output.filter(
            pa.array([not meta["is_retract"] for meta in output.column("_updating_meta").to_pylist()])
        )
    found = {str(row["k"]): row["n"] for row in output.to_pylist()}
    assert found == {str(value): 2 for value in rows.column("k").to_pylist()}


@pytest.mark.parametrize(
    ("kind", "values"), VALUES, ids=lambda value: str(value) if isinstance(value, pa.DataType) else ""
)
def test_values_of_every_type_come_back_from_state_as_they_were(make, run, kind, values):
    stream, rows = make_stream(kind, values)
    aggregates = [{"function": name, "column": "k", "as": name} for name in ("first", "last", "list")]
    output = run_twice(run, lambda: make("std.tumbling_window", size=10_000, aggregates=aggregates), stream, rows)
    (row,) = output.to_pylist()
    written = rows.column("k").to_pylist()
    assert str(row["first"]) == str(written[0])
    assert str(row["last"]) == str(written[-1])
    assert sorted(map(str, row["list"])) == sorted(map(str, written))
