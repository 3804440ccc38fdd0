"""The published vectors of the stable key hash: a change here breaks every state file in the world."""

import datetime
import decimal
import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.api.hashing import hash_batch, hash_bytes, hash_columns, is_hashable, subtasks_of
from arroyo_core.ids import MAX_KEY_HASH, key_range

VECTORS = [
    (1, pa.int64(), 0xC1B4BB728DD96DC3),
    (1, pa.int32(), 0xC1B4BB728DD96DC3),
    (-1, pa.int64(), 0x0959E03B1E787FCE),
    (0, pa.int64(), 0xBA8894FA3BE59747),
    (2**63 + 5, pa.uint64(), 0xB4BC9371C31F5695),
    (1.5, pa.float64(), 0x3F4CFFA9987471AE),
    (1.5, pa.float32(), 0x3F4CFFA9987471AE),
    (True, pa.bool_(), 0xC1B4BB728DD96DC3),
    ("", pa.string(), 0xBA8894FA3BE59747),
    ("abc", pa.string(), 0xE89962315051205D),
    ("abc", pa.large_string(), 0xE89962315051205D),
    ("abc", pa.string_view(), 0xE89962315051205D),
    (b"abc", pa.binary(), 0xE89962315051205D),
    ("12345678", pa.string(), 0x0CEB92A40D194932),
    ("123456789abcdefg", pa.string(), 0xCBBE0F782155BDC2),
    (None, pa.int64(), 0xA72302C2B845F076),
    (None, pa.string(), 0xA72302C2B845F076),
    (decimal.Decimal("1.50"), pa.decimal128(10, 2), 0x204B332F7B36980E),
    (decimal.Decimal("1.50"), pa.decimal64(10, 2), 0x204B332F7B36980E),
    (datetime.date(2020, 1, 1), pa.date32(), 0xFEF8C024A69EBEDC),
    (datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), pa.timestamp("us", "UTC"), 0xFD31B80FCE85FC34),
    ({"a": 1, "b": "x"}, pa.struct([("a", pa.int64()), ("b", pa.string())]), 0x894F340153A238AD),
]


@pytest.mark.parametrize(("value", "kind", "expected"), VECTORS, ids=lambda item: str(item)[:24])
def test_published_vectors(value, kind, expected):
    assert int(hash_columns([pa.array([value], kind)])[0]) == expected


def test_bytes_hash_equals_the_column_hash():
    assert hash_bytes(b"abc") == 0xE89962315051205D


def test_negative_zero_and_nan_have_one_hash_each():
    hashes = hash_columns([pa.array([0.0, -0.0, float("nan"), -float("nan")])])
    assert hashes[0] == hashes[1]
    assert hashes[2] == hashes[3]


def test_the_order_of_columns_matters():
    one, two = pa.array([1]), pa.array([2])
    assert hash_columns([one, two])[0] != hash_columns([two, one])[0]


def test_no_keys_hash_to_zero():
    assert hash_batch(pa.record_batch({"a": [1, 2]}), ()).tolist() == [0, 0]


@given(st.lists(st.one_of(st.none(), st.text(max_size=40)), max_size=50), st.integers(0, 10))
def test_a_value_hashes_alike_wherever_it_stands(values, start):
    whole = hash_columns([pa.array(values, pa.string())])
    sliced = hash_columns([pa.array(["padding"] * start + values, pa.string()).slice(start)])
    single = [int(hash_columns([pa.array([value], pa.string())])[0]) for value in values]
    assert whole.tolist() == sliced.tolist() == single


@given(st.integers(1, 300), st.lists(st.integers(0, MAX_KEY_HASH), max_size=30))
def test_routing_and_ownership_are_one_function(parallelism, hashes):
    edges = [
        edge
        for index in range(parallelism)
        for edge in (key_range(index, parallelism).start, key_range(index, parallelism).end)
    ]
    values = np.array(hashes + edges, dtype=np.uint64)
    for value, subtask in zip(values.tolist(), subtasks_of(values, parallelism).tolist(), strict=True):
        assert value in key_range(subtask, parallelism)


def test_ranges_cover_everything_once():
    for parallelism in (1, 2, 3, 7, 64):
        ranges = [key_range(index, parallelism) for index in range(parallelism)]
        assert ranges[0].start == 0
        assert ranges[-1].end == MAX_KEY_HASH
        assert all(left.end + 1 == right.start for left, right in itertools.pairwise(ranges))


def test_lists_cannot_be_keys():
    assert not is_hashable(pa.list_(pa.int64()))
    with pytest.raises(TypeError, match="cannot be keys"):
        hash_columns([pa.array([[1]])])
