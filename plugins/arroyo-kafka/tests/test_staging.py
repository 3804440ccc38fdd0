"""What is staged comes back as it was: all messages, in order, in batches that are always the same."""

from __future__ import annotations

import pyarrow as pa
import pytest
from arroyo_kafka.markers import Position
from arroyo_kafka.staging import BATCH_BYTES, BATCH_ROWS, Staged, StagedEpoch, StagedWriter
from hypothesis import given
from hypothesis import strategies as st

SCHEMA = pa.schema([("value", pa.large_binary())])
STAGED = Staged(topic="t", headers=("h",), generation=3, time_us=7, has_earlier=True)


def stream(*batches: list[bytes | None]) -> bytes:
    writer = StagedWriter(SCHEMA, STAGED)
    for values in batches:
        writer.write(pa.RecordBatch.from_pydict({"value": values}, schema=SCHEMA))
    return writer.close()


def values(epoch: StagedEpoch, first: int = 0) -> list[list[bytes | None]]:
    return [batch.messages.column(0).to_pylist() for batch in epoch.batches(first)]


@given(st.lists(st.lists(st.one_of(st.none(), st.binary(max_size=20)), max_size=9), max_size=6))
def test_messages_come_back_in_order(batches):
    staged = stream(*batches)
    expected = [value for batch in batches for value in batch]
    found = [value for batch in values(StagedEpoch({0: staged})) for value in batch]
    assert found == expected
    assert bool(staged) == bool(expected)


def test_subtasks_come_by_number_and_what_they_say_is_put_together():
    epoch = StagedEpoch({2: stream([b"c"]), 0: stream([b"a"]), 1: b""})
    assert values(epoch) == [[b"a"], [b"c"]]
    assert values(epoch, 1) == [[b"c"]]
    assert (epoch.generation, epoch.time_us, epoch.has_earlier) == (3, 7, True)
    assert StagedEpoch({0: b""}).is_empty


def test_batches_have_a_bounded_size_and_small_ones_are_gathered():
    large = stream([b"x" * (BATCH_BYTES // 4)] * 20)
    assert all(batch.messages.nbytes <= 1.1 * BATCH_BYTES for batch in StagedEpoch({0: large}).batches())
    assert len(values(StagedEpoch({0: stream(*[[b"x"]] * 1000)}))) == 1
    assert len(values(StagedEpoch({0: stream([b"x"] * (3 * BATCH_ROWS))}))) == 3


@given(st.integers(0, 2**42), st.integers(0, 2**20 - 1))
def test_a_position_is_an_offset_and_keeps_its_order(epoch, batches):
    position = Position(epoch, batches)
    assert Position.of_offset(position.to_offset()) == position
    assert position < Position.after(epoch)
    assert position.to_offset() < Position.after(epoch).to_offset()


def test_a_stream_of_a_newer_version_is_refused():
    writer = StagedWriter(SCHEMA, Staged(topic="t", version=99))
    writer.write(pa.RecordBatch.from_pydict({"value": [b"x"]}, schema=SCHEMA))
    with pytest.raises(Exception, match="staged by a newer arroyo-kafka"):
        StagedEpoch({0: writer.close()})
