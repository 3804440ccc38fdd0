from __future__ import annotations

import pyarrow as pa
import pytest
from arroyo_formats.registry.framing import frame, header, read_indexes, split, write_indexes
from hypothesis import given
from hypothesis import strategies as st


@given(st.lists(st.tuples(st.integers(0, 2**31 - 1), st.binary(max_size=6)), max_size=8))
def test_what_is_framed_is_split_again(rows: list[tuple[int, bytes]]):
    messages = [frame(pa.array([body], pa.binary()), header(number))[0].as_py() for number, body in rows]
    framed = split(messages)
    assert list(zip(framed.ids.tolist(), framed.bodies, strict=True)) == rows
    assert framed.bad == []
    assert framed.origins is None


@given(st.lists(st.binary(max_size=8), max_size=20))
def test_every_message_is_framed_or_bad_by_its_own_number(messages: list[bytes]):
    framed = split(messages)
    kept = range(len(messages)) if framed.origins is None else framed.origins.tolist()
    expected = [i for i, each in enumerate(messages) if len(each) >= 5 and each[0] == 0]
    assert list(kept) == expected
    assert list(framed.bodies) == [messages[i][5:] for i in expected]
    assert framed.ids.tolist() == [int.from_bytes(messages[i][1:5], "big", signed=True) for i in expected]
    assert sorted(each.index for each in framed.bad) == [i for i in range(len(messages)) if i not in expected]


@given(st.lists(st.integers(0, 3), max_size=20))
def test_groups_have_every_place_once_and_in_order(numbers: list[int]):
    framed = split([header(number) for number in numbers])
    groups = framed.by_id()
    assert [number for number, _ in groups] == sorted(set(numbers))
    for number, places in groups:
        assert places.tolist() == [i for i, each in enumerate(numbers) if each == number]


def test_reasons_name_what_is_there():
    framed = split([b"", b"\0\0\0", b'{"a": 1}', b"\0\0\0\0\7x"])
    assert [(each.index, each.error) for each in framed.bad] == [
        (0, "has 0 bytes: too short for the number of a schema"),
        (1, "has 3 bytes: too short for the number of a schema"),
        (2, "begins with byte 123, and not with 0 and the number of a schema"),
    ]
    assert framed.ids.tolist() == [7]
    assert framed.origins is not None
    assert framed.origins.tolist() == [3]


def test_null_stays_null():
    framed = frame(pa.array([b"a", None], pa.large_binary()), b"p-")
    assert framed.type == pa.large_binary()
    assert framed.to_pylist() == [b"p-a", None]


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=5), st.binary(max_size=3))
def test_the_place_of_a_message_type_is_read_as_written(path: list[int], rest: bytes):
    body = write_indexes(path) + rest
    assert read_indexes(body) == (tuple(path), len(body) - len(rest))


def test_the_first_message_type_is_one_byte():
    assert write_indexes([0]) == b"\0"
    assert read_indexes(b"\0") == ((0,), 1)
    assert read_indexes(b"\x02\0") == ((0,), 2)


@pytest.mark.parametrize("body", [b"", b"\x80", b"\x04\0", b"\x01", b"\xff" * 12, b"\xfe\xff\xff\xff\x0f"])
def test_bytes_that_are_no_place_are_refused(body: bytes):
    with pytest.raises(ValueError, match=r"type"):
        read_indexes(body)
