"""Which settings of each operator say how its state is to be read: every field of every config is one or is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from arroyo_std.setting_texts import names_text
from google.protobuf.json_format import ParseDict

from arroyo_core.api import ArroyoSchema, Registry, with_defaults
from arroyo_core.api.updating import with_updating

TIME = pa.timestamp("us", tz="UTC")
SECOND, HOUR = 1_000_000, 3_600_000_000
ROWS = ArroyoSchema(
    pa.schema({"k": pa.string(), "v": pa.int64(), "w": pa.int64(), "at": TIME, "seen": TIME}), "at", ("k",)
)
OTHER_TIME = ArroyoSchema(ROWS.schema, "seen", ("k",))
CHANGES = with_updating(ROWS)
ON_K = [{"left": "k"}]
LAG_V = {"function": "lag", "column": "v", "as": "before"}
SUM = [{"function": "sum", "column": "v", "as": "total"}]

Change = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A stateful operator: for each field of its config another value, and what that changes (nothing: may change)."""

    config: Mapping[str, Any]
    inputs: Sequence[ArroyoSchema] = (ROWS,)
    #: None for a field that others exclude; they are tried in its place.
    fields: Mapping[str, tuple[Any, Sequence[Change]] | None] = field(default_factory=dict)
    #: Other inputs, and what these change.
    streams: Sequence[tuple[Sequence[ArroyoSchema], Sequence[Change]]] = ()


KEYS = (["k", "w"], [("keys", "k", "k, w")])
AGGREGATES = (
    [{"function": "sum", "column": "w", "as": "total"}],
    [("aggregates", "sum(v) as total", "sum(w) as total")],
)
LATENESS = (SECOND, [("allowed lateness", "0s", "1s")])
PROCESSING = ("processing", [("time", "event (at)", "processing")])
EVENT_TIME = (((OTHER_TIME,), [("time", "event (at)", "event (seen)")]),)
TYPE = ("left", [("type", "inner", "left")])
ON = ([{"left": "k"}, {"left": "w"}], [("on", "k = k", "k = k, w = w")])
BOTH = (ROWS, ROWS)

SUBJECTS = {
    "std.tumbling_window": Subject(
        config={"size": HOUR, "keys": ["k"], "aggregates": SUM},
        fields={
            "size": (2 * HOUR, [("size", "1h", "2h")]),
            "offset": (3 * SECOND, [("offset", "0s", "3s")]),
            "keys": KEYS,
            "aggregates": AGGREGATES,
            "allowed_lateness": LATENESS,
            "late": ("side_output", []),
            "time": PROCESSING,
            "early": (SECOND, [("early results", "not sent", "sent")]),
        },
        streams=EVENT_TIME,
    ),
    "std.sliding_window": Subject(
        config={"size": 20 * SECOND, "slide": 5 * SECOND, "keys": ["k"], "aggregates": SUM},
        fields={
            "size": (40 * SECOND, [("size", "20s", "40s")]),
            "slide": (10 * SECOND, [("slide", "5s", "10s")]),
            "offset": (3 * SECOND, [("offset", "0s", "3s")]),
            "keys": KEYS,
            "aggregates": AGGREGATES,
            "allowed_lateness": LATENESS,
            "late": ("side_output", []),
            "time": PROCESSING,
        },
        streams=EVENT_TIME,
    ),
    "std.session_window": Subject(
        config={"gap": 10 * SECOND, "keys": ["k"], "aggregates": SUM},
        fields={
            "gap": (60 * SECOND, [("gap", "10s", "1m")]),
            "keys": KEYS,
            "aggregates": AGGREGATES,
            "allowed_lateness": LATENESS,
            "late": ("side_output", []),
            "time": PROCESSING,
        },
        streams=EVENT_TIME,
    ),
    "std.updating_aggregate": Subject(
        config={"keys": ["k"], "aggregates": SUM},
        fields={
            "keys": KEYS,
            "aggregates": AGGREGATES,
            "ttl": (0, []),
            "flush_interval": (SECOND, []),
            # Only without keys; a state that has an empty group says so by its count.
            "empty_group": None,
        },
        streams=[((OTHER_TIME,), [])],
    ),
    "std.deduplicate": Subject(
        config={"keys": ["k"]},
        fields={"keys": KEYS, "keep": ("last", [("keep", "first", "last")]), "ttl": (HOUR, [])},
    ),
    "std.upsert": Subject(
        config={"keys": ["k"]},
        inputs=[CHANGES],
        fields={"keys": KEYS, "deleted_column": ("gone", [])},
        streams=[
            (
                (with_updating(ArroyoSchema(ROWS.schema.remove(2), "at")),),
                [
                    (
                        "columns",
                        "k string, v int64, w int64, at timestamp[us, tz=UTC], seen timestamp[us, tz=UTC]",
                        "k string, v int64, at timestamp[us, tz=UTC], seen timestamp[us, tz=UTC]",
                    )
                ],
            )
        ],
    ),
    "std.top_n": Subject(
        config={"n": 3, "partition_by": ["k"], "order_by": [{"column": "v"}]},
        fields={
            "n": (5, [("n", "3", "5")]),
            "partition_by": (["w"], [("partition by", "k", "w")]),
            "order_by": ([{"column": "v", "descending": True}], [("order by", "v", "v desc")]),
            "ties": (True, [("ties", "not kept", "kept")]),
            "rank_column": ("rank", [("rank column", "none", "rank")]),
        },
        streams=[((CHANGES,), [("input", "appended", "updating")])],
    ),
    "std.neighbors": Subject(
        config={"keys": ["k"], "values": [{"function": "lead", "column": "v", "as": "next"}]},
        fields={
            "keys": KEYS,
            "order_by": ([{"column": "v", "descending": True}], [("order by", "none", "v desc")]),
            "values": (
                [{"function": "lead", "column": "v", "offset": 2, "as": "next"}, LAG_V],
                [("rows before", "0", "1"), ("rows behind", "1", "2")],
            ),
            # Rows that wait are due by it.
            "ttl": (HOUR, [("ttl", "1d", "1h")]),
        },
    ),
    "std.window_function": Subject(
        config={"expression": "row_number() over (partition by k order by v)", "as": "n"},
        fields={
            "expression": (
                "row_number() over (partition by k, w order by v)",
                [("partition by", "k", "k, w")],
            ),
            "as": ("m", []),
            "expressions": None,
        },
    ),
    "std.window_join": Subject(
        config={"on": ON_K, "size": 5 * 60 * SECOND},
        inputs=BOTH,
        fields={
            "on": ON,
            "type": TYPE,
            "size": (10 * 60 * SECOND, [("size", "5m", "10m")]),
            "offset": (3 * SECOND, [("offset", "0s", "3s")]),
            "allowed_lateness": LATENESS,
            # Pairs are looked for when a window fires, and not before.
            "condition": ("v > 1", []),
            "late": ("side_output", []),
            "prefixes": ({"left": "l_"}, []),
        },
        streams=[((ROWS, OTHER_TIME), [("time", "event (at and at)", "event (at and seen)")])],
    ),
    "std.join": Subject(
        config={"on": ON_K},
        inputs=BOTH,
        fields={
            "on": ON,
            # The tables of a side that is kept have a column more: their columns tell.
            "type": ("left", []),
            "ttl": (HOUR, []),
            "condition": ("v > 1", [("condition", "none", "v > 1")]),
            "late": ("side_output", []),
            "prefixes": ({"left": "l_"}, []),
            "time_column": ("t", []),
        },
    ),
    "std.interval_join": Subject(
        config={"on": ON_K, "lower": "-5s", "upper": "60s"},
        inputs=BOTH,
        fields={
            "on": ON,
            "type": TYPE,
            "lower": ("-1m", [("lower", "-5s", "-1m")]),
            "upper": ("2m", [("upper", "1m", "2m")]),
            "condition": ("v > 1", [("condition", "none", "v > 1")]),
            "late": ("side_output", []),
            "prefixes": ({"left": "l_"}, []),
            "time_column": ("t", []),
        },
    ),
    "std.asof_join": Subject(
        config={"on": ON_K, "tolerance": 5 * SECOND},
        inputs=BOTH,
        fields={
            "on": ON,
            "tolerance": (60 * SECOND, [("tolerance", "5s", "1m")]),
            "direction": ("forward", [("direction", "backward", "forward")]),
            "type": ("inner", []),
            "late": ("side_output", []),
            "prefixes": ({"left": "l_"}, []),
        },
    ),
    "std.process": Subject(
        config={"function": "process_examples:Forgetful", "arguments": {"label": "a", "wait_us": 2}, "keys": ["k"]},
        fields={
            "function": (
                "process_examples:Remembering",
                [
                    ("function", "process_examples:Forgetful", "process_examples:Remembering"),
                    ("arguments", 'label "a", wait_us 2', "wait_us 2"),
                ],
            ),
            "arguments": ({"wait_us": 2}, [("arguments", 'label "a", wait_us 2', 'label "", wait_us 2')]),
            "keys": KEYS,
        },
    ),
    "std.watermark": Subject(
        config={"column": "at", "max_lateness": SECOND},
        fields={
            "column": ("seen", [("time", "at", "seen")]),
            "max_lateness": (5 * SECOND, []),
            "period": (2 * SECOND, []),
            "idle_time": (HOUR, []),
            "expression": None,
        },
    ),
}

#: Operators with tables whose state no setting can make them misread, and why.
EXEMPT = {"std.stdout": "its table has rows of one epoch, until they are printed"}


def settings(registry: Registry, operator: str, config: Mapping[str, Any], inputs: Sequence[ArroyoSchema]) -> Any:
    constructor = registry.constructors[operator]
    made = constructor.with_config(with_defaults(ParseDict(dict(config), constructor.config_type())), registry).operator
    assert made is not None
    found = made.state_settings(inputs)
    return {label: text if isinstance(text, str) else names_text(text.values()) for label, text in found.items()}


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[Change]:
    assert before.keys() == after.keys()
    return [(label, text, after[label]) for label, text in before.items() if after[label] != text]


EVERY_FIELD = [
    pytest.param(operator, name, id=f"{operator} {name}")
    for operator, subject in SUBJECTS.items()
    for name, change in subject.fields.items()
    if change is not None
]


@pytest.mark.parametrize(("operator", "name"), EVERY_FIELD)
def test_a_field_of_the_config_changes_what_state_depends_on_or_nothing(
    registry: Registry, operator: str, name: str
) -> None:
    subject = SUBJECTS[operator]
    value, expected = subject.fields[name] or pytest.fail("there is nothing to try")
    before = settings(registry, operator, subject.config, subject.inputs)
    after = settings(registry, operator, {**subject.config, name: value}, subject.inputs)
    assert changes(before, after) == list(expected)


@pytest.mark.parametrize(
    ("operator", "number"),
    [(operator, number) for operator, subject in SUBJECTS.items() for number in range(len(subject.streams))],
)
def test_other_inputs_change_what_state_depends_on(registry: Registry, operator: str, number: int) -> None:
    subject = SUBJECTS[operator]
    inputs, expected = subject.streams[number]
    before = settings(registry, operator, subject.config, subject.inputs)
    assert changes(before, settings(registry, operator, subject.config, inputs)) == list(expected)


def test_every_operator_with_tables_answers_for_every_field_of_its_config(registry: Registry) -> None:
    """A new operator or a new field must be thought about: does state depend on it?"""
    for operator, constructor in registry.constructors.items():
        if operator in EXEMPT or operator not in SUBJECTS:
            continue
        subject = SUBJECTS[operator]
        fields = {each.name for each in constructor.config_type.DESCRIPTOR.fields}
        assert set(subject.fields) == fields, operator
        assert settings(registry, operator, subject.config, subject.inputs), operator


#: The least config of each operator without tables, to be asked for them.
STATELESS = {
    "std.filter": {"predicate": "v > 1"},
    "std.project": {"keep": ["v"]},
    "std.sql": {"query": "select v from input"},
    "std.key_by": {"keys": ["k"]},
    "std.union": {},
    "std.unnest": {"column": "k"},
    "std.blackhole": {},
    "std.assign_window": {"size": SECOND},
    "std.lookup_join": {"table": {"path": "places.csv"}, "on": ON_K},
    "std.map_batches": None,
    "std.async_udf": None,
}


def test_every_operator_is_known_here(registry: Registry) -> None:
    assert set(registry.constructors) == {*SUBJECTS, *EXEMPT, *STATELESS}
    for operator, config in STATELESS.items():
        if config is None:
            # They need a user function to be made; what they keep between batches is flushed at every barrier.
            continue
        constructor = registry.constructors[operator]
        made = constructor.with_config(with_defaults(ParseDict(config, constructor.config_type())), registry)
        assert made.operator is not None
        assert made.operator.tables([ROWS, ROWS]) == {}, operator
    for operator, subject in SUBJECTS.items():
        constructor = registry.constructors[operator]
        made = constructor.with_config(
            with_defaults(ParseDict(dict(subject.config), constructor.config_type())), registry
        )
        assert made.operator is not None
        assert made.operator.tables(subject.inputs), operator


def test_one_meaning_has_one_text(registry: Registry) -> None:
    def tumbling(**config: Any) -> Any:
        return settings(registry, "std.tumbling_window", {"keys": ["k"], "aggregates": SUM, **config}, [ROWS])

    # 60m and 1h are the same number here; an offset counts modulo the size.
    assert tumbling(size=60 * 60 * SECOND)["size"] == "1h"
    assert tumbling(size=HOUR, offset=HOUR + SECOND) == tumbling(size=HOUR, offset=SECOND)

    def interval(**config: str) -> Any:
        return settings(registry, "std.interval_join", {"on": ON_K, **config}, BOTH)

    assert interval(lower="-60s", upper="1h") == interval(lower="-1m", upper="60m")
    named = settings(registry, "std.watermark", {"column": "at"}, [ROWS])
    assert settings(registry, "std.watermark", {}, [ROWS]) == named


def test_a_percentile_counts_only_where_results_may_have_to_be_taken_back(registry: Registry) -> None:
    def asked(operator: str, percentile: float, **config: Any) -> Any:
        aggregate = {"function": "approx_percentile", "column": "v", "percentile": percentile, "as": "p"}
        return settings(registry, operator, {**config, "aggregates": [aggregate]}, [ROWS])

    # The state is a sketch that any percentile can be asked of.
    assert asked("std.tumbling_window", 0.5, size=HOUR) == asked("std.tumbling_window", 0.9, size=HOUR)
    expected = [("aggregates", "approx_percentile(v, 0.5) as p", "approx_percentile(v, 0.9) as p")]
    early = {"size": HOUR, "early": SECOND}
    assert changes(asked("std.tumbling_window", 0.5, **early), asked("std.tumbling_window", 0.9, **early)) == expected
    assert changes(asked("std.updating_aggregate", 0.5), asked("std.updating_aggregate", 0.9)) == expected


def test_a_filter_is_part_of_an_aggregate(registry: Registry) -> None:
    def filtered(sql: str) -> Any:
        aggregates = [{"function": "count", "as": "n", "filter": sql}]
        return settings(registry, "std.session_window", {"gap": SECOND, "aggregates": aggregates}, [ROWS])

    assert changes(filtered("v > 1"), filtered("v > 2")) == [
        ("aggregates", "count(*) where v > 1 as n", "count(*) where v > 2 as n")
    ]


def test_the_event_time_matters_to_first_and_last_over_the_whole_stream(registry: Registry) -> None:
    aggregates = [{"function": "last", "column": "v", "as": "latest"}]
    before, after = (
        settings(registry, "std.updating_aggregate", {"keys": ["k"], "aggregates": aggregates}, [stream])
        for stream in (ROWS, OTHER_TIME)
    )
    assert changes(before, after) == [("time", "event (at)", "event (seen)")]


def test_windowed_groups_make_their_ranks_when_they_are_sent(registry: Registry) -> None:
    config = {"n": 3, "partition_by": ["at"], "order_by": [{"column": "v"}]}
    before = settings(registry, "std.top_n", config, [ROWS])
    assert before["input"] == "windowed"
    assert settings(registry, "std.top_n", {**config, "rank_column": "rank"}, [ROWS]) == before


def test_a_function_says_which_arguments_its_state_depends_on(registry: Registry) -> None:
    def arguments(name: str, **given: Any) -> str:
        config = {"function": f"process_examples:{name}", "arguments": given, "keys": ["k"]}
        return str(settings(registry, "std.process", config, [ROWS])["arguments"])

    assert arguments("Remembering", wait_us=7, label="a") == arguments("Remembering", wait_us=7, label="b")
    # A default that is written out is the same; one without a lasting form is left out.
    assert arguments("Forgetful") == arguments("Forgetful", wait_us=5) == 'label "", wait_us 5'
    assert arguments("Forgetful", label="b") == 'label "b", wait_us 5'
