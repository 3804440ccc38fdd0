"""Checkpoints of before are read: these were written by version 0.1.0, before positions had a class in common."""

from __future__ import annotations

import msgspec
from arroyo_mysql.cdc.places import Begun, Place
from arroyo_mysql.cdc.state import MysqlChunk, MysqlPosition

POSITION = (
    b"\x8a\xa5place\x83\xa4file\xadbinlog.000003\xa6offset\xcd\x12g\xa4gtid\xa60-1-42\xa5begun\x85\xa4rows\x07\xa4gtid"
    b"\xa60-1-43\xa9server_id\x01\xa4file\xadbinlog.000003\xa3end\xcd\x12\xc0\xa8prepared\x91\xa1x\xb4"
    b"is_snapshot_complete\xc3\xa7horizon\x83\xa4file\xadbinlog.000002\xa6offsetc\xa4gtid\xa60-1-40\xa5until\xc0\xad"
    b"snapshot_rows\x0c\xa9latest_us\x05\xa7is_idle\xc3\xa8quiet_us\x06"
)
CHUNK = b"\x82\xa4last\x92\xa11\xa3'a'\xa5place\x83\xa4file\xadbinlog.000002\xa6offsetb\xa4gtid\xa60-1-39"


def test_a_position_of_before_is_read() -> None:
    assert msgspec.msgpack.decode(POSITION, type=MysqlPosition) == MysqlPosition(
        place=Place("binlog.000003", 4711, "0-1-42"),
        begun=Begun(7, "0-1-43", 1, "binlog.000003", 4800),
        prepared=("x",),
        is_snapshot_complete=True,
        horizon=Place("binlog.000002", 99, "0-1-40"),
        snapshot_rows=12,
        latest_us=5,
        is_idle=True,
        quiet_us=6,
    )


def test_a_chunk_of_before_is_read_and_both_have_the_fields_of_before() -> None:
    chunk = msgspec.msgpack.decode(CHUNK, type=MysqlChunk)
    assert chunk == MysqlChunk(last=("1", "'a'"), place=Place("binlog.000002", 98, "0-1-39"))
    for data, kind in ((POSITION, MysqlPosition), (CHUNK, MysqlChunk)):
        assert set(msgspec.msgpack.decode(data)) == set(kind.__struct_fields__)
