"""`spark.sink` without Spark: its config, what it promises, what it stages."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_spark.sink import refused
from arroyo_spark.staging import EpochFiles, StagedRows, decode, encode, epoch_folder, spark_url

from arroyo_core import InvalidPipelineError
from arroyo_core.api import Dataset, TaskInfo
from arroyo_core.errors import DataError, ExternalError, StateError, UnsafePathError
from arroyo_core.pipeline.planner import plan_file
from arroyo_core.pipeline.views import render_text
from arroyo_core.plugin import installed_plugins
from arroyo_core.runtime.assembly import construct

PIPELINE = """
name: sunk
nodes:
  - id: rows
    operator: spark.input
    config: {schema: {n: int64}}
  - id: out
    operator: spark.sink
    inputs: [rows]
    config: %s
"""


def plan(folder, config):
    path = folder / "sunk.yaml"
    path.write_text(PIPELINE % config)
    return plan_file(path, plugins=installed_plugins(), environment={})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("{staging: ./s}", "either table or path is needed"),
        ("{table: t, path: p, staging: ./s}", "either table or path is needed"),
        ("{table: t}", "staging"),
        ("{table: t, staging: ./s, mode: replace}", "append, overwrite"),
    ],
)
def test_mistakes_are_found_without_spark(tmp_path, config, message):
    with pytest.raises(InvalidPipelineError, match=message):
        plan(tmp_path, config)


def test_a_plan_says_that_rows_may_come_again_and_why(tmp_path):
    planned = plan(tmp_path, "{table: t, staging: ./s}")
    assert planned.guarantees["out"].level == "at_least_once"
    assert "cannot tell whether it wrote an epoch before" in planned.guarantees["out"].reason


def test_live_workers_keep_it_and_leave_a_slot_for_its_commits(tmp_path):
    planned = plan(tmp_path, "{table: t, staging: ./s}")
    assert planned.operators["out"].lives_on()
    assert (planned.plan.width, planned.plan.live_slots) == (1, 2)


def test_a_plan_says_that_live_workers_get_no_dataframes(tmp_path):
    path = tmp_path / "sunk.yaml"
    path.write_text(PIPELINE.replace("nodes:", "execution: auto\nnodes:") % "{table: t, staging: ./s}")
    planned = plan_file(path, plugins=installed_plugins(), environment={})
    said = "Epochs      each as a Spark job: the rows of DataFrames come through Spark jobs (rows)\n"
    assert said in render_text(planned)


TASK = TaskInfo(job_id="job", operator_id="out", operator_name="spark.sink", task_index=1, parallelism=2)
ROWS = pa.record_batch({"n": [1, 2, 3]})


def test_each_attempt_stages_under_names_of_its_own_and_all_go_with_their_epoch(tmp_path):
    urls = []
    for epoch in (3, 3, 4):
        rows = StagedRows(str(tmp_path), TASK, epoch, state_id="s", schema=ROWS.schema)
        rows.write(ROWS)
        urls += rows.close()
    assert len(set(urls)) == 3
    assert [pq.read_table(url).num_rows for url in urls] == [3, 3, 3]
    first, second = (EpochFiles(str(tmp_path), TASK, epoch, state_id="s") for epoch in (3, 4))
    assert not first.is_written
    first.note_written()
    first.clean()
    first.clean()
    # The note stays, for who replays the commit; and the next epoch is left alone.
    assert (first.is_written, second.is_written) == (True, False)
    assert [str(path) for path in tmp_path.rglob("*.parquet")] == urls[2:]
    second.note_written()
    second.clean()
    assert not first.is_written
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_subtask_without_rows_stages_no_file(tmp_path):
    assert StagedRows(str(tmp_path), TASK, 3, state_id="s", schema=ROWS.schema).close() == []


def test_commit_data_of_all_subtasks_come_together():
    names = [f"s/{place}-{'0a' * 16}.parquet" for place in range(3)]
    parts = [encode(names[:1], is_first=False), encode([], is_first=True), encode(names[1:], is_first=False)]
    assert decode(parts, "s") == (names, True)


@pytest.mark.parametrize("part", [b"[]", b"{", b"\xff", b"[" * 100_000, b'{"files": 1, "is_first": true}'])
def test_commit_data_that_are_none_are_refused(part):
    with pytest.raises(StateError, match=r"not what spark\.sink stages"):
        decode([part], "s")


STAGED = f"0-{'0a' * 16}.parquet"


@pytest.mark.parametrize(
    "url",
    [
        "/private/rows.parquet",
        "file:///private/rows.parquet",
        f"s/epoch/../{STAGED}",
        f"s/epoch/deeper/{STAGED}",
        f"s/epoch2/{STAGED}",
        "s/epoch/*",
        f"s/epoch/{STAGED},/private/rows.parquet",
        "s/epoch",
    ],
)
def test_commit_data_do_not_bring_other_files_into_the_table(url):
    with pytest.raises(
        UnsafePathError, match=r"which spark\.sink did not stage below s/epoch; nothing was written"
    ) as refused:
        decode([encode([f"s/epoch/{STAGED}", url], is_first=False)], "s/epoch")
    assert "Has the setting staging or the checkpoint URL been changed" in str(refused.value)


def test_what_a_task_stages_is_in_the_folder_of_its_epoch(tmp_path):
    rows = StagedRows(str(tmp_path), TASK, 3, state_id="s", schema=ROWS.schema)
    rows.write(ROWS)
    urls = rows.close()
    assert decode([encode(urls, is_first=False)], epoch_folder(str(tmp_path), TASK, 3, state_id="s")) == (urls, False)


def test_why_spark_does_not_write_is_one_line_and_an_outage_unless_it_lasts():
    unknown = (
        "An error occurred while calling o6.save.\n: o.a.s.SparkClassNotFoundException: [NO] no_such_format.\n\tat x"
    )
    lasting = refused("t", RuntimeError(unknown))
    assert isinstance(lasting, DataError)
    assert str(lasting) == "Spark could not write to t: o.a.s.SparkClassNotFoundException: [NO] no_such_format."
    assert isinstance(refused("t", RuntimeError("connection lost\nmore")), ExternalError)


def test_files_are_named_as_spark_names_them():
    assert spark_url("/data/x") == "file:///data/x"
    assert spark_url("s3://bucket/x") == "s3a://bucket/x"
    assert spark_url("hdfs://host/x") == "hdfs://host/x"


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("table: shop.sums", Dataset("spark", "shop.sums")),
        ("path: s3://user:secret@lake/sums", Dataset("s3://lake", "sums")),
        ("path: /lake/sums", Dataset("file", "/lake/sums")),
    ],
)
def test_a_catalogue_is_told_where_the_rows_go(tmp_path, place, expected):
    planned = plan(tmp_path, f"{{{place}, staging: ./s}}")
    assert list(construct(planned.plan.nodes["out"], installed_plugins()).inner.datasets()) == [expected]
