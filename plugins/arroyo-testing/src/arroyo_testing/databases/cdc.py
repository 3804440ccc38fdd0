"""A snapshot and then the changes, each once: what every source of the changes of a table promises."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import ClassVar

import pytest

from arroyo_testing.databases.cdc_table import MakeTable, catch_up
from arroyo_testing.databases.materialized import Materialized, kinds
from arroyo_testing.source_harness import SourceHarness
from arroyo_testing.waiting import wait_until


class CdcSuite:
    """For a class of tests that has the fixture `table`, of the type `MakeTable`."""

    #: Columns with a primary key and `name`, and what adds 60 rows to them, with `$t` for the table.
    keys: ClassVar[Sequence[tuple[str, str]]]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "columns" in metafunc.fixturenames:
            metafunc.parametrize(("columns", "statement"), self.keys)

    def test_reads_what_is_there_and_ends_where_it_is_told_to(self, table: MakeTable) -> None:
        made = table()
        made.fill(3)
        source = made.source(until="latest")
        assert kinds(source.run_all()) == [("+", {"id": number, "name": f"row {number}"}) for number in (1, 2, 3)]

    def test_an_update_takes_the_row_back_as_it_was(self, table: MakeTable) -> None:
        made, result = table(), Materialized()
        made.fill(2)
        source = made.source()
        catch_up(source, result, made)
        made.run(
            "update $t set name = 'new' where id = 1", "delete from $t where id = 2", "insert into $t values (3, null)"
        )
        changes = source.run(rows=4).table
        assert kinds(changes) == [
            ("-", {"id": 1, "name": "row 1"}),
            ("+", {"id": 1, "name": "new"}),
            ("-", {"id": 2, "name": "row 2"}),
            ("+", {"id": 3, "name": None}),
        ]
        result.add(changes)
        result.check(made.rows())

    def test_changes_of_one_row_have_one_id(self, table: MakeTable) -> None:
        made, result = table(), Materialized()
        made.fill(1)
        source = made.source()
        catch_up(source, result, made)
        made.run("update $t set name = 'a'", "update $t set id = 2")
        metas = [row["_updating_meta"]["id"] for row in source.run(rows=4).table.to_pylist()]
        assert metas[0] == metas[1] == metas[2] != metas[3]

    def test_chunks_that_are_read_while_rows_change_give_every_row_once(self, table: MakeTable) -> None:
        made, result = table(), Materialized()
        made.fill(30)
        source = made.source(chunk_rows=7)
        for step in range(6):
            result.add(source.run(rows=7).table)
            first = step * 7 + 1
            made.run(
                # In chunks that are read, and others.
                f"update $t set name = concat(name, ' {step}') where id % 3 = {step % 3}",
                f"delete from $t where id in ({first}, {first + 8})",
                f"insert into $t values ({-step}, 'before'), ({100 + step}, 'behind'), ({first}, 'again')",
                f"update $t set id = id + 1000 where id = {first + 3}",  # from one chunk into another
                f"update $t set id = id - 2000 where id = {first + 20}",
            )
        catch_up(source, result, made)

    def test_a_transaction_that_is_open_while_chunks_are_read_counts_once(self, table: MakeTable) -> None:
        made, result = table(), Materialized()
        made.fill(20)
        source = made.source(chunk_rows=5)
        result.add(source.run(rows=5).table)
        with closing(made.server.connect()) as writer, closing(writer.cursor()) as cursor:
            cursor.execute("begin")
            cursor.execute(f"update {made.name} set name = 'open' where id in (2, 8, 18)")
            cursor.execute(f"insert into {made.name} values (7000, 'open')")
            result.add(source.run(rows=5).table)
            cursor.execute("commit")
        for _ in range(2):
            result.add(source.run(rows=5).table)
        catch_up(source, result, made)

    @pytest.mark.parametrize("lives_on", [False, True])
    def test_epochs_of_few_rows_cut_snapshot_and_transactions_anywhere(self, table: MakeTable, lives_on: bool) -> None:
        made, result = table(), Materialized()
        made.fill(10)
        source = made.source(lives_on=lives_on)
        parallelism = [1, 2, 3, 1]
        for step in range(4):
            result.add(source.run(rows=3, interval_ms=200, parallelism=parallelism[step]).table)
            source.run(rows=3, interval_ms=200, parallelism=parallelism[step], is_lost=True)
        made.run("update $t set name = 'a'", "update $t set name = 'b' where id < 6", "delete from $t where id = 3")
        for step in range(6):
            result.add(source.run(rows=3, interval_ms=500, parallelism=parallelism[step % 4]).table)
            source.run(rows=5, interval_ms=500, is_lost=True)
        catch_up(source, result, made, parallelism=2)

    def test_a_table_without_a_key_is_one_chunk(self, table: MakeTable) -> None:
        made, result = table("id int, name text"), Materialized()
        made.fill(10)
        made.fill(10)
        source = made.source()
        source.run(rows=3, is_lost=True)
        result.add(source.run(rows=3).table)
        assert result.count == 20
        made.run("delete from $t where id = 2", "insert into $t values (null, null)")
        catch_up(source, result, made)

    def test_keys_of_any_type_have_the_order_of_the_database(
        self, table: MakeTable, columns: str, statement: str
    ) -> None:
        made, result = table(columns), Materialized()
        made.run(statement)
        source = made.source(chunk_rows=9)
        for step in range(4):
            result.add(source.run(rows=9).table)
            made.run(f"update $t set name = '{step}'")
        # Every row has the last name when all changes are there.
        wait_until(lambda: _have_name(source, result, "3"))
        assert len(result.rows()) == 60

    def test_snapshot_never_gives_the_changes_since_the_first_start(self, table: MakeTable) -> None:
        made = table()
        made.fill(2)
        source = made.source(snapshot="never")
        source.run(interval_ms=1000)
        made.fill(2, first=3)
        assert kinds(source.run(rows=2).table) == [("+", {"id": number, "name": f"row {number}"}) for number in (3, 4)]

    def test_inserts_alone_are_a_stream_that_only_grows(self, table: MakeTable) -> None:
        made = table()
        made.fill(2)
        source = made.source(changes="inserts")
        assert source.run(rows=3, interval_ms=500).table["id"].to_pylist() == [1, 2]
        made.run(
            "insert into $t values (3, 'c')",
            "update $t set name = 'x'",
            "delete from $t where id = 1",
            "insert into $t values (4, null)",
        )
        found = source.run(rows=2).table
        assert found.to_pylist() == [{"id": 3, "name": "c"}, {"id": 4, "name": None}]


def _have_name(source: SourceHarness, result: Materialized, name: str) -> bool:
    """Run an epoch; whether all rows have this name."""
    result.add(source.run(interval_ms=100).table)
    assert result.mistakes == []
    return all(row[-1] == name for row in result.rows())
