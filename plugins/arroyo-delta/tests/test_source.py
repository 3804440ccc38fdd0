"""Versions are read once each, whatever comes between: kills, rescales, maintenance, and tables that are made again."""

from __future__ import annotations

import base64
import datetime
import json
import random
import shutil
import string
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from arroyo_delta import log_depth
from arroyo_delta.location import make_location
from arroyo_delta.source_settings import check_source, resolve_source
from deltalake import DeltaTable, write_deltalake

from arroyo_core.api.updating import UPDATING_META
from arroyo_core.errors import ConfigError, DataError, OperatorError

from .support.sources import Source, source_config

pytestmark = pytest.mark.once


def write(table: Path, *ids: int, **options: Any) -> None:
    rows = pa.table({"id": pa.array(ids, pa.int64()), "place": [f"p{each % 3}" for each in ids]})
    write_deltalake(str(table), rows, **{"mode": "append", **options})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table with three versions."""
    path = tmp_path / "t"
    for begin in (0, 10, 20):
        write(path, *range(begin, begin + 3), partition_by=["place"])
    return path


def entry(table: Path, number: int) -> Path:
    return table / "_delta_log" / f"{number:020}.json"


def add_entry(table: Path, *actions: dict[str, Any]) -> None:
    """A version that the library would not make."""
    number = DeltaTable(str(table)).version() + 1
    entry(table, number).write_text("\n".join(json.dumps(action) for action in actions))


def test_without_watch_it_ends_with_the_version_of_its_first_start(table):
    with Source(table) as source:
        write(table, 30)
        source.plan()
        first = source.harness.run()
        assert first.is_final
        assert sorted(first.table["id"].to_pylist()) == [0, 1, 2, 10, 11, 12, 20, 21, 22, 30]
        write(table, 40)
        source.plan()
        assert source.column("id") == []


def test_later_versions_come_without_a_gap_and_without_a_second_time(table):
    with Source(table, watch=1_000_000) as source:
        assert source.column("id") == [0, 1, 10, 11, 12, 2, 20, 21, 22]
        write(table, 30)
        write(table, 31)
        assert source.column("id", is_lost=True) == [30, 31]
        assert source.column("id", parallelism=2) == [30, 31]
        assert source.column("id") == []
        source.plan()
        write(table, 40)
        assert source.column("id", parallelism=3) == [40]


@pytest.mark.parametrize("seed", range(6))
def test_kills_and_rescales_in_the_middle_of_snapshot_and_stream_lose_nothing(table, seed):
    """Duplicates and gaps are counted: there are none."""
    dice = random.Random(seed)
    given = Counter(DeltaTable(str(table)).to_pyarrow_table()["id"].to_pylist())
    found: Counter[int] = Counter()
    with Source(table, watch=1_000_000, batch_rows=2) as source:
        for turn in range(40):
            if dice.random() < 0.4 and turn < 30:
                ids = [100 + 10 * turn + each for each in range(dice.randint(1, 6))]
                write(table, *ids)
                given.update(ids)
            if dice.random() < 0.2:
                DeltaTable(str(table)).optimize.compact()
            is_lost = dice.random() < 0.3
            run = source.harness.run(
                rows=dice.randint(1, 4), parallelism=dice.randint(1, 4), ends_at_wait=True, is_lost=is_lost
            )
            if dice.random() < 0.3:
                source.plan()
            if not is_lost:
                found.update(run.table["id"].to_pylist())
        while rest := source.column("id"):
            found.update(rest)
    assert (given - found, found - given) == (Counter(), Counter())


@pytest.mark.parametrize("configuration", [{}, {"delta.enableChangeDataFeed": "true"}], ids=["files", "feed"])
@pytest.mark.parametrize("seed", range(4))
def test_kills_and_rescales_in_the_middle_of_changes_add_up_to_the_table(tmp_path, seed, configuration):
    """Every row is counted: what is added twice, taken back twice, or left out is a difference."""
    dice = random.Random(seed)
    table = tmp_path / "t"
    write(table, *range(12), configuration=configuration, partition_by=["place"])
    found: Counter[tuple[int, str]] = Counter()

    def count(rows: pa.Table) -> None:
        for row in rows.to_pylist():
            found[row["id"], row["place"]] += -1 if row[UPDATING_META]["is_retract"] else 1
            assert min(found.values()) >= 0, "a row is taken back before it was added"

    with Source(table, watch=1_000_000, batch_rows=2, changes=True) as source:
        for turn in range(40):
            if turn < 30 and dice.random() < 0.5:
                change(table, dice, turn)
            is_lost = dice.random() < 0.3
            run = source.harness.run(
                rows=dice.randint(1, 5), parallelism=dice.randint(1, 4), ends_at_wait=True, is_lost=is_lost
            )
            if dice.random() < 0.3:
                source.plan()
            if not is_lost:
                count(run.table)
        while (rest := source.harness.run(parallelism=2, ends_at_wait=True).table).num_rows:
            count(rest)
    assert +found == Counter((row["id"], row["place"]) for row in DeltaTable(str(table)).to_pyarrow_table().to_pylist())


def change(table: Path, dice: random.Random, turn: int) -> None:
    """A version: rows that are added, moved to another partition, merged, deleted, or only joined into a file."""
    delta = DeltaTable(str(table))
    ids = [100 + 10 * turn + each for each in range(dice.randint(1, 6))]
    low = dice.randrange(100 + 10 * turn)
    match dice.randrange(5):
        case 0:
            write(table, *ids)
        case 1:
            delta.update({"place": "'moved'"}, predicate=f"id >= {low} and id < {low + 30}")
        case 2:
            delta.delete(f"id >= {low} and id < {low + 10}")
        case 3:
            rows = pa.table({"id": [*ids, dice.randrange(12)], "place": ["merged"] * (len(ids) + 1)})
            merge = delta.merge(rows, predicate="old.id = new.id", source_alias="new", target_alias="old")
            merge.when_matched_update_all().when_not_matched_insert_all().execute()
        case 4:
            delta.optimize.compact()


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("snapshot", [0, 1, 10, 11, 12, 2, 20, 21, 22, 30]),
        ("latest", [30]),
        ({"version": 1}, [10, 11, 12, 20, 21, 22, 30]),
        ({"version": 3}, [30]),
        ({"timestamp": "2000-01-01T00:00:00Z"}, [0, 1, 10, 11, 12, 2, 20, 21, 22, 30]),
        ({"timestamp": "2999-01-01T00:00:00Z"}, [30]),
    ],
)
def test_where_it_begins(table, start, expected):
    with Source(table, start=start, watch=1_000_000) as source:
        write(table, 30)
        assert source.column("id") == expected


def test_a_time_between_two_versions_begins_with_the_second(table):
    times = {each["version"]: each["timestamp"] for each in DeltaTable(str(table)).history()}
    lines = entry(table, 2).read_text().replace(str(times[2]), str(times[1] + 3_600_000), 1)
    entry(table, 2).write_text(lines)
    with Source(table, start={"timestamp": "2999-01-01T00:00:00Z"}) as source:
        assert source.planned.planned.first == 3
    seconds = (times[1] + 1_800_000) / 1000
    text = datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat()
    with Source(table, start={"timestamp": text}) as source:
        assert source.column("id") == [20, 21, 22]


def test_a_version_that_takes_rows_away_is_an_error_or_left_out(table):
    DeltaTable(str(table)).delete("id = 0")
    write(table, 30)
    with Source(table, start={"version": 2}) as source, pytest.raises(OperatorError, match=r"version 3 \(DELETE\)"):
        source.harness.run()
    with Source(table, start={"version": 2}, on_change="skip") as source:
        run = source.harness.run(parallelism=2)
        assert sorted(run.table["id"].to_pylist()) == [20, 21, 22, 30]
        assert run.counters == {"skipped_versions": 1}


def test_optimize_brings_no_rows(table):
    with Source(table, watch=1_000_000) as source:
        source.harness.run(ends_at_wait=True)
        DeltaTable(str(table)).optimize.compact()
        DeltaTable(str(table)).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
        assert source.column("id") == []


def test_changes_add_up_to_the_table(tmp_path):
    for configuration in ({}, {"delta.enableChangeDataFeed": "true"}):
        table = tmp_path / f"t{len(configuration)}"
        write(table, *range(6), configuration=configuration)
        with Source(table, watch=1_000_000, changes=True) as source:
            found: Counter[tuple[int, str]] = Counter()
            DeltaTable(str(table)).update({"place": "'moved'"}, predicate="id = 1")
            DeltaTable(str(table)).delete("id = 2")
            write(table, 7)
            for _ in range(30):
                for row in source.harness.run(rows=2, parallelism=2, ends_at_wait=True).table.to_pylist():
                    found[row["id"], row["place"]] += -1 if row[UPDATING_META]["is_retract"] else 1
                    assert min(found.values()) >= 0, "a row is taken back before it was added"
        now = Counter((row["id"], row["place"]) for row in DeltaTable(str(table)).to_pyarrow_table().to_pylist())
        assert +found == now


def test_a_column_that_is_added_later_is_null_in_what_was_before(table):
    write_deltalake(
        str(table),
        pa.table({"id": [30], "place": ["p0"], "more": [1.5]}),
        mode="append",
        schema_mode="merge",
    )
    with Source(table) as source:
        assert Counter(source.column("more")) == {None: 9, 1.5: 1}


def test_only_the_columns_that_are_named_are_read(table):
    with Source(table, columns=["place"]) as source:
        assert Counter(source.column("place")) == {"p0": 3, "p1": 3, "p2": 3}


def test_a_file_that_is_gone_is_said(table):
    with Source(table, start={"version": 0}) as source:
        DeltaTable(str(table)).optimize.compact()
        DeltaTable(str(table)).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
        with pytest.raises(OperatorError, match="vacuum has removed what versions before the latest have"):
            source.harness.run()


def test_a_version_that_is_gone_is_said(table):
    with Source(table, start={"version": 0}, watch=1_000_000) as source:
        DeltaTable(str(table)).create_checkpoint()
        entry(table, 0).unlink()
        with pytest.raises(OperatorError, match=r"version 0 of the table .* is gone: its log keeps versions for"):
            source.harness.run()


def test_a_table_that_was_made_again_is_said(table):
    with Source(table, watch=1_000_000) as source:
        source.harness.run(ends_at_wait=True)
        shutil.rmtree(table)
        for each in range(5):
            write(table, each)
        source.plan()
        with pytest.raises(OperatorError, match="it was made again"):
            source.harness.run(ends_at_wait=True)


ADDED = {"path": "x.parquet", "partitionValues": {"place": "p"}, "size": 1, "modificationTime": 0, "dataChange": True}


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ({"add": {**ADDED, "path": "../../secret.parquet"}}, "names a file outside of it"),
        ({"add": {**ADDED, "path": "/etc/passwd"}}, "names a file outside of it"),
        ({"add": {**ADDED, "path": "file:///etc/passwd"}}, "names a file outside of it"),
        ({"add": {**ADDED, "path": "%2e%2e/secret.parquet"}}, "names a file outside of it"),
        ({"add": {**ADDED, "deletionVector": {"storageType": "u", "cardinality": 1}}}, "has a deletion vector"),
        ({"add": {**ADDED, "path": 1}}, "has a broken entry in its log"),
        ({"protocol": {"minReaderVersion": 3, "readerFeatures": ["telepathy"]}}, "has the feature telepathy"),
        ({"add": {**ADDED, "path": "gone.parquet"}}, "gone.parquet: the file is gone"),
    ],
)
def test_what_a_log_of_others_says_is_checked(table, action, reason):
    with Source(table, start={"version": 3}, watch=1_000_000) as source:
        add_entry(table, {"commitInfo": {"operation": "WRITE"}}, action)
        with pytest.raises(OperatorError, match=reason):
            source.harness.run(ends_at_wait=True)


def test_an_entry_that_is_too_large_is_refused(table, monkeypatch):
    with Source(table, start={"version": 0}) as source:
        monkeypatch.setenv("ARROYO_MAX_DELTA_LOG_ENTRY_BYTES", "100")
        with pytest.raises(OperatorError, match="in one entry of the log"):
            source.harness.run()
    log_depth._known.clear()
    with pytest.raises(DataError, match="in one entry of the log"):
        make_location(str(table), {}).open()


def test_a_snapshot_of_too_many_files_is_refused(table, monkeypatch):
    monkeypatch.setenv("ARROYO_MAX_DELTA_TABLE_FILES", "2")
    with Source(table) as source, pytest.raises(OperatorError, match="files in one version of a table"):
        source.harness.run()


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"start": "earliest"}, "start"),
        ({"start": {"version": -1}}, "start"),
        ({"start": {"version": 1, "timestamp": "2026-01-01"}}, "start"),
        ({"start": {"timestamp": "yesterday"}}, "start"),
        ({"columns": ["none"]}, "columns[0]"),
        ({"keys": ["id"]}, "keys"),
        ({"keys": ["none"], "changes": True}, "keys[0]"),
        ({"changes": True, "on_change": "skip"}, "on_change"),
        ({"event_time_field": "id"}, "event_time_field"),
        ({"table": "/no/table"}, "table"),
    ],
)
def test_a_config_that_cannot_work_is_refused_while_planning(table, config, field):
    with pytest.raises(ConfigError) as refused:
        check_source(resolve_source(source_config(**{"table": str(table), **config})))
    assert refused.value.field == field


_DIGITS = string.digits
_Z85 = str.maketrans(
    _DIGITS + string.ascii_uppercase + string.ascii_lowercase + "!#$%&()*+-;<=>?@^_`{|}~",
    _DIGITS + string.ascii_lowercase + string.ascii_uppercase + ".-:+=^!/*?&<>()[]{}@%$#",
)


def test_a_table_with_deletion_vectors_is_refused(tmp_path):
    """Made by hand: the library does not write them. The vector holds row 0, as the protocol has it inline."""
    table = tmp_path / "t"
    write(table, 1, 2)
    lines = [json.loads(line) for line in entry(table, 0).read_text().splitlines()]
    bitmap = (1681511377).to_bytes(4, "little") + (1).to_bytes(8, "little") + (0).to_bytes(4, "little")
    roaring = bytes.fromhex("3a300000") + (1).to_bytes(4, "little") + bytes.fromhex("00000000100000000000")
    encoded = base64.b85encode((data := bitmap + roaring) + bytes(-len(data) % 4)).decode().translate(_Z85)
    vector = {"storageType": "i", "pathOrInlineDv": encoded, "sizeInBytes": len(data), "cardinality": 1}
    features = {"minReaderVersion": 3, "minWriterVersion": 7}
    for line in lines:
        if "protocol" in line:
            line["protocol"] = features | {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
        if "add" in line:
            line["add"]["deletionVector"] = vector
    entry(table, 0).write_text("\n".join(json.dumps(line) for line in lines))
    with pytest.raises(ConfigError, match=r"deletion vectors, which delta\.source does not read"):
        resolve_source(source_config(table=str(table)))
