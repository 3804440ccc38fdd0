"""A type of tables that is not of the core lives as those that are."""

from __future__ import annotations

import pyarrow as pa
import pytest
from arroyo_jobs.checkpoints.verification import Verifier

from arroyo_core.api.hashing import hash_columns, subtasks_of
from arroyo_core.errors import StateError
from arroyo_core.state import StorageProvider, Table, add_table_type, global_table_config, table_types
from arroyo_core.state.failures import IncompatibleCheckpointError, WrongTableKindError
from arroyo_core.state.inspection import read_table, summarize_tables
from arroyo_core.state.table_types import derive_mismatch

from .support.counters_plugin.acme_counters import CountersTable, counters_config, get_counters
from .support.state_job import EAGER_COMPACTION, Job

TABLES = {"n": counters_config(), **global_table_config("other", "a table of the core")}


@pytest.fixture(autouse=True)
def counters(monkeypatch):
    monkeypatch.setattr(table_types, "_TYPES", dict(table_types._TYPES))
    add_table_type(CountersTable)


@pytest.fixture
def job(tmp_path):
    job = Job(StorageProvider(tmp_path.as_uri()), TABLES, compaction=EAGER_COMPACTION)
    job.resume(1)
    return job


def count(job, *keys):
    """Add to each key in the subtask that owns it, and end the epoch."""
    owners = subtasks_of(hash_columns([pa.array(keys, pa.int64())]), len(job.managers))
    views = [get_counters(manager, "n") for manager in job.managers]
    for key, owner in zip(keys, owners.tolist(), strict=True):
        views[owner].add(key)
    job.take(None)


def counts(job):
    found = {}
    for manager in job.managers:
        found |= get_counters(manager, "n").counts
    return found


def files(job):
    (table,) = [table for table in summarize_tables(job.checkpoint) if table.table == "n"]
    assert table.kind == "counters"
    return table.files


def test_it_is_checkpointed_restored_rescaled_and_compacted(job):
    most = 0
    for epoch in range(12):
        count(job, *range(epoch + 1))
        most = max(most, files(job))
        job.resume((1, 2, 3)[epoch % 3])
        assert counts(job) == {key: epoch + 1 - key for key in range(epoch + 1)}
    assert most > files(job)


def test_it_is_shown_and_verified(job):
    count(job, 7, 7, 8)
    count(job, 8)
    assert read_table(job.storage, job.checkpoint, "op", "n").to_pylist() == [
        {"key": 7, "count": 2},
        {"key": 8, "count": 2},
    ]
    verdict = Verifier(job.backend).verify(job.checkpoint.epoch)
    assert (verdict.files, verdict.problems) == (2, ())


def test_it_says_itself_what_it_cannot_take_over(job):
    count(job, 7)
    job.tables = {**TABLES, "n": counters_config("bytes")}
    with pytest.raises(IncompatibleCheckpointError, match=r"table 'n'.* counts rows in the checkpoint"):
        job.resume(1)
    other = global_table_config("n", "keys")["n"]
    assert (
        derive_mismatch(counters_config(), other) == "is COUNTERS in the checkpoint, and declared as GLOBAL_KEY_VALUE"
    )


def test_a_view_of_another_type_is_refused(job):
    with pytest.raises(WrongTableKindError, match="declared as COUNTERS, not as GLOBAL_KEY_VALUE"):
        job.managers[0].get_global_keyed_state("n")
    with pytest.raises(WrongTableKindError, match="declared as GLOBAL_KEY_VALUE, not as COUNTERS"):
        get_counters(job.managers[0], "other")


def test_a_table_of_a_type_that_nobody_has_added_is_refused(job, monkeypatch):
    count(job, 7)
    monkeypatch.delitem(table_types._TYPES, CountersTable.table_type)
    with pytest.raises(StateError, match="no table type 1001 here: install the plugin that has it"):
        job.resume(1)
    other = global_table_config("n", "keys")["n"]
    assert "is TABLE_TYPE_1001 in the checkpoint" in derive_mismatch(counters_config(), other)


@pytest.mark.parametrize(
    ("number", "message"),
    [(1001, "1001 of .*Another is taken by .*CountersTable"), (1, "taken by .*GlobalKeyedTable"), (7, "must be 1000")],
)
def test_a_number_that_is_taken_or_of_the_core_is_refused(number, message):
    class Another(CountersTable):
        table_type = number

    with pytest.raises(StateError, match=message):
        add_table_type(Another)
    add_table_type(CountersTable)


def test_a_type_must_say_what_its_files_hold():
    class Half(Table):
        pass

    assert Half.__abstractmethods__ == {"checkpointer", "derive_mismatch", "file_schema", "merge_rows", "to_people"}
