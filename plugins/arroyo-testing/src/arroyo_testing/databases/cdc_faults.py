"""What every source of the changes of a table does where something goes wrong, or is not as it was."""

from __future__ import annotations

import pytest

from arroyo_core.errors import ExternalError
from arroyo_testing.clock import FakeClock
from arroyo_testing.databases.cdc_table import MakeTable, Plan, catch_up, check_refused, go_on, refused
from arroyo_testing.databases.materialized import Materialized
from arroyo_testing.databases.server import DatabaseServer

PLANS: list[Plan] = [
    ([], {"table": "nowhere"}, "table", "no table"),
    ([], {"columns": ["nam"]}, "columns[0]", "did you mean 'name'"),
    ([], {"columns": ["id", "id"]}, "columns[1]", "twice"),
    ([], {"event_time_field": "name"}, "event_time_field", "not a timestamp"),
    ([], {"event_time_field": "nam"}, "event_time_field", "did you mean 'name'"),
    ([], {"max_lateness": 5}, "max_lateness", "event_time_field"),
    (["create view v_$t as select 1 as id"], {"table": "v_$t"}, "table", "not a table"),
]


class CdcFaultSuite:
    """For a class of tests that has the fixtures `table`, of the type `MakeTable`, and `own_server`."""

    @pytest.mark.parametrize("lives_on", [False, True])
    def test_a_server_that_is_killed_is_waited_for_and_nothing_is_lost(
        self, table: MakeTable, own_server: DatabaseServer, lives_on: bool
    ) -> None:
        made, result, clock = table(on=own_server), Materialized(), FakeClock()
        made.fill(20)
        source = made.source(chunk_rows=6, clock=clock, lives_on=lives_on)
        result.add(source.run(rows=6).table)
        own_server.kill()
        down = source.run(interval_ms=100)
        assert down.table.num_rows == 0
        assert down.counters["retries"] == 1
        assert "failing since" in down.warnings[0]
        own_server.start()
        made.run("update $t set name = 'after' where id in (1, 19)")
        go_on(source, clock, result, made)
        for step in range(3):
            made.run(f"update $t set name = '{step}' where id % 3 = {step}")
            own_server.restart()
            made.run("delete from $t where id = 20", "insert into $t values (20, 'again')")
            go_on(source, clock, result, made)

    def test_a_session_that_is_ended_in_the_middle_of_a_transaction_goes_on_behind_what_was_read(
        self, table: MakeTable
    ) -> None:
        made, result, clock = table(), Materialized(), FakeClock()
        made.fill(1)
        source = made.source(clock=clock)
        catch_up(source, result, made)
        made.fill(50, first=2)
        made.run("update $t set name = 'b'")
        for _ in range(6):
            clock.advance(120)
            result.add(source.run(rows=20, interval_ms=2000).table)
            made.end_streams()
        go_on(source, clock, result, made)
        assert result.count == 1 + 50 + 2 * 51

    def test_a_stream_of_an_epoch_before_that_has_ended_is_opened_again_without_a_word(self, table: MakeTable) -> None:
        made, result = table(), Materialized()
        made.fill(3)
        source = made.source()
        catch_up(source, result, made)
        made.end_streams()
        made.fill(2, first=10)
        found = source.run(rows=2)
        assert found.table["id"].to_pylist() == [10, 11]
        assert found.warnings == []
        assert found.counters == {}

    def test_an_outage_that_lasts_too_long_fails_the_epoch(self, table: MakeTable, own_server: DatabaseServer) -> None:
        made, clock = table(on=own_server), FakeClock()
        source = made.source(clock=clock, give_up_after=60_000_000)
        source.run(interval_ms=200)
        own_server.stop()
        source.run(interval_ms=50)
        clock.advance(61)
        with refused(ExternalError, "given up"):
            source.run(interval_ms=50)

    def test_columns_that_are_new_are_left_out_with_a_warning(self, table: MakeTable) -> None:
        made, result = table(), Materialized()
        made.fill(2)
        source = made.source()
        catch_up(source, result, made)
        made.run("alter table $t add column extra int default 5", "insert into $t (id, name) values (3, 'c')")
        found = source.run(rows=1)
        assert found.warnings == [
            f"table {made.schema}.{made.name} has a new column 'extra', which is left out until the pipeline is "
            "planned again"
        ]
        result.add(found.table)
        made.run("update $t set name = concat(name, '!'), extra = 1")
        result.add(source.run(rows=6).table)
        result.check(made.rows("id, name"))

    def test_truncate_may_be_ignored(self, table: MakeTable) -> None:
        made = table()
        made.fill(2)
        source = made.source(on_truncate="ignore")
        source.run(interval_ms=300)
        made.run("truncate $t", "insert into $t values (7, 'x')")
        found = source.run(rows=1)
        assert found.table["id"].to_pylist() == [7]
        assert "TRUNCATE" in found.warnings[0]

    @pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan[3])
    def test_plans_that_cannot_work_are_refused(self, table: MakeTable, plan: Plan) -> None:
        made = table()
        try:
            check_refused(made, plan)
        finally:
            made.run("drop view if exists v_$t")
