"""Checkpoints of before are read: these were written by version 0.1.0, before positions had a class in common."""

from __future__ import annotations

import msgspec
from arroyo_postgres.cdc.state import PostgresChunk, PostgresPosition

POSITION = (
    b"\x8b\xa3lsn\xcd\x01,\xacread_of_next\x02\xaaformer_lsn\xcc\xc8\xa6system\xa17\xb4is_snapshot_complete\xc3\xab"
    b"horizon_lsn\xcc\x96\xa9until_lsn\xcd\x01\x90\xadsnapshot_rows\x0c\xa9latest_us\x05\xa7is_idle\xc3\xa8quiet_us\x06"
)
CHUNK = b"\x82\xa4last\x92\xa11\xa1a\xa4seen\xa810:20:12"


def test_a_position_of_before_is_read() -> None:
    assert msgspec.msgpack.decode(POSITION, type=PostgresPosition) == PostgresPosition(
        lsn=300,
        read_of_next=2,
        former_lsn=200,
        system="7",
        is_snapshot_complete=True,
        horizon_lsn=150,
        until_lsn=400,
        snapshot_rows=12,
        latest_us=5,
        is_idle=True,
        quiet_us=6,
    )


def test_a_chunk_of_before_is_read_and_both_have_the_fields_of_before() -> None:
    assert msgspec.msgpack.decode(CHUNK, type=PostgresChunk) == PostgresChunk(last=("1", "a"), seen="10:20:12")
    for data, kind in ((POSITION, PostgresPosition), (CHUNK, PostgresChunk)):
        assert set(msgspec.msgpack.decode(data)) == set(kind.__struct_fields__)
