"""`mysql.cdc`: a snapshot and then the changes, each once."""

from __future__ import annotations

import pytest
from arroyo_testing.databases import CdcKillSuite, CdcSuite, CdcTimeSuite, MakeTable

pytestmark = pytest.mark.server


class TestSnapshotAndStream(CdcSuite):
    keys = tuple(
        (columns, f"insert into $t select {values} from seq_1_to_60")
        for columns, values in (
            ("a varchar(40), b int unsigned, name text, primary key (a, b)", "md5(seq), seq % 7, 'x'"),
            ("id decimal(20, 3) primary key, name text", "seq * 1.5 - 30, 'x'"),
            ("id varchar(9) character set latin1 primary key, name text", "concat(char(160 + seq), seq), 'x'"),
            ("id varchar(20) collate utf8mb4_bin primary key, name text", "concat('''\\\\é', seq), 'x'"),
            ("id timestamp(3) primary key, name text", "timestamp '2026-01-01 00:00:00' + interval seq hour, 'x'"),
            ("id varbinary(16) primary key, name text", "unhex(md5(seq)), 'x'"),
            ("id binary(4) primary key, name text", "unhex(hex(seq)), 'x'"),
            (
                "a date, b bigint unsigned, name text, primary key (b, a)",
                "'2026-01-01', 18446744073709551615 - seq, 'x'",
            ),
        )
    )


class TestTimes(CdcTimeSuite):
    columns = "id int primary key, at timestamp null"
    lag_words = "of the binlog are not read yet"


class TestKills(CdcKillSuite):
    operator = "mysql.cdc"


def test_snapshot_only_ends(table: MakeTable) -> None:
    made = table()
    made.fill(10)
    found = made.source(snapshot="only", chunk_rows=4).run_all(rows=4)
    assert found["id"].to_pylist() == list(range(1, 11))
    assert found.column_names == ["id", "name"]
