"""Event time, idleness, backlog and waiting of every source of the changes of a table."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from typing import ClassVar

import pytest

from arroyo_core.api import Watermark
from arroyo_testing.clock import FakeClock
from arroyo_testing.databases.cdc_table import MakeTable, catch_up
from arroyo_testing.databases.materialized import Materialized
from arroyo_testing.waiting import wait_until

SECOND_US = 1_000_000


class TickingClock(FakeClock):
    """Each look at it is a tenth of a second later."""

    def now_us(self) -> int:
        self.advance(0.1)
        return super().now_us()


def moment(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND_US


class CdcTimeSuite:
    """For a class of tests that has the fixture `table`, of the type `MakeTable`."""

    #: Columns of which `at` has times that are UTC.
    columns: ClassVar[str]
    #: What the warning says of a log that is not read, with `$t` for the table's name.
    lag_words: ClassVar[str]

    def test_event_time_begins_when_the_snapshot_is_complete(self, table: MakeTable) -> None:
        made = table(self.columns)
        made.run("insert into $t values (1, '2026-01-01 10:00'), (2, '2026-01-01 09:00'), (3, '2026-01-01 08:00')")
        source = made.source(chunk_rows=2, event_time_field="at", max_lateness=60 * SECOND_US)
        assert source.run(rows=2).watermarks == []
        rest = source.run(rows=2, interval_ms=500)
        assert rest.table.num_rows == 1
        assert rest.watermarks == [Watermark.event_time(moment("2026-01-01 09:59"))]
        made.run("insert into $t values (4, '2026-01-01 11:00'), (5, null), (6, '2025-01-01')")
        assert source.run(rows=3, interval_ms=5000).watermarks[-1] == Watermark.event_time(moment("2026-01-01 10:59"))

    @pytest.mark.parametrize("lives_on", [False, True])
    def test_a_quiet_table_is_idle_until_it_changes(self, table: MakeTable, lives_on: bool) -> None:
        made, clock = table(self.columns), TickingClock()
        source = made.source(
            clock=clock, lives_on=lives_on, event_time_field="at", max_lateness=0, idle_after=5 * SECOND_US
        )
        made.run("insert into $t values (1, '2026-01-01 10:00')")
        wait_until(lambda: source.run(interval_ms=100).table.num_rows == 1)
        # Quiet times of epochs add up.
        wait_until(lambda: Watermark.idle() in source.run(interval_ms=100).watermarks)
        made.run("insert into $t values (2, '2026-01-01 10:01')")
        assert source.run(rows=1).watermarks[-1] == Watermark.event_time(moment("2026-01-01 10:01"))

    def test_subtasks_that_read_nothing_are_idle(self, table: MakeTable) -> None:
        made = table(self.columns)
        source = made.source(event_time_field="at", max_lateness=0)
        found = source.run(interval_ms=100, parallelism=3)
        assert found.watermarks.count(Watermark.idle()) == 2

    def test_the_backlog_is_an_estimate_of_what_is_not_read_yet(self, table: MakeTable) -> None:
        made = table()
        reported: list[int] = []
        source = made.watched(reported.append)
        source.run(interval_ms=500)
        for number in range(40):
            made.fill(100, first=number * 100)
        source.run(rows=2000)
        assert 1000 < reported[-1] < 4000
        source.run(rows=2000)
        wait_until(lambda: source.run(interval_ms=200) is not None and reported[-1] == 0)

    def test_a_transaction_that_stays_open_does_not_hold_the_epoch(self, table: MakeTable) -> None:
        made, result = table(), Materialized()
        made.fill(2)
        source = made.source()
        with closing(made.server.connect()) as writer, closing(writer.cursor()) as cursor:
            cursor.execute("begin")
            cursor.execute(f"insert into {made.name} values (3, 'open')")
            # The first look at the table may come before the slot or the place is there.
            first = source.run(interval_ms=300).table
            assert 3 not in first["id"].to_pylist()
            result.add(first)
            assert source.run(interval_ms=300).table.num_rows == 0
            cursor.execute("commit")
        catch_up(source, result, made)

    def test_a_log_that_grows_is_warned_of(self, table: MakeTable) -> None:
        made = table()
        source = made.source(warn_lag=1 << 20)
        assert source.run(interval_ms=500).warnings == []
        made.fill(5000)
        made.run("update $t set name = repeat('x', 1000)")
        found = source.run(rows=100)
        words = self.lag_words.replace("$t", made.name)
        assert any(words in text for text in found.warnings), found.warnings
