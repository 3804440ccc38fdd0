"""Tables whose columns an operator of an earlier version gives when it starts."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

from arroyo_core.api import ArroyoSchema, TaskInfo
from arroyo_core.state import StorageProvider, TableManager, merge_operator_metadata, timestamp_table_config
from arroyo_core.state.failures import IncompatibleCheckpointError, NoRegisteredTableError, WrongTableKindError

TASK = TaskInfo(job_id="job", operator_id="op", operator_name="test.op", task_index=0, parallelism=1)
COUNTS = ArroyoSchema(pa.schema({"k": pa.string(), "n": pa.int64()}), key_columns=("k",))
NAMES = ArroyoSchema(pa.schema({"k": pa.string(), "n": pa.string()}), key_columns=("k",))
pytestmark = pytest.mark.filterwarnings("ignore:.*define_table is deprecated:DeprecationWarning")
UNDEFINED = {"t": timestamp_table_config("t", "rows", timedelta(0), True, None)}


@pytest.fixture
def open_tables(tmp_path):
    storage = StorageProvider(tmp_path.as_uri())

    def open_tables(checkpoint=None, tables=UNDEFINED):
        return TableManager.open(task_info=TASK, tables=tables, storage=storage, checkpoint=checkpoint)

    return open_tables


def write(manager):
    manager.define_table("t", COUNTS)
    rows = pa.RecordBatch.from_pydict({"k": ["a"], "n": [1]}, schema=COUNTS.schema)
    manager.get_last_key_value_table("t").upsert(rows)
    return merge_operator_metadata([manager.checkpoint(1, 1, None)])


def test_a_table_defined_at_the_start_is_restored_when_it_is_defined_again(open_tables):
    again = open_tables(write(open_tables()))
    again.define_table("t", COUNTS)
    assert again.get_last_key_value_table("t").get_all().to_pylist() == [{"k": "a", "n": 1}]


def test_other_columns_than_those_of_the_checkpoint_are_refused(open_tables):
    again = open_tables(write(open_tables()))
    with pytest.raises(IncompatibleCheckpointError, match=r"n int64.*n string"):
        again.define_table("t", NAMES)


def test_who_defines_a_table_is_told_what_to_write_instead(open_tables):
    with pytest.warns(DeprecationWarning, match=r"operator 'op'.*columns of table 't'.*tables\(self, inputs\)") as told:
        open_tables().define_table("t", COUNTS)
    assert told[0].filename == __file__


def test_a_view_or_a_checkpoint_of_a_table_without_columns_is_refused(open_tables):
    with pytest.raises(NoRegisteredTableError, match=r"without columns: give them in tables\(self, inputs\)"):
        open_tables().get_last_key_value_table("t")
    with pytest.raises(NoRegisteredTableError, match=r"columns of t: declare them in tables\(self, inputs\)"):
        open_tables().checkpoint(1, 1, None)


def test_a_declared_table_may_be_defined_with_its_own_columns_only(open_tables):
    manager = open_tables(tables={"t": timestamp_table_config("t", "rows", timedelta(0), True, COUNTS)})
    manager.define_table("t", COUNTS)
    with pytest.raises(WrongTableKindError, match="other columns"):
        manager.define_table("t", NAMES)


def test_a_table_that_is_not_declared_cannot_be_defined(open_tables):
    with pytest.raises(NoRegisteredTableError, match="declares no table 'x'"):
        open_tables().define_table("x", COUNTS)
