"""Rows in a table, added, replaced and deleted, each once: what every sink into a database promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from google.protobuf import json_format

from arroyo_core.api import (
    ArrowOperator,
    ArroyoSchema,
    ConstructedOperator,
    OperatorConstructor,
    Registry,
    with_defaults,
)
from arroyo_core.api.updating import make_updates, row_ids, with_updating
from arroyo_core.errors import ConfigError, OperatorError, RetryHint, retry_hint
from arroyo_testing.databases.server import DatabaseServer
from arroyo_testing.parallel import ParallelHarness

STREAM = pa.schema({"word": pa.string(), "n": pa.int64()})
UPSERT: dict[str, Any] = {"mode": "upsert", "keys": ["word"], "create_table": True}


def rows(*items: tuple[Any, Any]) -> pa.RecordBatch:
    """Of `STREAM`."""
    return pa.RecordBatch.from_pylist([{"word": word, "n": n} for word, n in items], STREAM)


class Faults(ABC):
    """Makes connections, and breaks one of them at a call: before it takes effect, or after it did."""

    def __init__(self, server: DatabaseServer) -> None:
        self.server = server
        self.calls: list[str] = []
        self.fail_at: int | None = None
        self.is_late = False
        self._act_at = 0
        self._act: Callable[[], None] = _nothing

    @abstractmethod
    def connect(self) -> Any:
        """What the sink takes for a connection; whatever is called on it is a `call`, and so is this."""

    @abstractmethod
    def lost(self) -> Exception:
        """What the client library raises for a connection that broke."""

    def at(self, call: int, act: Callable[[], None]) -> None:
        """Do something right before a call, counted from 1; 0 for none."""
        self._act_at, self._act = call, act

    @contextmanager
    def call(self, what: str) -> Iterator[None]:
        self.calls.append(what)
        if len(self.calls) == self._act_at:
            self._act()
        is_failing = len(self.calls) == self.fail_at
        if is_failing and not self.is_late:
            raise self.lost()
        yield
        if is_failing:
            raise self.lost()


def _nothing() -> None:
    return


class SinkDatabase(ABC):
    """An empty database, and sinks into its table `totals`."""

    #: What makes the sink.
    constructor: ClassVar[OperatorConstructor[Any]]
    #: What makes connections that break.
    faults: ClassVar[type[Faults]]

    def __init__(self, server: DatabaseServer) -> None:
        """Empties the database."""
        self.server = server
        self.empty()

    @abstractmethod
    def empty(self) -> None:
        """Leave nothing in the database."""

    @abstractmethod
    def sink(self, config: Any, connect: Callable[[], Any]) -> ArrowOperator:
        """A sink that gets its connections so."""

    @abstractmethod
    def has_table(self) -> bool:
        """Whether there is the table `totals`."""

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        return self.server.execute(*statements)

    def found(self) -> list[tuple[Any, ...]]:
        """The rows of the table; those with NULL are first."""
        found = self.execute("select word, n from totals")
        return sorted(found, key=lambda row: [(value is not None, value) for value in row])

    def config(self, **fields: Any) -> Any:
        given = {"connection": self.server.config, "table": "totals", **fields}
        return with_defaults(json_format.ParseDict(given, self.constructor.config_type()))

    def make(self, connect: Callable[[], Any] | None = None, **fields: Any) -> ConstructedOperator:
        config = self.config(**fields)
        if connect is not None:
            return ConstructedOperator.from_operator(self.sink(config, connect))
        return self.constructor.with_config(config, Registry())

    def plan(self, stream: pa.Schema = STREAM, **fields: Any) -> ArroyoSchema:
        """As the planner does it."""
        operator = self.make(**fields).operator
        assert operator is not None
        return operator.output_schema([ArroyoSchema(stream)])

    def harness(
        self,
        stream: pa.Schema | ArroyoSchema,
        *,
        parallelism: int = 1,
        incarnation: str = "a1",
        connect: Callable[[], Any] | None = None,
        **fields: Any,
    ) -> ParallelHarness:
        return ParallelHarness(
            lambda: self.make(connect, **fields),
            inputs=[stream if isinstance(stream, ArroyoSchema) else ArroyoSchema(stream)],
            parallelism=parallelism,
            incarnation=incarnation,
        )

    def write(self, *batches: pa.RecordBatch, **fields: Any) -> None:
        """Each batch in an epoch of its own."""
        with self.harness(batches[0].schema, **fields) as life:
            for batch in batches:
                life.process(batch)
                life.commit(life.checkpoint())
                life.go_on()


class SinkSuite:
    """For a class of tests that has the fixtures `database`, a `SinkDatabase`, and `own_server`."""

    #: A type of texts that can be a key.
    key_type: ClassVar[str]
    #: What a table is made of whose key grows by itself.
    serial: ClassVar[str]
    #: What makes a table with partitions, by a hash of `word`, and of two of them.
    partitions: ClassVar[Sequence[str]]
    #: What the database says of a row that a CHECK refuses.
    refusal: ClassVar[str]

    def test_rows_are_added_when_their_epoch_is_committed(self, database: SinkDatabase) -> None:
        with database.harness(STREAM, parallelism=2, create_table=True) as life:
            life.process(rows(("a", 1), ("b", None), (None, 3)))
            staged = life.checkpoint()
            assert not database.has_table()
            life.commit(staged)
            assert database.found() == [(None, 3), ("a", 1), ("b", None)]
            assert life.counters == {"written_rows": 3}

    def test_rows_are_replaced_by_key(self, database: SinkDatabase) -> None:
        database.write(rows(("a", 1), ("b", 2), ("a", 3)), rows(("b", 4), ("c", 5)), **UPSERT)
        assert database.found() == [("a", 3), ("b", 4), ("c", 5)]

    def test_rows_that_are_taken_back_are_deleted(self, database: SinkDatabase) -> None:
        stream = with_updating(ArroyoSchema(STREAM))
        changes = [
            (rows(("a", 1), ("b", 2), ("c", 3)), False),
            (rows(("b", 2), ("c", 3)), True),
            (rows(("c", 9)), False),
        ]
        with database.harness(stream, **UPSERT) as life:
            for batch, is_retract in changes:
                life.process(make_updates(batch, is_retract=is_retract, ids=row_ids(batch, ["word"])))
                life.commit(life.checkpoint())
                life.go_on()
        assert database.found() == [("a", 1), ("c", 9)]

    def test_what_std_upsert_says_is_deleted_is_deleted(self, database: SinkDatabase) -> None:
        stream = STREAM.append(pa.field("deleted", pa.bool_()))

        def batch(*items: tuple[Any, ...]) -> pa.RecordBatch:
            return pa.RecordBatch.from_pylist([dict(zip(stream.names, item, strict=True)) for item in items], stream)

        first, second = batch(("a", 1, False), ("b", 2, False)), batch(("b", None, True), ("c", 3, False))
        database.write(first, second, deleted_column="deleted", **UPSERT)
        assert database.found() == [("a", 1), ("c", 3)]

    def test_a_key_of_several_columns_and_nothing_else(self, database: SinkDatabase) -> None:
        fields = {"mode": "upsert", "keys": ["n", "word"], "create_table": True}
        database.write(rows(("a", 1), ("a", 2)), rows(("a", 1), ("b", 1)), **fields)
        assert database.found() == [("a", 1), ("a", 2), ("b", 1)]

    def test_columns_are_found_by_name_and_others_keep_their_defaults(self, database: SinkDatabase) -> None:
        database.execute(f"create table totals ({self.serial}, n bigint not null, word text, at text default 'now')")
        database.write(rows(("a", 1)))
        assert database.execute("select * from totals") == [(1, 1, "a", "now")]

    def test_a_table_with_partitions_takes_changes(self, database: SinkDatabase) -> None:
        database.execute(*self.partitions)
        database.write(rows(("a", 1), ("b", 2)), rows(("a", 3)), mode="upsert", keys=["word"])
        assert database.found() == [("a", 3), ("b", 2)]

    def test_a_driver_that_lost_the_job_changes_nothing(self, database: SinkDatabase) -> None:
        with database.harness(STREAM, **UPSERT) as life:
            life.process(rows(("a", 1)))
            staged, token = life.checkpoint(), life.last_token
            life.take_over()
            life.commit(staged)
            life.process(rows(("a", 2)))
            life.commit(life.checkpoint())
            with pytest.raises(OperatorError, match="generation 2 of this job has written") as refused:
                life.commit(staged, token=token)
            assert retry_hint(refused.value) is RetryHint.NO_RETRY
        assert database.found() == [("a", 2)]

    def test_jobs_and_nodes_share_a_table_of_tokens(self, database: SinkDatabase) -> None:
        for incarnation in ("a1", "b2"):
            database.write(rows((incarnation, 1)), incarnation=incarnation, create_table=True)
        assert database.found() == [("a1", 1), ("b2", 1)]
        assert database.execute("select count(*) from arroyo_commits") == [(2,)]

    def test_an_outage_is_tried_again(self, database: SinkDatabase, own_server: DatabaseServer) -> None:
        own = type(database)(own_server)
        with own.harness(STREAM, create_table=True) as life:
            life.process(rows(("a", 1)))
            staged = life.checkpoint()
            own_server.kill()
            with pytest.raises(OperatorError, match="cannot connect") as failed:
                life.commit(staged)
            assert retry_hint(failed.value) is RetryHint.WITH_BACKOFF
            own_server.start()
            life.commit(staged)
        assert own.found() == [("a", 1)]

    def test_a_pipeline_can_be_planned_while_the_database_is_away(
        self, database: SinkDatabase, own_server: DatabaseServer
    ) -> None:
        own = type(database)(own_server)
        own_server.stop()
        assert own.plan().schema == STREAM

    def test_a_row_that_the_table_refuses_names_the_reason(self, database: SinkDatabase) -> None:
        database.execute(
            f"create table totals (word {self.key_type}, n bigint check (n > 0))", "insert into totals values ('a', 1)"
        )
        with database.harness(STREAM) as life:
            life.process(rows(("b", 2), ("a", -1)))
            with pytest.raises(OperatorError, match=self.refusal) as refused:
                life.commit(life.checkpoint())
            assert retry_hint(refused.value) is RetryHint.NO_RETRY
        assert database.found() == [("a", 1)]

    def test_a_view_is_refused(self, database: SinkDatabase) -> None:
        database.execute("create view totals as select '' as word, 1 as n")
        with pytest.raises(ConfigError, match="is not a table that takes rows"):
            database.plan()

    def test_the_plan_shows_the_place_and_no_password(self, database: SinkDatabase) -> None:
        sink = database.make(**UPSERT).operator
        assert sink is not None
        config = database.server.config
        text = str(sink.display())
        assert f"{config['host']}:{config['port']}/{config['database']}" in text
        assert str(config["password"]) not in text
        assert sink.datasets()[0].name == f"{config['database']}.totals"
        assert "arroyo_commits" in sink.state_settings([ArroyoSchema(STREAM)])["tokens"]
