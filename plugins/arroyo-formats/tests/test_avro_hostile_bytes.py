from __future__ import annotations

import json
import os
import random
from typing import Any

import pyarrow as pa
import pytest
from arroyo_formats.avro.fast import FastDecoder, is_fast
from arroyo_formats.avro.format import AvroFormat
from arroyo_formats.avro.plain import PlainDecoder
from arroyo_formats.avro.schema import parse

from .support.formats_in_tests import choose, read, written
from .support.mutations import mutated, random_bytes
from .support.registry_server import RegistryState

COUNT = int(os.environ.get("FORMAT_FUZZ", "20000"))

FAST: Any = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "a", "type": "int"},
        {"name": "b", "type": ["null", "string"]},
        {"name": "c", "type": {"type": "array", "items": ["null", "long"]}},
        {"name": "d", "type": {"type": "map", "values": "double"}},
        {"name": "e", "type": {"type": "enum", "name": "e", "symbols": ["A", "B", "C"]}},
        {"name": "f", "type": ["null", {"type": "record", "name": "i", "fields": [{"name": "x", "type": "boolean"}]}]},
        {"name": "g", "type": {"type": "long", "logicalType": "time-micros"}},
        {"name": "h", "type": "float"},
    ],
}
PLAIN: Any = {
    **FAST,
    "fields": [
        *FAST["fields"],
        {"name": "k", "type": "bytes"},
        {"name": "l", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "m", "type": ["int", "string", {"type": "fixed", "name": "x", "size": 3}]},
    ],
}
ROWS = {
    "a": [1, -(2**31), 7],
    "b": ["héllo", None, ""],
    "c": [[1, None, 2**62], [], [3]],
    "d": [[("k", 0.5)], [], [("a", 1.0), ("b", -1.0)]],
    "e": ["A", "C", "B"],
    "f": [{"x": True}, None, {"x": False}],
    "g": pa.array([0, 1, 86_399_999_999], pa.time64("us")),
    "h": pa.array([1.5, -0.0, 2.0], pa.float32()),
}


def seeds() -> list[bytes]:
    kinds = {"a": pa.int32(), "c": pa.list_(pa.int64()), "d": pa.map_(pa.string(), pa.float64())}
    arrays = [v if isinstance(v, pa.Array) else pa.array(v, kinds.get(k)) for k, v in ROWS.items()]
    batch = pa.RecordBatch.from_arrays(arrays, list(ROWS))
    return written(choose(AvroFormat(), schema=json.dumps(FAST)), batch)


@pytest.mark.parametrize("schema", [FAST, PLAIN], ids=["fast", "plain"])
@pytest.mark.parametrize("framing", ["none", "single_object"])
def test_bytes_of_all_kinds_are_rows_or_bad_messages(schema: Any, framing: str):
    rng = random.Random(18)
    choice = choose(AvroFormat(), schema=json.dumps(schema), framing=framing)
    more = b"" if schema is FAST else b"\x04ab\x02\x05\x02\x02x"
    given = [seed + more for seed in seeds()]
    bad = 0
    for _ in range(COUNT // 2000):
        messages = [*random_bytes(rng, 1000), *mutated(rng, given, 1000)]
        bad += len(read(choice, messages).bad)
    assert bad > COUNT // 4


def test_both_decoders_refuse_and_take_the_same_bytes():
    record = parse(json.dumps(FAST))
    assert is_fast(record)
    rng = random.Random(19)
    fast, plain = FastDecoder(record), PlainDecoder(record)
    taken = 0
    for _ in range(COUNT // 2000):
        messages = [*random_bytes(rng, 500), *mutated(rng, seeds(), 1500)]
        found, expected = fast.decode(messages), plain.decode(messages)
        assert found[1] == expected[1]
        # Not a number is not equal to itself.
        assert str(found[0].to_pylist()) == str(expected[0].to_pylist())
        taken += len(found[0])
    assert taken > COUNT // 100


def test_both_decoders_refuse_and_take_the_same_bytes_one_by_one():
    # Among others, a bad message sends its neighbours to the other decoder too.
    record = parse(json.dumps(FAST))
    rng = random.Random(21)
    fast, plain = FastDecoder(record), PlainDecoder(record)
    for message in [*random_bytes(rng, COUNT // 10), *mutated(rng, seeds(), COUNT // 10)]:
        found, expected = fast.decode([message]), plain.decode([message])
        assert found[1] == expected[1], message
        assert str(found[0].to_pylist()) == str(expected[0].to_pylist()), message


def test_framed_bytes_of_all_kinds_are_rows_or_bad_messages(registry: RegistryState):
    rng = random.Random(20)
    numbers = [registry.add("s", FAST), registry.add("s", PLAIN), registry.add("s", '"string"')]
    choice = choose(AvroFormat(), registry={"url": registry.url, "subject": "s", "version": "1"})
    heads = [b"\0" + number.to_bytes(4, "big") for number in [*numbers, 77]]
    given = [rng.choice(heads) + seed for seed in seeds() * 4]
    for _ in range(COUNT // 10_000):
        # Few numbers of schemas: each unknown one is a question to the registry.
        messages = [each if each[1:4] == b"\0\0\0" else b"\1" + each for each in mutated(rng, given, 2000)]
        read(choice, messages)


def test_a_count_beyond_all_bytes_costs_nothing():
    choice = choose(AvroFormat(), schema='{"type": "array", "items": "long"}')
    huge = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    decoded = read(choice, [huge, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02", huge + b"\x02", b"\x00"])
    assert decoded.batch.to_pydict() == {"value": [[]]}


@pytest.mark.parametrize(
    ("schema", "body", "reason"),
    [
        ('"string"', b"\x0aab", "ends within a value"),
        ('"string"', b"\x01ab", "a length of -1"),
        ('"string"', b"\x02\xff", "a string that is not UTF-8: invalid start byte"),
        ('"boolean"', b"\x02", "byte 2 is no boolean"),
        ('"long"', b"\xff" * 11, "a number of more than ten bytes"),
        ('"long"', b"", "ends within a value"),
        ('"long"', b"\x02\x02", "1 bytes are left after the value"),
        ('"int"', b"\xfe\xff\xff\xff\xff\x01", "value: a value does not fit int32"),
        ('["null", "long"]', b"\x01", "a union has no branch -1"),
        ('{"type": "enum", "name": "e", "symbols": ["A"]}', b"\x01", "enum e has no symbol -1"),
        ('{"type": "int", "logicalType": "time-millis"}', b"\x01", "value: a time that is in no day"),
    ],
)
def test_the_reason_says_what_is_wrong(schema: str, body: bytes, reason: str):
    decoded = read(choose(AvroFormat(), schema=schema), [body])
    assert [each.error for each in decoded.bad] == [reason]


def test_one_bad_message_harms_no_other_and_is_found_among_many():
    choice = choose(AvroFormat(), schema='"long"')
    messages = [b"\x02"] * 5000
    for place in (0, 17, 2500, 4999):
        messages[place] = b"\x80"
    decoded = read(choice, messages)
    assert [each.index for each in decoded.bad] == [0, 17, 2500, 4999]
    assert decoded.batch.num_rows == 4996


def test_no_messages_are_no_rows():
    decoded = read(choose(AvroFormat(), schema=json.dumps(FAST)), [])
    assert decoded.batch.num_rows == 0
    assert decoded.bad == []


def test_only_bad_messages_are_no_rows():
    decoded = read(choose(AvroFormat(), schema=json.dumps(FAST)), [b"", b"\x80"])
    assert decoded.batch.num_rows == 0
    assert [each.index for each in decoded.bad] == [0, 1]
