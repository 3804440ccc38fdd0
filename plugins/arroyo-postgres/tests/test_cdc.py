"""`postgres.cdc`: a snapshot and then the changes, each once."""

from __future__ import annotations

import pytest
from arroyo_testing.databases import CdcKillSuite, CdcSuite, CdcTimeSuite, MakeTable, Materialized, catch_up, kinds

pytestmark = pytest.mark.server


class TestSnapshotAndStream(CdcSuite):
    keys = tuple(
        (columns, f"insert into $t select {values} from generate_series(1, 60) i")
        for columns, values in (
            ("a text, b int, name text, primary key (a, b)", "md5(i::text), i % 7, 'x'"),
            ("id uuid primary key, name text", "md5(i::text)::uuid, 'x'"),
            ("id numeric(20, 3) primary key, name text", "i * 1.5 - 30, 'x'"),
            ('id text collate "und-x-icu" primary key, name text', "chr(48 + i) || i, 'x'"),
            ("id timestamptz primary key, name text", "'2026-01-01'::timestamptz + i * interval '1 hour', 'x'"),
            ("id bytea primary key, name text", "decode(md5(i::text), 'hex'), 'x'"),
        )
    )


class TestTimes(CdcTimeSuite):
    columns = "id int primary key, at timestamptz"
    lag_words = "of its log for slot 's_$t'"


class TestKills(CdcKillSuite):
    operator = "postgres.cdc"


def test_snapshot_never_gives_the_changes_since_the_slot_was_made(table: MakeTable) -> None:
    made = table()
    made.run(f"create publication {made.slot} for table $t")
    made.run(f"select pg_create_logical_replication_slot('{made.slot}', 'pgoutput')")
    made.fill(2)
    source = made.source(snapshot="never", create=False, until="latest")
    assert kinds(source.run_all()) == [("+", {"id": number, "name": f"row {number}"}) for number in (1, 2)]


def test_snapshot_only_ends_and_needs_no_slot(table: MakeTable) -> None:
    made = table(identity="")
    made.fill(10)
    found = made.source(snapshot="only", slot=None, create=False, chunk_rows=4).run_all(rows=4)
    assert found["id"].to_pylist() == list(range(1, 11))
    assert found.column_names == ["id", "name"]
    assert made.slot_row("1") is None


def test_of_a_publication_with_more_than_inserts_they_alone_count(table: MakeTable) -> None:
    made = table(identity="")
    made.run(f"create publication {made.slot} for table $t")
    source = made.source(changes="inserts", snapshot="never")
    source.run(interval_ms=300)
    made.run(
        "insert into $t values (3, 'c')", "update $t set name = 'x'", "delete from $t", "insert into $t values (4, 'd')"
    )
    found = source.run(rows=2)
    assert found.table["id"].to_pylist() == [3, 4]
    assert found.counters == {"ignored_changes": 2}


def test_a_slot_that_waits_for_an_open_transaction_does_not_hold_the_epoch(table: MakeTable) -> None:
    made, result = table(), Materialized()
    made.fill(2)
    source = made.source()
    with made.server.connect() as writer, writer.transaction():
        writer.execute(f"insert into {made.name} values (3, 'open')".encode())
        assert source.run(interval_ms=300).table.num_rows == 0
        assert source.run(interval_ms=300).table.num_rows == 0
    catch_up(source, result, made)
