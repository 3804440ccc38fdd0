"""What the operators tell `arroyo lint`: who waits for watermarks, who makes them, and whose state has no limit."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import json_format

from arroyo_core.api import ArrowOperator, ArroyoSchema, Registry, with_defaults
from arroyo_core.api.updating import with_updating
from arroyo_core.plugin import installed_plugins

SECOND = 1_000_000
TIMED = ArroyoSchema(
    pa.schema([("k", pa.int64()), ("v", pa.int64()), ("t", pa.timestamp("us", tz="UTC"))]), timestamp_column="t"
)
UNTIMED = ArroyoSchema(TIMED.schema)
COUNT = [{"function": "count"}]
LAG = [{"function": "lag", "column": "v", "as": "before"}]
ON = [{"left": "k"}]


def make(name: str, config: dict[str, Any]) -> ArrowOperator:
    constructor = installed_plugins().constructor(f"std.{name}")
    message = with_defaults(json_format.ParseDict(config, constructor.config_type()))
    operator = constructor.with_config(message, Registry()).operator
    assert operator is not None
    return operator


@pytest.mark.parametrize(
    ("name", "config", "inputs"),
    [
        ("tumbling_window", {"size": SECOND, "aggregates": COUNT}, [TIMED]),
        ("sliding_window", {"size": SECOND, "slide": SECOND, "aggregates": COUNT}, [TIMED]),
        ("session_window", {"gap": SECOND, "aggregates": COUNT}, [TIMED]),
        ("window_function", {"expression": "row_number() OVER (PARTITION BY k ORDER BY v)", "as": "n"}, [TIMED]),
        ("top_n", {"n": 1, "partition_by": ["t"], "order_by": [{"column": "v"}]}, [TIMED]),
        ("deduplicate", {"keys": ["k"], "ttl": SECOND}, [TIMED]),
        ("deduplicate", {"keys": ["k"]}, [TIMED]),
        ("neighbors", {"values": LAG}, [TIMED]),
        ("join", {"on": ON}, [TIMED, TIMED]),
        ("window_join", {"on": ON, "size": SECOND}, [TIMED, TIMED]),
        ("interval_join", {"on": ON, "lower": "-1s", "upper": "1s"}, [TIMED, TIMED]),
        ("asof_join", {"on": ON, "tolerance": SECOND}, [TIMED, TIMED]),
    ],
)
def test_what_goes_by_event_time_waits_for_watermarks_and_has_bounded_state(
    name: str, config: dict[str, Any], inputs: list[ArroyoSchema]
) -> None:
    operator = make(name, config)
    assert operator.needs_watermark(inputs)
    assert operator.unbounded_state(inputs) is None
    assert not operator.emits_watermarks()


@pytest.mark.parametrize(
    ("name", "config", "inputs", "words"),
    [
        ("updating_aggregate", {"keys": ["k"], "aggregates": COUNT, "ttl": 0}, [TIMED], "aggregates of every key"),
        ("deduplicate", {"keys": ["k"], "ttl": 0}, [TIMED], "it keeps every key for ever"),
        ("deduplicate", {"keys": ["k"], "ttl": 0, "keep": "last"}, [TIMED], "the last row of every key"),
        ("join", {"on": ON, "ttl": 0}, [TIMED, TIMED], "all rows of both inputs"),
        ("join", {"on": ON}, [TIMED, UNTIMED], "its right input has no event time"),
        ("join", {"on": ON}, [UNTIMED, UNTIMED], "its left and its right input has no event time"),
        ("top_n", {"n": 2, "partition_by": ["k"], "order_by": [{"column": "v"}]}, [TIMED], "first 2 of every group"),
        ("top_n", {"n": 2, "order_by": [{"column": "v"}]}, [with_updating(TIMED)], "every row of its input"),
        ("upsert", {"keys": ["k"]}, [with_updating(TIMED)], "a hash of the row of every key"),
    ],
)
def test_what_never_forgets_says_so_and_how_to_mend_it(
    name: str, config: dict[str, Any], inputs: list[ArroyoSchema], words: str
) -> None:
    operator = make(name, config)
    found = operator.unbounded_state(inputs)
    assert found is not None
    assert words in found.reason
    assert found.fix
    assert not operator.needs_watermark(inputs)


@pytest.mark.parametrize(
    ("name", "config", "inputs"),
    [
        ("updating_aggregate", {"keys": ["k"], "aggregates": COUNT}, [TIMED]),
        ("updating_aggregate", {"aggregates": COUNT, "ttl": 0}, [TIMED]),
        ("top_n", {"n": 2, "order_by": [{"column": "v"}]}, [TIMED]),
        ("upsert", {"keys": ["k"]}, [TIMED]),
        ("tumbling_window", {"size": SECOND, "aggregates": COUNT, "time": "processing"}, [UNTIMED]),
        ("filter", {"predicate": "v > 1"}, [TIMED]),
        ("watermark", {"column": "t"}, [TIMED]),
    ],
)
def test_others_have_nothing_to_tell(name: str, config: dict[str, Any], inputs: list[ArroyoSchema]) -> None:
    operator = make(name, config)
    assert not operator.needs_watermark(inputs)
    assert operator.unbounded_state(inputs) is None


def test_watermarks_come_from_the_watermark_operator_and_from_the_clock() -> None:
    assert make("watermark", {"column": "t"}).emits_watermarks()
    assert make("session_window", {"gap": SECOND, "aggregates": COUNT, "time": "processing"}).emits_watermarks()
    assert not make("session_window", {"gap": SECOND, "aggregates": COUNT}).emits_watermarks()
    assert not make("filter", {"predicate": "v > 1"}).emits_watermarks()
