from __future__ import annotations

import datetime
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_filesystem.location import Location
from arroyo_filesystem.plugin import SourceConstructor
from arroyo_filesystem.progress import FINISHED, SPLITS_TABLE, TABLE, Progress
from arroyo_filesystem.source_settings import resolve_source
from arroyo_filesystem.splits import Split, SplitPlan
from arroyo_testing import SourceHarness
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import Registry, TaskInfo
from arroyo_core.errors import ConfigError, OperatorError, RetryHint, retry_hint
from arroyo_core.proto.state_pb2 import OperatorCheckpointMetadata, TableConfig
from arroyo_core.state import (
    IncompatibleCheckpointError,
    StorageProvider,
    TableManager,
    global_table_config,
    merge_operator_metadata,
)

ROWS = 200


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The numbers 0..ROWS in four files of each format, in parts of ten rows."""
    folder = tmp_path_factory.mktemp("inputs")
    found = {}
    for kind in ("parquet", "arrow", "json", "csv"):
        found[kind] = folder / kind
        found[kind].mkdir()
        for file in range(4):
            _write(found[kind] / f"{file}.{kind}", range(file * ROWS // 4, (file + 1) * ROWS // 4))
    return found


def _write(path: Path, numbers: range) -> None:
    table = pa.table({"n": list(numbers), "s": [f"row {n}" for n in numbers]})
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=10)
    elif path.suffix == ".arrow":
        with pa.OSFile(str(path), "wb") as stream, pa.ipc.new_file(stream, table.schema) as writer:
            writer.write_table(table, max_chunksize=10)
    elif path.suffix == ".json":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    else:
        path.write_text("n,s\n" + "".join(f"{n},row {n}\n" for n in numbers))


KINDS = st.sampled_from(["parquet", "arrow", "json", "csv"])


@given(kind=KINDS, parallelism=st.integers(1, 7), split_size=st.integers(1, 2000), batch_rows=st.integers(1, 40))
@settings(max_examples=12)
def test_every_row_is_read_exactly_once_at_any_parallelism_and_split_size(
    files: Any, inputs: dict[str, Path], kind: str, parallelism: int, split_size: int, batch_rows: int
) -> None:
    harness = files.source(inputs[kind], split_size=split_size, batch_rows=batch_rows)
    done = harness.run(parallelism=parallelism)
    harness.close()
    assert done.is_final
    assert sorted(done.table["n"].to_pylist()) == list(range(ROWS))
    assert max(batch.num_rows for batch in done.batches) <= batch_rows


@given(
    kind=KINDS,
    split_size=st.integers(1, 2000),
    batch_rows=st.integers(1, 40),
    epochs=st.lists(st.tuples(st.integers(1, 60), st.integers(1, 4)), max_size=4),
)
@settings(max_examples=12)
def test_a_source_goes_on_where_it_was_whatever_the_budgets_and_rescales(
    files: Any,
    inputs: dict[str, Path],
    kind: str,
    split_size: int,
    batch_rows: int,
    epochs: list[tuple[int, int]],
) -> None:
    harness = files.source(inputs[kind], split_size=split_size, batch_rows=batch_rows)
    got = [harness.run(rows=rows, parallelism=parallelism).table for rows, parallelism in epochs]
    got.append(harness.run_all(rows=70, parallelism=2))
    again = harness.run(parallelism=3)
    harness.close()
    assert sorted(n for table in got for n in table["n"].to_pylist()) == list(range(ROWS))
    assert again.is_final
    assert not again.batches


def test_an_epoch_ends_at_the_batch_that_spends_its_budget(files: Any, inputs: dict[str, Path]) -> None:
    harness = files.source(inputs["parquet"], batch_rows=7)
    assert harness.run(rows=10).table.num_rows == 14
    harness.close()


LEGACY = global_table_config(TABLE, "splits and positions")
TABLES = LEGACY | global_table_config(SPLITS_TABLE, "positions", is_partitioned=True)


class Epochs:
    """The tables of a source, from epoch to epoch."""

    def __init__(self) -> None:
        self._storage = StorageProvider(f"memory://{uuid4()}")
        self._checkpoint: OperatorCheckpointMetadata | None = None
        self._epoch = 0

    def run(
        self, parallelism: int, work: Callable[[TableManager], None], *, tables: dict[str, TableConfig] = TABLES
    ) -> None:
        """One epoch, in which `work` is done in every subtask."""
        self._epoch += 1
        reports = []
        for index in range(parallelism):
            task = TaskInfo(
                job_id="job", operator_id="op", operator_name="x", task_index=index, parallelism=parallelism
            )
            manager = TableManager.open(
                task_info=task, tables=tables, storage=self._storage, checkpoint=self._checkpoint
            )
            work(manager)
            reports.append(manager.checkpoint(self._epoch, 1, None))
        self._checkpoint = merge_operator_metadata(reports)


def _plan(splits: int) -> SplitPlan:
    return SplitPlan("/data", "csv", (), tuple(Split(0, n, n + 1) for n in range(splits)))


@given(
    steps=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 4)), min_size=1, max_size=6),
    legacy=st.sampled_from([0, 1, 3]),
    is_ordered=st.booleans(),
    draw=st.randoms(use_true_random=False),
)
def test_every_split_is_read_once_whoever_reads_it(steps, legacy, is_ordered, draw) -> None:  # type: ignore[no-untyped-def]
    """At any parallelism in any epoch, from the checkpoint of a version with one table or none."""
    plan, epochs = _plan(23), Epochs()
    positions, finished = dict.fromkeys(range(23), 0), set[int]()

    def begin(tables: TableManager) -> None:
        view, index = tables.get_global_keyed_state(TABLE), tables.task_info.task_index
        if index == 0:
            view.insert("plan", msgspec.msgpack.encode(plan))
            view.insert("done", [[2, 4], [9, 10]])
            finished.update((2, 3, 9))
        view.insert(f"seen-{index}", hashlib.blake2b(msgspec.msgpack.encode(plan), digest_size=8).hexdigest())
        for number, position in ((10 + index, -1), (15 + index, 7)):
            view.insert(str(number), position)
            if position == FINISHED:
                finished.add(number)
            else:
                positions[number] = position

    if legacy:
        epochs.run(legacy, begin, tables=LEGACY)
    for parallelism, most in steps:
        opened: list[int] = []

        def read(tables: TableManager, most: int = most, opened: list[int] = opened) -> None:
            progress = Progress(tables, tables.task_info, is_ordered=is_ordered)
            if progress.stored_plan(url="/data", kind="csv") is None:
                progress.store_plan(plan)
            found = list(progress.open_splits(plan))
            opened += [number for number, _ in found]
            assert dict(found) == {number: positions[number] for number, _ in found}
            for number, _ in found[:most]:
                position = draw.choice([FINISHED, 5])
                progress.save(number, position)
                if position == FINISHED:
                    finished.add(number)
                else:
                    positions[number] = position

        before = sorted(set(range(23)) - finished)
        epochs.run(parallelism, read)
        assert sorted(opened) == before


def test_finished_splits_fold_into_one_key() -> None:
    epochs, keys = Epochs(), list[str]()

    def read(tables: TableManager) -> None:
        progress = Progress(tables, tables.task_info)
        if progress.stored_plan(url="/data", kind="csv") is None:
            progress.store_plan(_plan(20))
        for number, _ in list(progress.open_splits(_plan(20)))[:3]:
            progress.save(number, 4)
            progress.save(number, FINISHED)
        keys[:] = tables.get_partitioned_keyed_state(SPLITS_TABLE, lambda _: 0).get_all()

    for _ in range(8):
        epochs.run(1, read)
    assert sorted(keys) == ["done-0", "seen-0"]


def test_subtasks_that_saw_other_files_are_found_out_before_more_is_read() -> None:
    epochs = Epochs()

    def read(tables: TableManager) -> None:
        progress = Progress(tables, tables.task_info)
        if progress.stored_plan(url="/data", kind="csv") is None:
            progress.store_plan(_plan(3 + tables.task_info.task_index))

    epochs.run(2, read)
    with pytest.raises(IncompatibleCheckpointError, match="subtasks 0 and 1 saw different ones"):
        epochs.run(2, read)


def test_state_of_another_path_is_refused() -> None:
    epochs = Epochs()
    epochs.run(1, lambda tables: Progress(tables, tables.task_info).store_plan(_plan(3)))
    with pytest.raises(IncompatibleCheckpointError, match="reads csv from '/data', not csv from '/other'") as raised:
        epochs.run(1, lambda tables: Progress(tables, tables.task_info).stored_plan(url="/other", kind="csv") and None)
    # Or else the job would begin again and again, for many minutes.
    assert retry_hint(raised.value) is RetryHint.NO_RETRY


def test_positions_of_a_recorded_path_may_be_read_on_from_another_one_that_a_person_allowed() -> None:
    """Whoever starts the job has compared the path; only positions that count something else can mean nothing."""

    def read(tables: TableManager) -> None:
        progress = Progress(tables, tables.task_info)
        progress.store_plan(msgspec.structs.replace(_plan(3), is_recorded=True))
        assert progress.stored_plan(url="/other", kind="json") is not None
        with pytest.raises(IncompatibleCheckpointError, match="positions in csv files say nothing about parquet files"):
            progress.stored_plan(url="/data", kind="parquet")

    Epochs().run(1, read)


def test_state_depends_on_the_place_the_format_and_how_files_were_cut(files: Any, inputs: dict[str, Path]) -> None:
    def settings_of(path: object, **config: Any) -> dict[str, str]:
        return dict(files.make_source(path, **config).inner.state_settings([]))

    folder = inputs["csv"]
    before = settings_of(folder)
    assert before == {"path": str(folder), "format": "csv", "newlines in values": "no"}
    assert settings_of(folder, csv={"newlines_in_values": True}) == {**before, "newlines in values": "yes"}
    assert settings_of(f"{folder}/*.csv") == {**before, "path": f"{folder}/*.csv"}
    harmless = {"batch_rows": 3, "columns": ["n"], "split_size": 100, "bad_data": "drop"}
    assert settings_of(folder, **harmless, csv={"delimiter": ";"}, schema={"n": "int64"}) == before


def test_a_source_goes_on_with_its_listing_under_another_path(files: Any, tmp_path: Path) -> None:
    _write(tmp_path / "a.csv", range(10))
    written = [files.source_config(path, batch_rows=2) for path in (tmp_path, f"{tmp_path}/*.csv")]
    configs = [SourceConstructor().resolve(config) for config in written]
    harness = SourceHarness(lambda: SourceConstructor().with_config(configs[0], Registry()))
    first = harness.run(rows=4).table
    configs.pop(0)
    assert [*first["n"].to_pylist(), *harness.run_all()["n"].to_pylist()] == list(range(10))
    harness.close()


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("s3://key:secret@bucket/x", "s3://bucket/x"),
        ("ftp://host/x?token=1", "ftp://host/x"),
        ("/data/a#b", "/data/a#b"),
        ("zip://a.csv::s3://b/c.zip", "zip://a.csv::s3://b/c.zip"),
    ],
)
def test_a_place_is_known_without_what_opens_it(url: str, place: str) -> None:
    assert Location(None, "", url).place == place


def test_files_that_appear_after_the_first_epoch_are_not_read(files: Any, tmp_path: Path) -> None:
    _write(tmp_path / "b.csv", range(5))
    harness = files.source(tmp_path, batch_rows=2)
    first = harness.run(rows=1).table
    _write(tmp_path / "a.csv", range(100, 105))
    rest = harness.run_all()
    harness.close()
    assert [*first["n"].to_pylist(), *rest["n"].to_pylist()] == list(range(5))


def test_a_file_that_changed_is_refused(files: Any, tmp_path: Path) -> None:
    _write(tmp_path / "a.csv", range(5))
    harness = files.source(tmp_path, batch_rows=2, schema={"n": "int64"})
    harness.run(rows=1)
    _write(tmp_path / "a.csv", range(6))
    with pytest.raises(OperatorError, match=r"a\.csv: the file changed after the job began"):
        harness.run()
    (tmp_path / "a.csv").unlink()
    with pytest.raises(OperatorError, match=r"a\.csv: the file was there when the job began, and is gone"):
        harness.run()
    harness.close()


def test_a_rewrite_of_the_same_size_is_noticed(files: Any, tmp_path: Path) -> None:
    _write(tmp_path / "a.csv", range(5))
    harness = files.source(tmp_path, batch_rows=2)
    harness.run(rows=1)
    os.utime(tmp_path / "a.csv", (1, 1))
    with pytest.raises(OperatorError, match="the file changed"):
        harness.run()
    harness.close()


def test_a_relative_path_is_made_absolute_once(files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path / "a.csv", range(5))
    monkeypatch.chdir(tmp_path)
    config = files.source_config("a.csv")
    resolved = resolve_source(config)
    assert resolved.path == str(tmp_path / "a.csv")
    assert [file.path for file in resolved.files] == [str(tmp_path / "a.csv")]
    assert (config.path, len(config.files)) == ("a.csv", 0)


def test_columns_are_matched_by_name_and_cast_and_absent_ones_are_null(files: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([1], pa.int64()), "b": ["x"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"b": ["y"], "a": pa.array([2], pa.int16()), "more": [0]}), tmp_path / "2.parquet")
    pq.write_table(pa.table({"other": [1, 2]}), tmp_path / "3.parquet")
    assert files.read(tmp_path).to_pylist() == [
        {"a": 1, "b": "x"},
        {"a": 2, "b": "y"},
        {"a": None, "b": None},
        {"a": None, "b": None},
    ]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_value_that_does_not_fit_names_file_and_column(files: Any, tmp_path: Path, kind: str) -> None:
    files.write(tmp_path, pa.table({"a": [2**40]}), format=kind)
    with pytest.raises(OperatorError, match=rf"part-.*\.{kind}: column 'a' is int64 and does not fit int32"):
        files.read(tmp_path, schema={"a": "int32"})


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_a_damaged_file_is_named(files: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"ARROW1 no more of it, only noise")
    with pytest.raises(Exception, match=name):
        files.read(tmp_path, schema={"a": "int64"})


def test_only_wanted_columns_are_read_in_the_wanted_order(files: Any, inputs: dict[str, Path]) -> None:
    for kind, path in inputs.items():
        assert files.read(path, columns=["s", "n"]).column_names == ["s", "n"], kind
        assert files.read(path, columns=["s"]).column_names == ["s"]


def test_an_event_time_column_is_announced(files: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": pa.array([1], pa.timestamp("ms"))}), tmp_path / "a.parquet")
    schema = files.make_source(tmp_path, event_time_field="t").inner.output_schema([])
    assert schema.timestamp_column == "t"


@pytest.mark.parametrize(
    ("config", "field", "message"),
    [
        ({"event_time_field": "tt"}, "event_time_field", "no column 'tt'"),
        (
            {"event_time_field": "n"},
            "event_time_field",
            "column 'n' is int64, not a timestamp; declare it as timestamp",
        ),
        ({"columns": ["n", "m"]}, "columns[1]", "no column 'm'"),
        ({"columns": ["n", "n"]}, "columns", "named twice"),
        ({"format": "orc"}, "format", "there is no format 'orc'"),
        ({"bad_data": "ignore"}, "bad_data", "unknown policy 'ignore'"),
        ({"bad_data": "dead_letter"}, "bad_data", "needs a folder"),
        ({"dead_letter": "x"}, "dead_letter", "needs bad_data: dead_letter"),
        ({"batch_rows": -1}, "batch_rows", "between 1 and"),
        ({"split_size": -1}, "split_size", "positive"),
        ({"schema": {"n": "int65"}}, "schema.n", "unknown type 'int65'"),
        ({"schema": {"n": "list<int64>"}}, "schema.n", "csv cannot hold list"),
        ({"csv": {"delimiter": "||"}}, "csv.delimiter", "one ASCII character"),
        ({"csv": {"no_header": True}}, "schema", "need a declared schema"),
        ({"path": "nowhere"}, "path", "there is no"),
        ({"path": "nosuch://x"}, "path", "cannot open 'nosuch://x'"),
    ],
)
def test_a_mistake_in_the_config_names_its_field(
    files: Any, inputs: dict[str, Path], config: dict[str, Any], field: str, message: str
) -> None:
    path = config.pop("path", inputs["csv"])
    with pytest.raises(ConfigError) as raised:
        files.make_source(path, **config).inner.output_schema([])
    assert raised.value.field == field
    assert message in str(raised.value)


def test_a_number_in_parquet_is_no_event_time(files: Any, inputs: dict[str, Path]) -> None:
    with pytest.raises(ConfigError, match=r"column 'n' is int64, not a timestamp; nothing in the file says"):
        files.make_source(inputs["parquet"], event_time_field="n").inner.output_schema([])


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("2026-01-02T03:04:05Z", "timestamp"),
        ("2026-01-02 03:04:05", "timestamp"),
        ("2026-01-02T05:04:05+02:00", "timestamp_s"),
        ("1767323045", "timestamp_s"),
        ("1767323045000", "timestamp_ms"),
    ],
)
@pytest.mark.parametrize("text_format", ["json", "csv"])
def test_timestamps_in_text_are_read_in_any_common_writing(
    files: Any, tmp_path: Path, written: str, kind: str, text_format: str
) -> None:
    if text_format == "json":
        value = written if not written.isdecimal() else int(written)
        (tmp_path / "a.json").write_text(json.dumps({"n": 1, "t": value}) + "\n")
    else:
        (tmp_path / "a.csv").write_text(f"n,t\n1,{written}\n")
    (row,) = files.read(tmp_path, schema={"n": "int64", "t": kind}).to_pylist()
    assert row["t"] == datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)


def test_two_writings_of_time_in_one_csv_column_are_both_utc(files: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,t\n1,2026-01-02T00:00:00Z\n2,2026-01-02T00:00:00\n3,\n4,2026-01-02\n")
    table = files.read(tmp_path, schema={"t": "timestamp"})
    midnight = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
    assert table["t"].to_pylist() == [midnight, midnight, None, midnight]


def test_types_of_text_are_inferred_from_the_first_file(files: Any, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"i": 1, "f": 1.5, "s": "x", "t": "2026-01-02T00:00:00Z", "u": null}\n')
    assert files.read(tmp_path).schema == pa.schema(
        {"i": pa.int64(), "f": pa.float64(), "s": pa.string(), "t": pa.timestamp("us", tz="UTC"), "u": pa.string()}
    )


def test_csv_without_header_takes_the_names_of_the_schema(files: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1|x\n2|y\n")
    table = files.read(tmp_path, schema={"n": "int64", "s": "string"}, csv={"no_header": True, "delimiter": "|"})
    assert table.to_pylist() == [{"n": 1, "s": "x"}, {"n": 2, "s": "y"}]


def test_csv_without_header_is_read_by_position_also_where_columns_are_chosen(files: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,x,2.5\n2,y,3.5\n")
    schema = {"n": "int64", "s": "string", "f": "float64"}
    table = files.read(tmp_path, schema=schema, csv={"no_header": True}, columns=["f", "n"])
    assert table.to_pylist() == [{"f": 2.5, "n": 1}, {"f": 3.5, "n": 2}]


def test_each_csv_file_has_its_own_header(files: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfn,s\r\n1,x\r\n")
    (tmp_path / "b.csv").write_text("s,extra,n\ny,?,2\n")
    (tmp_path / "c.csv").write_text("")
    (tmp_path / "d.csv").write_text("s\nz\n")
    assert files.read(tmp_path, schema={"n": "int64", "s": "string"}).to_pylist() == [
        {"n": 1, "s": "x"},
        {"n": 2, "s": "y"},
        {"n": None, "s": "z"},
    ]
