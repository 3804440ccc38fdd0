"""Hypothesis state machines: each kind of table against a plain dictionary or list.

A machine inserts, deletes, moves the watermark, checkpoints, crashes, rescales, compacts and cleans up
in any order. Every kept checkpoint must restore to what the model was when it was published.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from arroyo_core.api.signals import Watermark
from arroyo_core.state import (
    CompactionPolicy,
    DeleteKey,
    DeleteTimeKey,
    DeleteTimeRange,
    DeleteValue,
    StorageProvider,
    TableManager,
    WarmCache,
    global_table_config,
)

from .state_job import EAGER_COMPACTION, RETENTION_US, Job, Row, batch_of, expiring_tables, rows_of

KEYS = st.integers(0, 7)
TIMES = st.integers(0, 40)
VALUES = st.integers(0, 3)
ROWS = st.lists(st.tuples(KEYS, TIMES, VALUES), min_size=1, max_size=8)


class TableMachine(RuleBasedStateMachine):
    """What all kinds of tables share; `model` is the truth since the last checkpoint."""

    make_storage: ClassVar[Callable[[], StorageProvider]]
    cache: ClassVar[WarmCache | None] = None
    compaction: ClassVar[CompactionPolicy] = EAGER_COMPACTION
    #: Whether tables may go on after a checkpoint; what is small is not written into the cache then.
    lives_on: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.watermark_us: int | None = None
        self.model: Any = self.empty_model()
        #: By epoch: the model and the watermark when it was published.
        self.published: dict[int, tuple[Any, int | None]] = {0: (self.empty_model(), None)}
        #: The epoch beside which files are being merged.
        self.compacting_epoch = 0

    @initialize(parallelism=st.integers(1, 3))
    def start(self, parallelism: int) -> None:
        self.job = Job(
            type(self).make_storage(),
            self.tables(),
            cache=self.cache,
            compaction=self.compaction,
            lives_on=self.lives_on,
        )
        self.reopen(parallelism)

    @rule(parallelism=st.integers(1, 4))
    def crash_and_resume(self, parallelism: int) -> None:
        self.reopen(parallelism)
        self.check()

    @rule(advance=st.one_of(st.none(), st.integers(0, 15)))
    def checkpoint(self, advance: int | None) -> None:
        if advance is not None:
            self.watermark_us = (self.watermark_us or 0) + advance
        self.handle_watermark()
        metadata = self.job.take(self.watermark_us)
        self.published[metadata.epoch] = (copy.deepcopy(self.model), self.watermark_us)

    @precondition(lambda self: self.lives_on)
    @rule()
    def checkpoint_and_go_on(self) -> None:
        self.checkpoint(None)
        self.job.go_on()
        self.went_on()

    @precondition(lambda self: self.compacting_epoch <= self.job.epoch)
    @rule()
    def start_compaction(self) -> None:
        self.compacting_epoch = self.job.epoch + 1
        for manager in self.job.managers:
            manager.start_compaction(self.compacting_epoch)

    @precondition(lambda self: self.job.epoch > 0)
    @rule(keep=st.integers(1, 3))
    def clean(self, keep: int) -> None:
        self.job.clean(keep)
        for epoch in self.job.backend.list_epochs():
            model, watermark_us = self.published[epoch]
            checkpoint = self.job.backend.load_checkpoint_metadata("job", epoch)
            managers = self.job.open_at(checkpoint, 2)
            assert self.contents(managers, watermark_us) == self.expected(model, watermark_us)

    @rule()
    def look(self) -> None:
        self.check()

    @invariant()
    def watermark_never_goes_back(self) -> None:
        published = [watermark or 0 for _, watermark in self.published.values()]
        assert (self.watermark_us or 0) <= max(published) + 15

    def reopen(self, parallelism: int) -> None:
        self.job.resume(parallelism)
        self.compacting_epoch = 0
        model, self.watermark_us = self.published[self.job.epoch]
        self.model = copy.deepcopy(model)
        self.restored()

    def check(self) -> None:
        assert self.contents(self.job.managers, self.watermark_us) == self.expected(self.model, self.watermark_us)

    def cutoff(self, watermark_us: int | None) -> int:
        return -1 if watermark_us is None else watermark_us - RETENTION_US

    def tables(self) -> Any:
        raise NotImplementedError

    def empty_model(self) -> Any:
        raise NotImplementedError

    def contents(self, managers: list[TableManager], watermark_us: int | None) -> Any:
        raise NotImplementedError

    def expected(self, model: Any, watermark_us: int | None) -> Any:
        raise NotImplementedError

    def handle_watermark(self) -> None:
        return

    def restored(self) -> None:
        return

    def went_on(self) -> None:
        return


class GlobalMachine(TableMachine):
    """A global keyed table against a dictionary; other subtasks see a change after the next epoch has begun."""

    def went_on(self) -> None:
        for manager in self.job.managers:
            assert manager.get_global_keyed_state("t", int, int).get_all() == self.model

    def tables(self) -> Any:
        return global_table_config("t", "keys")

    def empty_model(self) -> dict[int, int]:
        return {}

    @rule(key=KEYS, value=VALUES)
    def insert(self, key: int, value: int) -> None:
        self.view(key).insert(key, value)
        self.model[key] = value

    @rule(key=KEYS)
    def remove(self, key: int) -> None:
        assert self.view(key).remove(key) == self.model.pop(key, None)

    @rule(key=KEYS)
    def get(self, key: int) -> None:
        assert self.view(key).get(key) == self.model.get(key)

    def view(self, key: int) -> Any:
        # Each key has one writer while the job runs, as with partitions of a source.
        return self.job.managers[key % self.job.parallelism].get_global_keyed_state("t", int, int)

    def contents(self, managers: list[TableManager], watermark_us: int | None) -> Any:
        found: dict[int, int] = {}
        for index, manager in enumerate(managers):
            view = manager.get_global_keyed_state("t", int, int)
            found |= {key: value for key, value in view.get_all().items() if key % len(managers) == index}
        return found

    def expected(self, model: Any, watermark_us: int | None) -> Any:
        return model


class RowsMachine(TableMachine):
    """What the expiring tables share; the model is a list of rows in the order they came."""

    def tables(self) -> Any:
        return expiring_tables("t")

    def empty_model(self) -> list[Row]:
        return []

    def expected(self, model: Any, watermark_us: int | None) -> Any:
        return sorted(row for row in model if row[1] >= self.cutoff(watermark_us))

    def view(self, manager: TableManager, watermark_us: int | None) -> Any:
        raise NotImplementedError

    def views(self) -> list[Any]:
        return [self.view(manager, self.watermark_us) for manager in self.job.managers]


class DeleteRules:
    """Every kind of delete, for machines over rows."""

    def delete(self, operation: Any, rows: list[Row], hits: Callable[[Row, Row], bool]) -> None:
        for view, part in zip(self.views(), self.job.split(batch_of(rows)), strict=True):
            view.delete(operation, part)
        self.model = [row for row in self.model if not any(hits(row, gone) for gone in rows)]

    @rule(rows=ROWS)
    def delete_keys(self, rows: list[Row]) -> None:
        self.delete(DeleteKey(), rows[:2], lambda row, gone: row[0] == gone[0])

    @rule(rows=ROWS)
    def delete_times(self, rows: list[Row]) -> None:
        self.delete(DeleteTimeKey(), rows, lambda row, gone: row[:2] == gone[:2])

    @rule(rows=ROWS)
    def delete_values(self, rows: list[Row]) -> None:
        self.delete(DeleteValue(), rows, lambda row, gone: row == gone)

    @rule(rows=ROWS, start=TIMES, length=st.integers(0, 20))
    def delete_range(self, rows: list[Row], start: int, length: int) -> None:
        end = start + length
        self.delete(
            DeleteTimeRange(start, end), rows[:3], lambda row, gone: row[0] == gone[0] and start <= row[1] <= end
        )


class KeyTimeMachine(DeleteRules, RowsMachine):
    """All rows of each key."""

    def view(self, manager: TableManager, watermark_us: int | None) -> Any:
        return manager.get_key_time_table("t", Watermark(watermark_us))

    @rule(rows=ROWS)
    def insert(self, rows: list[Row]) -> None:
        for view, part in zip(self.views(), self.job.split(batch_of(rows)), strict=True):
            view.insert(part)
        self.model.extend(rows)

    @rule(rows=ROWS)
    def look_up(self, rows: list[Row]) -> None:
        for view, part in zip(self.views(), self.job.split(batch_of(rows)), strict=True):
            matches = view.lookup(part)
            asked = part.column("k").to_pylist()
            found = list(zip(matches.query_rows.tolist(), rows_of(matches.batch), strict=True))
            cutoff = self.cutoff(self.watermark_us)
            expected = [
                (index, row)
                for index, key in enumerate(asked)
                for row in self.model
                if row[0] == key and row[1] >= cutoff
            ]
            assert found == expected

    def handle_watermark(self) -> None:
        for view in self.views():
            if self.watermark_us is not None:
                view.expire(self.watermark_us, RETENTION_US)

    def contents(self, managers: list[TableManager], watermark_us: int | None) -> Any:
        return sorted(row for manager in managers for row in rows_of(self.view(manager, watermark_us).get_all()))


class TimeMachine(RowsMachine):
    """Rows by event time; retention is applied by checkpoints."""

    def view(self, manager: TableManager, watermark_us: int | None) -> Any:
        return manager.get_expiring_time_key_table("t", Watermark(watermark_us))

    def expected(self, model: Any, watermark_us: int | None) -> Any:
        return sorted(model)

    def handle_watermark(self) -> None:
        self.model = [row for row in self.model if row[1] >= self.cutoff(self.watermark_us)]

    @rule(rows=ROWS)
    def insert(self, rows: list[Row]) -> None:
        for view, part in zip(self.views(), self.job.split(batch_of(rows)), strict=True):
            view.insert_batch(part)
        self.model.extend(rows)

    @rule()
    def flush(self) -> None:
        for view in self.views():
            view.flush()

    @rule(time_us=TIMES)
    def expire_one_time(self, time_us: int) -> None:
        gone = [row for view in self.views() for batch in view.expire_timestamp(time_us) for row in rows_of(batch)]
        assert sorted(gone) == sorted(row for row in self.model if row[1] == time_us)
        self.model = [row for row in self.model if row[1] != time_us]

    @rule(time_us=TIMES)
    def expire_before(self, time_us: int) -> None:
        gone = []
        for view in self.views():
            expired = view.expire_before(time_us)
            assert [found for found, _ in expired] == sorted({found for found, _ in expired})
            gone.extend(row for _, batches in expired for batch in batches for row in rows_of(batch))
        assert sorted(gone) == sorted(row for row in self.model if row[1] < time_us)
        self.model = [row for row in self.model if row[1] >= time_us]

    @rule(time_us=TIMES)
    def take_before(self, time_us: int) -> None:
        gone: list[Row] = []
        for view in self.views():
            taken = view.take_before(time_us)
            rows = rows_of(taken) if taken is not None else []
            assert [row[1] for row in rows] == sorted(row[1] for row in rows)
            assert rows or taken is None
            gone.extend(rows)
        assert sorted(gone) == sorted(row for row in self.model if row[1] < time_us)
        self.model = [row for row in self.model if row[1] >= time_us]

    @rule(time_us=TIMES)
    def take_parts_before(self, time_us: int) -> None:
        gone: list[Row] = []
        for view in self.views():
            for part in view.take_parts_before(time_us):
                rows = rows_of(part)
                assert rows
                assert [row[1] for row in rows] == sorted(row[1] for row in rows)
                gone.extend(rows)
        assert sorted(gone) == sorted(row for row in self.model if row[1] < time_us)
        self.model = [row for row in self.model if row[1] >= time_us]

    @rule(times_us=st.sets(TIMES))
    def expire_some_times(self, times_us: set[int]) -> None:
        times = np.array(sorted(times_us), dtype=np.int64)
        gone: list[Row] = []
        for view in self.views():
            parts = view.count_parts(times).tolist()
            assert parts == [len(view.get_batches(time_us)) for time_us in times.tolist()]
            gone.extend(row for batch in view.expire_timestamps(times) for row in rows_of(batch))
            assert not view.count_parts(times).any()
        assert sorted(gone) == sorted(row for row in self.model if row[1] in times_us)
        self.model = [row for row in self.model if row[1] not in times_us]

    @rule()
    def first_time(self) -> None:
        found = [time for view in self.views() if (time := view.get_min_time()) is not None]
        assert min(found, default=None) == min((row[1] for row in self.model), default=None)

    def contents(self, managers: list[TableManager], watermark_us: int | None) -> Any:
        return sorted(
            row
            for manager in managers
            for _, batches in self.view(manager, watermark_us).all_batches_for_watermark()
            for batch in batches
            for row in rows_of(batch)
        )


class DeletingTimeMachine(DeleteRules, TimeMachine):
    """Rows by event time, with deletes: files are then read at once instead of on demand."""


class LastValueMachine(TableMachine):
    """The last row of each key against a dictionary."""

    def tables(self) -> Any:
        return expiring_tables("t", generational=True)

    def empty_model(self) -> dict[int, Row]:
        return {}

    def views(self) -> list[Any]:
        return [manager.get_last_key_value_table("t") for manager in self.job.managers]

    def restored(self) -> None:
        self.handle_watermark()

    def handle_watermark(self) -> None:
        for view in self.views():
            if self.watermark_us is not None:
                view.expire(self.watermark_us, RETENTION_US)

    @rule(rows=ROWS)
    def upsert(self, rows: list[Row]) -> None:
        for view, part in zip(self.views(), self.job.split(batch_of(rows)), strict=True):
            view.upsert(part)
        self.model |= {row[0]: row for row in rows}

    @rule(rows=ROWS)
    def delete(self, rows: list[Row]) -> None:
        for view, part in zip(self.views(), self.job.split(batch_of(rows[:2])), strict=True):
            view.delete(part.select(["k"]))
        for key, _, _ in rows[:2]:
            self.model.pop(key, None)

    @rule(rows=ROWS)
    def look_up(self, rows: list[Row]) -> None:
        live = {row[0]: row for row in self.expected(self.model, self.watermark_us)}
        for view, part in zip(self.views(), self.job.split(batch_of(rows)), strict=True):
            asked = part.column("k").to_pylist()
            mask, found = view.get(part)
            assert mask.tolist() == [key in live for key in asked]
            assert rows_of(found) == [live[key] for key in asked if key in live]
            aligned = view.get_aligned(part).column("v").to_pylist()
            assert aligned == [live[key][2] if key in live else None for key in asked]
            parts = view.get_aligned_parts(part)
            assert [value for some in parts for value in some.column("v").to_pylist()] == aligned
            pairs = list(view.get_parts(part))
            assert [value for some, _ in pairs for value in some.tolist()] == mask.tolist()
            assert [row for _, some in pairs for row in rows_of(some)] == rows_of(found)

    def contents(self, managers: list[TableManager], watermark_us: int | None) -> Any:
        found = []
        for manager in managers:
            view = manager.get_last_key_value_table("t")
            if watermark_us is not None:
                view.expire(watermark_us, RETENTION_US)
            found.extend(rows_of(view.get_all()))
        return sorted(found)

    def expected(self, model: Any, watermark_us: int | None) -> Any:
        return sorted(row for row in model.values() if row[1] >= self.cutoff(watermark_us))


MACHINES = [GlobalMachine, KeyTimeMachine, TimeMachine, DeletingTimeMachine, LastValueMachine]
