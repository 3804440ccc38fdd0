from __future__ import annotations

import os
import random
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from arroyo_formats import FormatChoice
from arroyo_formats.protobuf.fast import FastDecoder
from arroyo_formats.protobuf.format import ProtobufFormat
from arroyo_formats.protobuf.message_type import MessageType, message_type
from arroyo_formats.protobuf.plain import PlainDecoder
from google.protobuf import __version__ as protobuf_version
from google.protobuf import message_factory

from .support.formats_in_tests import choose, read
from .support.mutations import mutated, random_bytes
from .support.protobuf_rows import EVERYTHING, same

COUNT = int(os.environ.get("FORMAT_FUZZ", "20000"))
PACKED = ("rfl", "rdb", "rf64", "rsf32")
#: Given twice in one message, which no writer does, these are merged by one decoder, and the last counts for the other.
KNOWN = ("ts", "du", "c4", "wb", "wi32", "wi64", "wu32", "wu64", "wfl", "wdb", "ws", "wby", "md")


@cache
def everything() -> FormatChoice:
    return choose(ProtobufFormat(), schema_file=str(EVERYTHING), message="everything.Row")


@cache
def kind_without(*names: str) -> MessageType:
    schema = everything().schema(None)
    return message_type(everything().settings, pa.schema([field for field in schema if field.name not in names]))


@cache
def seeds() -> list[bytes]:
    make = message_factory.GetMessageClass(message_type(everything().settings, None).descriptor)
    first = make(b=True, i32=-5, i64=2**60, u64=3, s32=-7, f32=9, fl=1.5, db=2.5, st="héllo", by=b"\xff", e=1)
    first.inner.x = 3
    first.inner.n.extend([1, 2, 300])
    first.rs.extend(["a", ""])
    first.rfl.extend([1.0, 2.0])
    first.rf64.extend([1, 2])
    first.ms["k"] = 5
    first.mi[-3].yes = True
    first.c2 = "chosen"
    first.rd.add().inner.much = 0.5
    second = make(oi=0, os="", oe=-5, c1=0, e=9)
    second.ts.seconds = -1
    second.ts.nanos = 999_999_999
    second.du.seconds = -5
    second.wi64.value = 0
    second.ws.value = "w"
    second.re.extend([0, 1, 7])
    second.md["d"].seconds = 3
    second.rts.add().seconds = 1_700_000_000
    return [first.SerializeToString(), second.SerializeToString(), make(c1=3).SerializeToString()]


def test_bytes_of_all_kinds_are_rows_or_bad_messages():
    rng = random.Random(18)
    bad = rows = 0
    for _ in range(COUNT // 2000):
        messages = [*random_bytes(rng, 1000), *mutated(rng, seeds(), 1000)]
        decoded = read(everything(), messages)
        bad, rows = bad + len(decoded.bad), rows + decoded.batch.num_rows
    assert bad > COUNT // 4
    assert rows > COUNT // 10


@pytest.mark.parametrize("left_out", [PACKED, ()], ids=["unchecked", "checked first"])
@pytest.mark.parametrize("size", [1, 100])
def test_both_decoders_read_the_same_of_what_is_a_message(left_out: tuple[str, ...], size: int):
    kind = kind_without(*left_out, *KNOWN)
    rng = random.Random(19)
    fast, plain = FastDecoder(kind.descriptor, kind.fields, kind.unit), PlainDecoder(kind.descriptor, kind.fields)
    rows = 0
    for _ in range(COUNT // 10 // size):
        # One message is right in each lot, so that there is a row.
        messages = [seeds()[0], *random_bytes(rng, size // 2), *mutated(rng, [*seeds(), seeds()[1] + seeds()[2]], size)]
        found, expected = _rows(fast, messages), _rows(plain, messages)
        # Tags beyond all numbers of fields are taken for others by ptars, which only broken bytes have.
        assert found.keys() >= expected.keys(), messages
        for index, row in expected.items():
            assert same(found[index], row), messages[index]
        rows += len(expected)
    # About a third of a lot are messages: enough is compared.
    assert rows > COUNT // 40


def _rows(decoder: Any, messages: list[bytes]) -> dict[int, Any]:
    """The rows by the numbers of their messages."""
    columns, bad = decoder.decode(messages)
    refused = {each.index for each in bad}
    kept = [index for index in range(len(messages)) if index not in refused]
    return dict(zip(kept, zip(*map(_numbers, columns), strict=True), strict=True))


def _numbers(values: pa.Array) -> Any:
    """Times as numbers: Python's own end with the year 9999."""
    kind = values.type
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return values.cast(pa.int64()).to_pylist()
    if pa.types.is_list(kind) and pa.types.is_timestamp(kind.value_type):
        return values.cast(pa.list_(pa.int64())).to_pylist()
    if pa.types.is_map(kind) and pa.types.is_duration(kind.item_type):
        return values.cast(pa.map_(pa.string(), pa.int64())).to_pylist()
    return values.to_pylist()


def detailed(reason: str) -> str:
    """What protobuf says of bytes that it cannot parse; before version 7 it does not say why."""
    return reason if int(protobuf_version.partition(".")[0]) >= 7 else "not a message of its type"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\x72\x02\xff\xfe", detailed("string field had bad UTF-8")),
        (b"\x72\x05ab", detailed("wire format was corrupt")),
        (b"\x72\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", detailed("wire format was corrupt")),
        (b"\x0e\x00", detailed("wire format was corrupt")),
        (b"\xba\x03\x03abc", detailed("wire format was corrupt")),
        (b"\xc2\x03\x03abc", detailed("wire format was corrupt")),
        (b"\xca\x02\x0a\x08" + b"\xff" * 8 + b"\x7f", "a timestamp that timestamp[us, tz=UTC] cannot hold"),
        (b"\xd2\x02\x0a\x08" + b"\xff" * 8 + b"\x7f", "a duration that duration[us] cannot hold"),
    ],
)
def test_the_reason_says_what_is_wrong(body: bytes, reason: str):
    decoded = read(everything(), [seeds()[0], body, seeds()[1]])
    assert [(each.index, each.error) for each in decoded.bad] == [(1, reason)]
    assert decoded.batch.num_rows == 2


def test_the_last_of_a_oneof_and_of_a_key_counts():
    columns = pa.schema([("c1", pa.int64()), ("c2", pa.string()), ("ms", pa.map_(pa.string(), pa.int64()))])
    both = b"\xa8\x02\x05\xb2\x02\x01a"
    twice = b"\x8a\x02\x05\x0a\x01a\x10\x01\x8a\x02\x05\x0a\x01a\x10\x02"
    decoded = read(everything(), [b"", both, twice, b"\xa8\x02\x07"], columns)
    assert decoded.batch.to_pydict() == {
        "c1": [None, None, None, 7],
        "c2": [None, "a", None, None],
        "ms": [[], [], [("a", 2)], []],
    }


def test_a_oneof_counts_also_where_only_one_of_its_fields_is_a_column():
    decoded = read(everything(), [b"\xa8\x02\x05\xb2\x02\x01a", b"\xa8\x02\x05"], pa.schema([("c1", pa.int64())]))
    assert decoded.batch.to_pydict() == {"c1": [None, 5]}


def test_messages_in_parts_are_merged_and_unknown_fields_skipped():
    columns = pa.schema([("inner", pa.struct({"x": pa.int32(), "s": pa.string()}))])
    parts = b"\x8a\x01\x02\x08\x01" + b"\xa0\x3f\x05" + b"\x8a\x01\x03\x12\x01a"
    assert read(everything(), [parts], columns).batch.to_pydict() == {"inner": [{"x": 1, "s": "a"}]}


def test_one_bad_message_harms_no_other_and_is_found_among_many():
    messages = [seeds()[0]] * 2000
    for place in (0, 17, 1999):
        messages[place] = b"\x72\x05ab"
    decoded = read(everything(), messages)
    assert [each.index for each in decoded.bad] == [0, 17, 1999]
    assert decoded.batch.num_rows == 1997


def test_no_messages_are_no_rows():
    decoded = read(everything(), [])
    assert decoded.batch.num_rows == 0
    assert decoded.bad == []
