"""Partitioned tables: a subtask reads and writes its own keys, and loses none when their owners change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.errors import StateError
from arroyo_core.ids import TaskInfo, key_range
from arroyo_core.proto.state_pb2 import CheckpointMetadata, OperatorCheckpointMetadata
from arroyo_core.state import (
    MigratableState,
    PartitionedKeyedView,
    StorageProvider,
    TableManager,
    global_keyed_view,
    global_table_config,
    global_table_config_with_version,
    merge_operator_metadata,
)
from arroyo_core.state.inspection import read_table

from .support.recording import DictDriver
from .support.state_job import EAGER_COMPACTION

TABLES = global_table_config("t", "a table", is_partitioned=True)
GLOBAL = global_table_config("t", "a table")


class Life:
    """An operator with one table, whose keys belong to subtasks by their remainder."""

    def __init__(self, tables=TABLES) -> None:
        self.driver = DictDriver()
        self.storage = StorageProvider("dict://", driver=self.driver)
        self.tables = tables
        self.epoch = 0
        self.checkpoint: OperatorCheckpointMetadata | None = None
        self.managers: list[TableManager] = []

    def open(self, parallelism: int, value_type: object = None) -> list[PartitionedKeyedView[int, int]]:
        self.managers = []
        for index in range(parallelism):
            task = TaskInfo(
                job_id="job", operator_id="op", operator_name="x", task_index=index, parallelism=parallelism
            )
            self.managers.append(
                TableManager.open(
                    task_info=task,
                    tables=self.tables,
                    storage=self.storage,
                    checkpoint=self.checkpoint,
                    compaction=EAGER_COMPACTION,
                )
            )
        return [
            manager.get_partitioned_keyed_state("t", lambda key: key % parallelism, value_type=value_type)
            for manager in self.managers
        ]

    def take(self) -> OperatorCheckpointMetadata:
        self.epoch += 1
        reports = [manager.checkpoint(self.epoch, 1, None) for manager in self.managers]
        self.checkpoint = merge_operator_metadata(reports)
        return self.checkpoint


def files_of(checkpoint):
    return checkpoint.table_checkpoint_metadata["t"].global_keyed.files


changes = st.lists(st.tuples(st.integers(0, 30), st.one_of(st.none(), st.integers(0, 99))), max_size=12)


@pytest.mark.parametrize("eager_rows", [0, 20_000], ids=["looked up", "eager"])
@pytest.mark.parametrize("begins_global", [False, True])
@settings(max_examples=40)
@given(epochs=st.lists(st.tuples(st.integers(1, 6), changes), min_size=1, max_size=10))
def test_a_table_is_the_same_at_any_parallelism(eager_rows, begins_global, epochs):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(global_keyed_view, "EAGER_ROWS", eager_rows)
        life, model = Life(), {}
        if begins_global:
            life.tables = GLOBAL
            life.epoch = 1
            task = TaskInfo(job_id="job", operator_id="op", operator_name="x", task_index=0, parallelism=1)
            manager = TableManager.open(task_info=task, tables=GLOBAL, storage=life.storage, checkpoint=None)
            for key in range(5):
                manager.get_global_keyed_state("t").insert(key, key)
            model = {key: key for key in range(5)}
            life.checkpoint = merge_operator_metadata([manager.checkpoint(1, 1, None)])
            life.tables = TABLES
        for parallelism, written in epochs:
            views = life.open(parallelism)
            for index, view in enumerate(views):
                own = {key: value for key, value in model.items() if key % parallelism == index}
                assert view.get_all() == own
                assert own.items() <= view.get_restored().items() <= model.items()
            for key, value in written:
                view = views[key % parallelism]
                assert view.get(key) == model.get(key)
                if value is None:
                    assert view.remove(key) == model.pop(key, None)
                else:
                    view.insert(key, value)
                    model[key] = value
            life.take()
        table = read_table(life.storage, CheckpointMetadata(job_id="job", operators=[life.checkpoint]), "op", "t")
        assert {int(key): int(value) for key, value in zip(*table.to_pydict().values(), strict=True)} == model


def test_a_subtask_reads_no_file_of_another_one():
    life = Life()
    for epoch in range(3):
        for index, view in enumerate(life.open(8)):
            view.insert(index, epoch)
        life.take()
    for index, view in enumerate(life.open(8)):
        assert view.get_restored() == {index: 2}
        assert life.managers[index].read_counts.files_opened <= 3
    ranges = {file.subtask_index: key_range(file.subtask_index, 8) for file in files_of(life.checkpoint)}
    for file in files_of(life.checkpoint):
        assert file.min_key_hash in ranges[file.subtask_index]
        assert file.max_key_hash in ranges[file.subtask_index]


def test_when_the_parallelism_changes_everything_is_seen_once_and_then_only_ones_own():
    life = Life()
    for index, view in enumerate(life.open(4)):
        view.insert(index, index * 10)
    life.take()
    for view in life.open(2):
        assert view.get_restored() == {0: 0, 1: 10, 2: 20, 3: 30}
    former = {file.path for file in files_of(life.checkpoint)}
    life.take()
    assert not former & {file.path for file in files_of(life.checkpoint)}
    assert [view.get_restored() for view in life.open(2)] == [{0: 0, 2: 20}, {1: 10, 3: 30}]


def test_a_key_without_an_owner_is_forgotten_when_the_parallelism_changes():
    life = Life()
    life.open(4)
    for index, manager in enumerate(life.managers):
        manager._tables["t"].view = None
        manager.get_partitioned_keyed_state("t", int).insert(index, index)
    life.take()
    life.open(2)
    views = []
    for manager in life.managers:
        manager._tables["t"].view = None
        manager._checkpointers.clear()
        views.append(manager.get_partitioned_keyed_state("t", int))
    assert [view.get_all() for view in views] == [{0: 0}, {1: 1}]
    assert views[0].get_restored() == {0: 0, 1: 1, 2: 2, 3: 3}
    life.take()
    assert [view.get_all() for view in life.open(1)] == [{0: 0, 1: 1}]


def test_the_key_of_another_subtask_is_refused():
    first, _ = Life().open(2)
    with pytest.raises(StateError, match="key 3 belongs to subtask 1, and subtask 0 of 2 must not write it"):
        first.insert(3, 1)
    with pytest.raises(StateError, match="is partitioned"):
        first.remove(5)


def test_a_partitioned_table_must_be_taken_in_every_epoch():
    life = Life()
    life.open(1)[0].insert(1, 1)
    life.take()
    for parallelism in (1, 2):
        life.open(parallelism)
        life.managers[0]._tables["t"].view = None
        with pytest.raises(StateError, match="every subtask must take its view"):
            life.managers[0].checkpoint(2, 1, None)


def test_the_kind_of_a_view_is_that_of_the_declaration():
    life = Life()
    life.open(1)
    with pytest.raises(StateError, match="get_partitioned_keyed_state gives its view"):
        life.managers[0].get_global_keyed_state("t")
    life.tables = GLOBAL
    with pytest.raises(StateError, match="not declared with is_partitioned=True"):
        life.open(1)


def test_a_partitioned_table_does_not_become_a_global_one():
    life = Life()
    life.open(1)[0].insert(1, 1)
    life.take()
    life.tables = GLOBAL
    with pytest.raises(StateError, match="is partitioned in the checkpoint"):
        life.open(1)


@dataclass
class Second(MigratableState):
    VERSION = 1
    PREVIOUS = int
    value: int

    @classmethod
    def migrate(cls, previous):
        return cls(previous * 10)


@pytest.mark.parametrize("parallelism", [2, 3])
def test_values_are_migrated_when_their_owners_change(parallelism):
    configure = partial(global_table_config_with_version, "t", "a table", is_partitioned=True)
    life = Life(configure(0))
    for index, view in enumerate(life.open(2)):
        view.insert(index, index)
    life.take()
    life.tables = configure(1)
    for _ in range(2):
        views = life.open(parallelism, Second)
        assert [view.get(index) for index, view in enumerate(views)][:2] == [Second(0), Second(10)]
        life.take()
