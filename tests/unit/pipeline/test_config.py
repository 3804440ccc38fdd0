import base64

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.errors import Location
from arroyo_core.pipeline.config import read_config
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.loader import load_document
from arroyo_core.pipeline.mistakes import Mistakes

AT = Location("p.yaml", 1, 1)


@pytest.fixture(scope="module")
def environment():
    return {"NUMBER": "12", "WORD": "hunter2", "ON": "true"}


@pytest.fixture
def read(kitchen_type, environment):
    """The message for a config, as a dict, and the mistakes as `line:column message`."""

    def call(text, message_type=kitchen_type):
        mistakes = Mistakes()
        value = load_document(text, file="p.yaml", environment=Environment(environment), mistakes=mistakes)
        message = read_config(value, message_type, at=AT, what="the config", mistakes=mistakes)
        return message, mistakes.sorted()

    return call


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("text: hello", {"text": "hello"}),
        ("text: no", {"text": "no"}),
        ("text: 2026-01-31", {"text": "2026-01-31"}),
        ("text: '5'", {"text": "5"}),
        ("small: -7", {"small": -7}),
        ("count: 18446744073709551615", {"count": "18446744073709551615"}),
        ("count: '12'", {"count": "12"}),
        ("count: 1e6", {"count": "1000000"}),
        ("ratio: 3", {"ratio": 3.0}),
        ("ratio: .5", {"ratio": 0.5}),
        ("ratio: Infinity", {"ratio": "Infinity"}),
        ("ratio: -.inf", {"ratio": "-Infinity"}),
        ("flag: true", {"flag": True}),
        ("data: aGVsbG8=", {"data": "aGVsbG8="}),
        ("data: -_-_", {"data": "+/+/"}),
        ("bad_data: drop", {"bad_data": "BAD_DATA_DROP"}),
        ("bad_data: DROP", {"bad_data": "BAD_DATA_DROP"}),
        ("bad_data: bad_data_drop", {"bad_data": "BAD_DATA_DROP"}),
        ("badData: 1", {"bad_data": "BAD_DATA_FAIL"}),
        ("color: Green", {"color": "green"}),
        ("max_lateness: 10s", {"max_lateness": "10000000"}),
        ("maxLateness: 1.5h", {"max_lateness": "5400000000"}),
        ("max_size: 1MiB", {"max_size": "1048576"}),
        ("max_size: 4096", {"max_size": "4096"}),
        ("nested: {column: a, depth: 2}", {"nested": {"column": "a", "depth": 2}}),
        ("many: [{column: a}, {column: b}]", {"many": [{"column": "a"}, {"column": "b"}]}),
        ("words: [a, no, '1']", {"words": ["a", "no", "1"]}),
        ("by_name: {a: 1, no: 2}", {"by_name": {"a": 1, "no": 2}}),
        ("by_number: {7: {column: x}}", {"by_number": {"7": {"column": "x"}}}),
        ("left: a", {"left": "a"}),
        ("anything: [1, {a: null}]", {"anything": [1.0, {"a": None}]}),
        ("anything:", {"anything": None}),
        ("settings: {a: 1, b: [true, x]}", {"settings": {"a": 1.0, "b": [True, "x"]}}),
        ("items: [1, x]", {"items": [1.0, "x"]}),
        ("wait: 1500ms", {"wait": "1.500s"}),
        ("since: 2026-01-31T12:00:00Z", {"since": "2026-01-31T12:00:00Z"}),
        ("limit: 0", {"limit": 0}),
        ("isOn: false", {"is_on": False}),
        ("text:", {}),
        ("text: ~\nsmall: null", {}),
        ('count: "${NUMBER}"', {"count": "12"}),
        ("count: ${NUMBER}", {"count": "12"}),
        ("text: ${NUMBER}", {"text": "12"}),
        ("flag: ${ON}", {"flag": True}),
        ("settings: {a: '${NUMBER}'}", {"settings": {"a": "12"}}),
        ("text: cost $$5 or $5", {"text": "cost $5 or $5"}),
        ("text: ${MISSING:-fallback}", {"text": "fallback"}),
    ],
)
def test_a_config_is_read_in_protobufs_json_form(read, text, expected):
    message, mistakes = read(text)
    assert mistakes == []
    assert json_format.MessageToDict(message, preserving_proto_field_name=True) == expected


def test_an_ordered_map_keeps_the_order_as_written(read):
    message, _ = read("expressions: {zulu: a, alpha: b, mike: c}")
    assert [(item.name, item.sql) for item in message.expressions] == [("zulu", "a"), ("alpha", "b"), ("mike", "c")]


def test_an_ordered_map_may_be_written_as_a_list(read):
    message, _ = read("expressions: [{name: zulu, sql: a}]")
    assert [(item.name, item.sql) for item in message.expressions] == [("zulu", "a")]


@pytest.mark.parametrize(
    ("text", "place", "fragment", "suggestion"),
    [
        ("txet: a", "1:1", "has no field 'txet'", "text"),
        ("text: 5", "1:7", "must be a string, not the number 5", '"5"'),
        ("text: true", "1:7", "must be a string, not true", '"true"'),
        ("text: [a]", "1:7", "must be a string, not a list", None),
        ("small: 2147483648", "1:8", "between -2147483648 and 2147483647", None),
        ("count: -1", "1:8", "between 0 and", None),
        ("count: 1.5", "1:8", "whole number, not the number 1.5", None),
        ("count: true", "1:8", "whole number, not true", None),
        ("count: 0o17", "1:8", "whole number, not the string '0o17'", "15"),
        ("count: 017", "1:8", "whole number, not the string '017'", "17"),
        ("count: 0x1F", "1:8", "whole number", "31"),
        ("count: 1_000", "1:8", "whole number", "1000"),
        ("count: 1:30", "1:8", "whole number, not the string '1:30'", None),
        ("ratio: fast", "1:8", "must be a number", None),
        ("single: 1e300", "1:9", "32 bits", None),
        ("flag: no", "1:7", "true or false, not the string 'no'", "false"),
        ("flag: On", "1:7", "true or false", "true"),
        ("flag: 'true'", "1:7", "true or false", "true"),
        ("flag: maybe", "1:7", "true or false", None),
        ("data: '%%'", "1:7", "base64", None),
        ("bad_data: dorp", "1:11", "one of fail, drop", "drop"),
        ("bad_data: unspecified", "1:11", "one of fail, drop", None),
        ("bad_data: 0", "1:11", "one of fail, drop", None),
        ("max_lateness: 10", "1:15", "has no unit", "10s"),
        ("max_lateness: 5 seconds", "1:15", "unknown unit 'seconds'", "5s"),
        ("max_size: 1gib", "1:11", "unknown unit", "1GiB"),
        ("nested: a", "1:9", "a mapping with the fields column, depth", None),
        ("nested: {depth: 2}", "1:9", "'nested' needs the field 'column'", None),
        ("nested: {column: ''}", "1:10", "'column' must not be empty", None),
        ("nested: {colum: a}", "1:10", "'nested' has no field 'colum'", "column"),
        ("many: [{column: a}, {column: 1}]", "1:30", "must be a string", '"1"'),
        ("many: {column: a}", "1:7", "must be a list, not a mapping", None),
        ("words: a", "1:8", "must be a list, not the string 'a'", "[a]"),
        ("words: [a, ~]", "1:12", "'words'[1] is empty", None),
        ("expressions: {a: }", "1:15", "'a' is empty", None),
        ("expressions: {a: 1}", "1:18", "must be a string", '"1"'),
        ("by_name: [a]", "1:10", "must be a mapping", None),
        ("by_name: {a: x}", "1:14", "'a' must be a whole number", None),
        ("by_number: {x: {column: a}}", "1:13", "the key 'x' of 'by_number' must be a whole number", None),
        ("{left: a, right: b}", "1:11", "'right' cannot be set together with 'left'", None),
        ("{bad_data: drop, badData: fail}", "1:18", "the same field", None),
        ("settings: [1]", "1:11", "must be a mapping, not a list", None),
        ("settings: {a: [1, 1e400]}", "1:19", "'settings' cannot hold the number 1e400, which is not finite", None),
        ("items: [.nan]", "1:9", "'items' cannot hold the number .nan, which is not finite", None),
        ("items: {a: 1}", "1:8", "must be a list, not a mapping", None),
        ("wait: 5", "1:7", "has no unit", "5s"),
        ("since: 2026-01-31", "1:8", "Timestamp, such as 2026-01-31T12:00:00Z", None),
        ("limit: 3000000000", "1:8", "between", None),
        ("is_on: yes", "1:8", "true or false", "true"),
        ("[a]", "1:1", "the config must be a mapping", None),
        ("text: ${UNSET}x", "1:7", "environment variable UNSET is not set", None),
        ("count: a${UNSET}x", "1:9", "environment variable UNSET is not set", None),
    ],
)
def test_a_mistake_in_a_config_has_a_place_and_a_suggestion(read, text, place, fragment, suggestion):
    message, mistakes = read(text)
    assert message is None
    assert len(mistakes) == 1, mistakes
    assert f"{mistakes[0].at.line}:{mistakes[0].at.column}" == place
    assert fragment in mistakes[0].message
    assert mistakes[0].suggestion == suggestion


@pytest.mark.parametrize("field", ["small", "ratio", "flag", "bad_data", "max_lateness", "max_size", "since", "limit"])
def test_a_value_of_the_environment_is_not_shown(read, field):
    _, mistakes = read(f"{field}: ${{WORD}}")
    assert len(mistakes) == 1
    shown = f"{mistakes[0]} {mistakes[0].value} {mistakes[0].suggestion}"
    assert "hunter2" not in shown
    assert "${WORD}" in shown


def test_all_mistakes_of_a_config_are_found(read):
    _, mistakes = read("txt: a\nsmall: x\nflag: no\nmany:\n  - {}\n  - {depth: deep}\n")
    assert [error.at.line for error in mistakes] == [1, 2, 3, 5, 6, 6]


@given(st.binary(max_size=50))
def test_bytes_come_back_from_base64(kitchen_bytes, data):
    assert kitchen_bytes(base64.b64encode(data).decode()) == data


@pytest.fixture(scope="module")
def kitchen_bytes():
    from google.protobuf.wrappers_pb2 import BytesValue

    def call(text):
        mistakes = Mistakes()
        value = load_document(f'"{text}"', file="p.yaml", environment=Environment({}), mistakes=mistakes)
        message = read_config(value, BytesValue, at=AT, what="the config", mistakes=mistakes)
        assert not mistakes
        return message.value

    return call
