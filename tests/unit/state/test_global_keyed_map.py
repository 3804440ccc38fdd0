"""Global keyed tables through the table manager: reads, restores, removals, types, versions."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from arroyo_core.errors import StateError
from arroyo_core.ids import TaskInfo
from arroyo_core.proto.state_pb2 import OperatorCheckpointMetadata, TableConfig
from arroyo_core.state import (
    MigratableState,
    StorageProvider,
    TableManager,
    global_keyed_view,
    global_table_config,
    global_table_config_with_version,
    merge_operator_metadata,
)
from arroyo_core.state.envelope import unseal


def task(index: int = 0, parallelism: int = 1) -> TaskInfo:
    return TaskInfo(job_id="job", operator_id="op", operator_name="t.op", task_index=index, parallelism=parallelism)


class Life:
    """An operator with global tables, checkpointed and reopened at any parallelism."""

    def __init__(self, storage: StorageProvider, tables: dict[str, TableConfig]) -> None:
        self.storage = storage
        self.tables = tables
        self.epoch = 0
        self.checkpoint: OperatorCheckpointMetadata | None = None
        self.managers: list[TableManager] = []

    def open(self, parallelism: int = 1) -> list[TableManager]:
        self.managers = [
            TableManager.open(
                task_info=task(i, parallelism), tables=self.tables, storage=self.storage, checkpoint=self.checkpoint
            )
            for i in range(parallelism)
        ]
        return self.managers

    def take(self, **options: Any) -> OperatorCheckpointMetadata:
        self.epoch += 1
        reports = [manager.checkpoint(self.epoch, 1, None, **options) for manager in self.managers]
        self.checkpoint = merge_operator_metadata(reports)
        return self.checkpoint


@pytest.fixture
def storage(tmp_path):
    return StorageProvider(str(tmp_path))


@pytest.fixture
def life(storage):
    return Life(storage, global_table_config("t", "a table"))


def test_values_of_every_subtask_are_visible_to_every_subtask_after_restore(life):
    for manager in life.open(3):
        index = manager.task_info.task_index
        manager.get_global_keyed_state("t").insert(f"rows-{index}", index * 10)
    life.take()
    for manager in life.open(2):
        assert manager.get_global_keyed_state("t").get_all() == {"rows-0": 0, "rows-1": 10, "rows-2": 20}


def test_a_removed_key_stays_removed_after_restore_and_rescale(life):
    view = life.open()[0].get_global_keyed_state("t")
    view.insert("a", 1)
    view.insert("b", 2)
    life.take()
    view = life.open(2)[1].get_global_keyed_state("t")
    assert view.remove("a") == 1
    assert view.remove("a") is None
    assert "a" not in view
    life.take()
    assert life.open(3)[0].get_global_keyed_state("t").get_all() == {"b": 2}


def test_only_changed_keys_are_written(life):
    view = life.open()[0].get_global_keyed_state("t")
    for key in range(100):
        view.insert(key, "x")
    life.take()
    view = life.open()[0].get_global_keyed_state("t")
    view.insert(5, "y")
    view.insert(6, "x")
    checkpoint = life.take()
    files = checkpoint.table_checkpoint_metadata["t"].global_keyed.files
    assert [file.rows for file in files] == [100, 1]
    assert [file.epoch for file in files] == [1, 2]


def test_an_epoch_without_change_writes_no_file_at_all(life, storage):
    life.open(2)
    checkpoint = life.take()
    assert storage.list("job") == []
    assert checkpoint.bytes == 0


@pytest.mark.parametrize("eager_rows", [1000, -1])
def test_a_view_that_lives_on_reads_all_and_writes_each_change_once(life, monkeypatch, eager_rows):
    monkeypatch.setattr(global_keyed_view, "EAGER_ROWS", eager_rows)
    view = life.open()[0].get_global_keyed_state("t")
    for key in "abc":
        view.insert(key, [1])
    life.take()
    view.insert("a", [1])
    view.insert("b", [2])
    assert view.remove("c") == [1]
    assert view.get_all() == {"a": [1], "b": [2]}
    life.take()
    view.insert("d", [4])
    assert "c" not in view
    checkpoint = life.take()
    assert view.get_all() == {"a": [1], "b": [2], "d": [4]}
    files = checkpoint.table_checkpoint_metadata["t"].global_keyed.files
    assert [file.rows for file in files] == [3, 2, 1]
    assert life.open()[0].get_global_keyed_state("t").get_all() == view.get_all()


def test_a_manager_that_goes_on_without_reopening_loses_nothing(life):
    managers = life.open(2)
    for round_number in range(3):
        for index, manager in enumerate(managers):
            manager.get_global_keyed_state("t").insert(("k", index, round_number), round_number)
        life.take()
    expected = {("k", index, number): number for index in range(2) for number in range(3)}
    assert life.open(1)[0].get_global_keyed_state("t").get_all() == expected


@dataclasses.dataclass(frozen=True)
class Partition:
    topic: str
    number: int


class Offset(msgspec.Struct):
    position: int
    name: str | None = None


def test_typed_keys_and_values_come_back_as_their_types(life):
    view = life.open()[0].get_global_keyed_state("t", Partition, Offset)
    view.insert(Partition("a", 1), Offset(7))
    life.take()
    restored = life.open()[0].get_global_keyed_state("t", Partition, Offset)
    assert restored.get_all() == {Partition("a", 1): Offset(7)}
    assert restored.get(Partition("a", 1)) == Offset(7)


@pytest.mark.parametrize("key", [1, -1, 2**63, "text", b"bytes", ("a", 1, (None, 2.5)), True, None])
def test_natural_keys_come_back_as_they_were(life, key):
    life.open()[0].get_global_keyed_state("t").insert(key, "value")
    life.take()
    view = life.open()[0].get_global_keyed_state("t")
    assert view.get(key) == "value"
    [(found, _)] = view.get_all().items()
    assert found == key
    assert type(found) is type(key)


def test_a_read_gives_what_a_restore_would_give(life):
    view = life.open()[0].get_global_keyed_state("t")
    value = {"parts": (1, 2)}
    view.insert("k", value)
    value["parts"] = ()
    assert view.get("k") == {"parts": [1, 2]}
    life.take()
    assert life.open()[0].get_global_keyed_state("t").get("k") == {"parts": [1, 2]}


def test_a_value_that_cannot_be_kept_is_refused_by_name(life):
    view = life.open()[0].get_global_keyed_state("t")
    with pytest.raises(StateError, match=r"table 't' cannot hold the value.*object"):
        view.insert("k", object())
    with pytest.raises(StateError, match="cannot hold the key"):
        view.insert(2**70, 1)


def test_a_wrong_type_is_an_error_that_names_the_table(life):
    life.open()[0].get_global_keyed_state("t").insert("k", "text")
    life.take()
    with pytest.raises(StateError, match="table 't' holds a value that is not of type int"):
        life.open()[0].get_global_keyed_state("t", str, int).get("k")


def test_large_tables_are_looked_up_without_decoding_them(life, monkeypatch):
    monkeypatch.setattr(global_keyed_view, "EAGER_ROWS", 10)
    view = life.open()[0].get_global_keyed_state("t")
    for key in range(500):
        view.insert(key, key)
    life.take()
    view = life.open()[0].get_global_keyed_state("t")
    view.insert(3, "new")
    view.remove(4)
    life.take()
    view = life.open()[0].get_global_keyed_state("t")
    assert not view._stored.is_eager
    assert [view.get(key) for key in (3, 4, 5, 499, 500)] == ["new", None, 5, 499, None]
    assert len(view.get_all()) == 499


class V0(msgspec.Struct):
    count: int


class V1(msgspec.Struct, MigratableState):
    VERSION = 1
    PREVIOUS = V0
    count: int
    name: str

    @classmethod
    def migrate(cls, previous):
        return cls(previous.count, f"n{previous.count}")


class V2(msgspec.Struct, MigratableState):
    VERSION = 2
    PREVIOUS = V1
    label: str

    @classmethod
    def migrate(cls, previous):
        return cls(f"{previous.name}:{previous.count}")


def test_state_migrates_over_any_number_of_steps(storage):
    life = Life(storage, global_table_config_with_version("t", "versioned", 0))
    life.open()[0].get_global_keyed_state("t", str, V0).insert("old", V0(4))
    life.take()
    life.tables = global_table_config_with_version("t", "versioned", 1)
    life.open()[0].get_global_keyed_state("t", str, V1).insert("mid", V1(5, "five"))
    life.take()
    life.tables = global_table_config_with_version("t", "versioned", 2)
    view = life.open()[0].get_global_keyed_state("t", str, V2)
    view.insert("new", V2("x"))
    life.take()
    assert life.open()[0].get_global_keyed_state("t", str, V2).get_all() == {
        "old": V2("n4:4"),
        "mid": V2("five:5"),
        "new": V2("x"),
    }


def test_state_of_a_future_version_is_refused(storage):
    life = Life(storage, global_table_config_with_version("t", "versioned", 2))
    life.open()[0].get_global_keyed_state("t", str, V2).insert("k", V2("x"))
    life.take()
    life.tables = global_table_config_with_version("t", "versioned", 1)
    with pytest.raises(StateError, match=r"table 't' holds state of version 2; this code reads up to version 1"):
        life.open()[0].get_global_keyed_state("t", str, V1)


def test_a_version_before_the_first_known_one_is_refused(storage):
    life = Life(storage, global_table_config_with_version("t", "versioned", 0))
    life.open()[0].get_global_keyed_state("t").insert("k", 1)
    life.take()
    life.tables = global_table_config_with_version("t", "versioned", 3)
    with pytest.raises(StateError, match="version 0"):
        life.open()[0].get_global_keyed_state("t")


def test_commit_data_is_collected_by_table_and_subtask(storage):
    life = Life(storage, global_table_config("c", "commits", uses_two_phase_commit=True))
    for manager in life.open(3)[:2]:
        manager.insert_committing_data("c", f"files-{manager.task_info.task_index}".encode())
    checkpoint = life.take()
    assert checkpoint.needs_commit
    staged = checkpoint.table_checkpoint_metadata["c"].global_keyed.commit_data_by_subtask
    assert dict(staged) == {0: b"files-0", 1: b"files-1"}
    life.open(3)
    assert not life.take().table_checkpoint_metadata["c"].global_keyed.commit_data_by_subtask


def test_commit_data_is_taken_once_per_epoch(storage):
    life = Life(storage, global_table_config("c", "commits", uses_two_phase_commit=True))
    manager = life.open()[0]
    manager.insert_committing_data("c", b"1")
    with pytest.raises(StateError, match="twice in one epoch"):
        manager.insert_committing_data("c", b"2")
    life.take()
    manager.insert_committing_data("c", b"3")


def test_commit_data_needs_a_committing_table(life):
    with pytest.raises(StateError, match="uses_two_phase_commit=True"):
        life.open()[0].insert_committing_data("t", b"x")


def test_a_table_that_is_not_declared_is_refused_with_the_declared_ones(life):
    with pytest.raises(StateError, match=r"declares no table 'u' \(declared: t\)"):
        life.open()[0].get_global_keyed_state("u")


def test_a_checkpoint_with_a_table_that_is_gone_is_refused(life):
    life.open()[0].get_global_keyed_state("t").insert("k", 1)
    life.take()
    life.tables = global_table_config("other", "x")
    with pytest.raises(StateError, match="no longer declares"):
        life.open()


@pytest.mark.parametrize("end", [{"then_stop": True}, {"is_last": True}])
def test_the_subtask_metadata_is_written_where_a_job_ends_at_the_path_of_the_format(life, storage, end):
    life.open(2)[0].get_global_keyed_state("t").insert("k", 1)
    life.take()
    assert not [file.path for file in storage.list("job") if file.path.endswith(".metadata")]
    taken = life.take(**end)
    for index in range(2):
        path = f"job/checkpoints/2/operator-op-{index}.metadata"
        own = unseal(storage.read(path), OperatorCheckpointMetadata, name=path)
        assert (own.subtask_index, own.operator_metadata.epoch) == (index, 2)
        assert own.table_configs == taken.table_configs


def test_merging_needs_every_subtask_exactly_once(life):
    managers = life.open(2)
    reports = [manager.checkpoint(1, 1, None) for manager in managers]
    with pytest.raises(StateError, match=r"subtasks \[0\] reported"):
        merge_operator_metadata(reports[:1])
    with pytest.raises(StateError, match=r"subtasks \[0, 0\] reported"):
        merge_operator_metadata([reports[0], reports[0]])


def test_a_key_whose_file_another_subtask_carries_can_be_removed(life):
    life.open()[0].get_global_keyed_state("t").insert("a", 1)
    life.take()
    for remover in range(4):
        view = life.open(4)[remover].get_global_keyed_state("t")
        view.remove("a")
        life.take()
        assert life.open()[0].get_global_keyed_state("t").get_all() == {}
        life.managers[0].get_global_keyed_state("t").insert("a", 1)
        life.take()
