from __future__ import annotations

import datetime
import urllib.parse
import uuid
from collections.abc import Callable
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from arroyo_filesystem import open_files
from arroyo_filesystem.partitions import NULL_FOLDER, partition
from arroyo_filesystem.staging import decode_files
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema, TaskInfo
from arroyo_core.errors import ConfigError, DataError, OperatorError

Names = Callable[[str], list[str]]
ODD = ["a b", "x/y", "..", "", "50%", "k=v", "é", "\n", "?*[", None, "a b "]


def test_partition_values_of_any_characters_become_safe_folders(files: Any, names: Names, folder: str) -> None:
    table = pa.table({"k": ODD, "n": list(range(len(ODD)))})
    files.write(folder, table, partition_by=["k"])
    found: dict[str | None, str] = {}
    for name in names(folder):
        parent, _, leaf = name.rpartition("/")
        assert leaf.startswith("part-")
        key, _, value = parent.partition("=")
        assert key == "k"
        found[None if value == NULL_FOLDER else urllib.parse.unquote(value)] = name
    assert set(found) == set(ODD)
    fs, root = fsspec.core.url_to_fs(folder)
    for number, odd in enumerate(ODD):
        with fs.open(f"{root}/{found[odd]}") as stream:
            assert pq.read_table(stream).to_pylist() == [{"n": number}]


def test_other_tools_read_the_partitions(files: Any, tmp_path: Any) -> None:
    table = pa.table({"day": [datetime.date(2026, 1, 1)] * 2 + [None], "k": ["a b", "x/y", "z"], "n": [1, 2, 3]})
    files.write(tmp_path, table, partition_by=["day", "k"])
    read = ds.dataset(tmp_path, partitioning="hive", exclude_invalid_files=False).to_table().sort_by("n")
    assert read.select(["n", "k"]).to_pylist() == table.select(["n", "k"]).to_pylist()
    assert [str(day) for day in read["day"].to_pylist()] == ["2026-01-01", "2026-01-01", "None"]


@pytest.mark.parametrize("kind", ["parquet", "arrow", "json", "csv"])
def test_partition_columns_are_read_back_from_the_folders(files: Any, folder: str, kind: str) -> None:
    table = pa.table(
        {
            "n": list(range(len(ODD))),
            "k": ODD,
            "day": pa.array([0, None] + [1] * (len(ODD) - 2), pa.date32()),
            "t": pa.array([5] * len(ODD), pa.timestamp("us", tz="UTC")),
        }
    )
    files.write(folder, table, format=kind, partition_by=["k", "day", "t"])
    schema = {"n": "int64", "k": "string", "day": "date", "t": "timestamp"}
    assert files.read(folder, schema=schema).sort_by("n").equals(table)
    inferred = files.read(folder)
    assert inferred.column_names == ["n", "k", "day", "t"]
    assert inferred.schema.field("day").type == pa.string()


def test_folders_of_the_path_itself_are_no_columns(files: Any, names: Names, folder: str) -> None:
    table = pa.table({"n": [1], "k": ["a"], "j": ["b"]})
    files.write(folder, table, partition_by=["k", "j"])
    (name,) = names(folder)
    assert files.read(f"{folder}/k=a").column_names == ["n", "j"]
    assert files.read(f"{folder}/k=a/*/part-*").column_names == ["n", "j"]
    assert files.read(f"{folder}/{name}").column_names == ["n"]


def test_a_folder_that_does_not_fit_its_type_is_named(files: Any, folder: str) -> None:
    files.write(folder, pa.table({"n": [1], "k": ["a"]}), partition_by=["k"])
    with pytest.raises(OperatorError, match=r"k=a/part-.*: the folder of column 'k' does not fit int64"):
        files.read(folder, schema={"n": "int64", "k": "int64"})


VALUES = st.sampled_from(["a", "b", "c/d", None])


@given(rows=st.lists(st.tuples(VALUES, st.none() | st.integers(0, 2), st.booleans()), max_size=30))
def test_partitions_hold_every_row_once_in_order_under_its_own_values(rows: list[tuple[Any, Any, bool]]) -> None:
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([row[0] for row in rows], pa.string()),
            pa.array([row[1] for row in rows], pa.int64()),
            pa.array([row[2] for row in rows], pa.bool_()),
            pa.array(range(len(rows)), pa.int64()),
        ],
        names=["s", "i", "b", "n"],
    )
    seen: list[int] = []
    folders: list[str] = []
    for folder, part in partition(batch, ["s", "i", "b"]):
        numbers = part["n"].to_pylist()
        folders.append(folder)
        seen += numbers
        assert numbers == sorted(numbers)
        for number in numbers:
            texts = [NULL_FOLDER if v is None else urllib.parse.quote(v, safe="") for v in _texts(rows[number])]
            assert folder == "/".join(f"{name}={text}" for name, text in zip("sib", texts, strict=True))
    assert sorted(seen) == list(range(len(rows)))
    assert len(set(folders)) == len(folders)


def _texts(row: tuple[Any, Any, bool]) -> list[str | None]:
    return [row[0], None if row[1] is None else str(row[1]), str(row[2]).lower()]


def test_a_file_is_rolled_when_it_is_large_enough(files: Any, names: Names, folder: str) -> None:
    table = pa.table({"n": list(range(10_000))})
    with files.sink(folder, table.schema, format="csv", max_file_size=10_000) as harness:
        for batch in table.to_batches(max_chunksize=100):
            harness.process(batch)
        staged = harness.checkpoint()
        harness.commit(staged)
    (data,) = staged["files"].values()
    sizes = [file.size for file in decode_files(data)]
    assert len(sizes) == 5
    assert all(10_000 <= size < 11_000 for size in sizes[:-1])
    assert sum(file.rows for file in decode_files(data)) == 10_000
    assert sorted(files.read(folder)["n"].to_pylist()) == list(range(10_000))


def test_parquet_is_rolled_by_what_is_written_not_by_what_is_buffered(files: Any, folder: str) -> None:
    table = pa.table({"n": [number / 3 for number in range(40_000)]})
    with files.sink(folder, table.schema, compression="none", max_file_size=50_000) as harness:
        for batch in table.to_batches(max_chunksize=1000):
            harness.process(batch)
        staged = harness.checkpoint()
        harness.commit(staged)
    (data,) = staged["files"].values()
    assert len(decode_files(data)) > 3
    assert files.read(folder).num_rows == 40_000


def test_small_batches_are_joined_to_one_row_group(files: Any, names: Names, tmp_path: Any) -> None:
    table = pa.table({"n": list(range(1000))})
    with files.sink(tmp_path, table.schema) as harness:
        for batch in table.to_batches(max_chunksize=10):
            harness.process(batch)
        harness.commit(harness.checkpoint())
    (name,) = names(str(tmp_path))
    assert pq.ParquetFile(tmp_path / name).metadata.num_row_groups == 1


def test_no_more_files_are_open_than_allowed_and_no_row_is_lost(files: Any, folder: str) -> None:
    table = pa.table({"k": [n % 10 for n in range(100)], "n": list(range(100))})
    with files.sink(folder, table.schema, partition_by=["k"], max_open_files=3) as harness:
        for batch in table.to_batches(max_chunksize=5):
            harness.process(batch)
            assert len(harness.operator._files._open) <= 3
        staged = harness.checkpoint()
        harness.commit(staged)
    (data,) = staged["files"].values()
    assert sum(file.rows for file in decode_files(data)) == 100
    assert sorted(files.read(folder)["n"].to_pylist()) == list(range(100))


def test_rows_held_back_for_row_groups_are_bounded_over_all_partitions(
    files: Any, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_files, "MAX_BUFFERED_BYTES", 1000)
    table = pa.table({"k": [n % 10 for n in range(2000)], "n": list(range(2000))})
    with files.sink(folder, table.schema, partition_by=["k"]) as harness:
        for batch in table.to_batches(max_chunksize=50):
            harness.process(batch)
            held = [file.writer.buffered_bytes() for file in harness.operator._files._open.values()]
            assert sum(held) == harness.operator._files._buffered_bytes <= 1000
        harness.commit(harness.checkpoint())
    assert sorted(files.read(folder)["n"].to_pylist()) == list(range(2000))


def test_an_epoch_without_rows_makes_no_file(files: Any, names: Names, folder: str) -> None:
    files.write(folder, pa.table({"n": pa.array([], pa.int64())}))
    assert names(folder) == []


def test_a_second_job_appends_unless_told_to_fail(files: Any, folder: str) -> None:
    table = pa.table({"n": [1]})
    files.write(folder, table, if_exists="fail")
    files.write(folder, table)
    assert files.read(folder).num_rows == 2
    with pytest.raises(DataError, match=r"already has files, such as .*part-"):
        files.make_sink(folder, if_exists="fail").inner.on_start(FirstEpoch(table.schema))


class FirstEpoch:
    """The context of subtask 0 in a job without any state."""

    task_info = TaskInfo(job_id="j", operator_id="o", operator_name="filesystem.sink", task_index=0, parallelism=1)
    epoch = 1

    def __init__(self, schema: pa.Schema) -> None:
        self.input_schemas = [ArroyoSchema(schema)]
        self.table_manager = self

    def get_global_keyed_state(self, name: str) -> FirstEpoch:
        return self

    def get(self, key: str) -> None:
        return None

    def insert(self, key: str, value: object) -> None:
        return None


def test_a_job_that_goes_on_does_not_fail_on_its_own_files(files: Any, folder: str) -> None:
    table = pa.table({"n": [1]})
    with files.sink(folder, table.schema, if_exists="fail") as harness:
        for _ in range(3):
            harness.process(table.to_batches()[0])
            harness.commit(harness.checkpoint())
            harness.restore()
    assert files.read(folder).num_rows == 3


@pytest.mark.parametrize(
    ("config", "field", "message"),
    [
        ({"format": "orc"}, "format", "there is no format 'orc'"),
        ({"compression": "brotli"}, "compression", "parquet files cannot be compressed with 'brotli'"),
        ({"format": "csv", "compression": "zstd"}, "compression", "csv files cannot be compressed"),
        ({"partition_by": ["x"]}, "partition_by[0]", "no column 'x'"),
        ({"partition_by": ["n", "n"]}, "partition_by[1]", "named twice"),
        ({"partition_by": ["l"]}, "partition_by[0]", "cannot name folders"),
        ({"partition_by": ["n"], "format": "csv"}, "format", "column 'l' is list<item: int64>, which csv files"),
        ({"max_file_size": -1}, "max_file_size", "positive"),
        ({"max_open_files": -1}, "max_open_files", "positive"),
        ({"if_exists": "replace"}, "if_exists", "unknown choice 'replace'"),
        ({"delimiter": ";"}, "delimiter", "parquet files have no delimiter"),
        ({"format": "csv", "delimiter": '"'}, "delimiter", "one ASCII character"),
    ],
)
def test_a_mistake_in_the_config_names_its_field(files: Any, config: dict[str, Any], field: str, message: str) -> None:
    schema = pa.schema({"n": pa.int64(), "l": pa.list_(pa.int64())})
    with pytest.raises(ConfigError) as raised:
        files.make_sink("memory://x", **config).inner.output_schema([ArroyoSchema(schema)])
    assert raised.value.field == field
    assert message in str(raised.value)


def test_a_file_keeps_at_least_one_column(files: Any) -> None:
    with pytest.raises(ConfigError, match="at least one column"):
        files.make_sink("memory://x", partition_by=["n"]).inner.output_schema(
            [ArroyoSchema(pa.schema({"n": pa.int64()}))]
        )


def test_binary_values_are_refused_by_json_at_plan_time(files: Any) -> None:
    with pytest.raises(ConfigError, match="column 'b' is binary, which json files cannot hold"):
        files.make_sink(f"memory://{uuid.uuid4().hex}", format="json").inner.output_schema(
            [ArroyoSchema(pa.schema({"n": pa.int64(), "b": pa.binary()}))]
        )
