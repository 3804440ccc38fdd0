"""Event time, idleness, backlog and waiting of `postgres.cdc`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from arroyo_postgres.cdc.source import PostgresCdc
from arroyo_postgres.plugin import CdcConstructor
from arroyo_testing import FakeClock, SourceHarness

from arroyo_core.api import Registry, Watermark
from tests.waiting import wait_until

from .support.tables import Materialized, Table, catch_up

pytestmark = pytest.mark.server

MakeTable = Callable[..., Table]


class TickingClock(FakeClock):
    """Each look at it is a tenth of a second later."""

    def now_us(self) -> int:
        self.advance(0.1)
        return super().now_us()


COLUMNS = "id int primary key, at timestamptz"
SECOND_US = 1_000_000


def moment(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND_US


def test_event_time_begins_when_the_snapshot_is_complete(table: MakeTable) -> None:
    made = table(COLUMNS)
    made.run("insert into $t values (1, '2026-01-01 10:00'), (2, '2026-01-01 09:00'), (3, '2026-01-01 08:00')")
    source = made.source(chunk_rows=2, event_time_field="at", max_lateness=60 * SECOND_US)
    assert source.run(rows=2).watermarks == []
    rest = source.run(rows=2, interval_ms=500)
    assert rest.table.num_rows == 1
    assert rest.watermarks == [Watermark.event_time(moment("2026-01-01 09:59"))]
    made.run("insert into $t values (4, '2026-01-01 11:00'), (5, null), (6, '2025-01-01')")
    assert source.run(rows=3, interval_ms=5000).watermarks[-1] == Watermark.event_time(moment("2026-01-01 10:59"))


@pytest.mark.parametrize("lives_on", [False, True])
def test_a_quiet_table_is_idle_until_it_changes(table: MakeTable, lives_on: bool) -> None:
    made, clock, result = table(COLUMNS), TickingClock(), Materialized()
    source = made.source(
        clock=clock, lives_on=lives_on, event_time_field="at", max_lateness=0, idle_after=5 * SECOND_US
    )
    made.run("insert into $t values (1, '2026-01-01 10:00')")
    catch_up(source, result, made)
    # Quiet times of epochs add up.
    wait_until(lambda: Watermark.idle() in source.run(interval_ms=100).watermarks)
    made.run("insert into $t values (2, '2026-01-01 10:01')")
    assert source.run(rows=1).watermarks[-1] == Watermark.event_time(moment("2026-01-01 10:01"))


def test_subtasks_that_read_nothing_are_idle(table: MakeTable) -> None:
    made = table(COLUMNS)
    source = made.source(event_time_field="at", max_lateness=0)
    found = source.run(interval_ms=100, parallelism=3)
    assert found.watermarks.count(Watermark.idle()) == 2


def test_the_backlog_is_an_estimate_of_what_is_not_read_yet(table: MakeTable) -> None:
    made = table()
    source = CdcConstructor().with_config(CdcConstructor().resolve(made.config()), Registry()).source
    assert isinstance(source, PostgresCdc)
    reported: list[int] = []
    run = PostgresCdc.run

    class Watching(PostgresCdc):
        def run(self, ctx: Any, collector: Any) -> Any:
            ctx.report_backlog = reported.append
            return run(self, ctx, collector)

    harness = SourceHarness(lambda: Watching(source._settings))
    made.keep(harness)
    harness.run(interval_ms=500)
    for number in range(40):
        made.fill(100, first=number * 100)
    harness.run(rows=2000)
    assert 1000 < reported[-1] < 4000
    harness.run(rows=2000)
    wait_until(lambda: harness.run(interval_ms=200) is not None and reported[-1] == 0)


def test_a_slot_that_waits_for_an_open_transaction_does_not_hold_the_epoch(table: MakeTable) -> None:
    made, result = table(), Materialized()
    made.fill(2)
    source = made.source()
    with made.server.connect() as writer, writer.transaction():
        writer.execute(f"insert into {made.name} values (3, 'open')".encode())
        assert source.run(interval_ms=300).table.num_rows == 0
        assert source.run(interval_ms=300).table.num_rows == 0
    catch_up(source, result, made)


def test_a_log_that_grows_is_warned_of(table: MakeTable) -> None:
    made = table()
    source = made.source(warn_lag=1 << 20)
    source.run(interval_ms=500)
    made.run("insert into $t select i, repeat('x', 1000) from generate_series(1, 5000) i")
    found = source.run(rows=100)
    assert any("keeps" in text and made.slot in text for text in found.warnings)
