"""With `changes: true` the rows that snapshots add and take away add up to the table: killed, rescaled, rewritten."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from arroyo_iceberg.positions import BUCKETS, Position
from arroyo_iceberg.source import IcebergSource
from arroyo_iceberg.source_settings import check_source
from arroyo_testing import SourceHarness

from arroyo_core.api.updating import IS_RETRACT, ROW_ID, UPDATING_META
from arroyo_core.errors import ConfigError, OperatorError

from .support.deletes import add_equality_deletes, add_position_deletes, join_files
from .support.sinks import Sink
from .support.sources import NAME, SECOND, resolved
from .support.tables import load_table, make_table

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


def rows(*ids: int, name: str = "a") -> pa.Table:
    return pa.table({"id": ids, "name": [name] * len(ids)}, schema=SCHEMA)


class Reader:
    """A job with one source; the rows that it has added, less those that it has taken back."""

    def __init__(self, folder: Path, **config: Any) -> None:
        settings = check_source(resolved(folder, **{"changes": True, "watch": SECOND, **config}))
        self.harness = SourceHarness(lambda: IcebergSource(settings))
        self.net: Counter[tuple[int, str]] = Counter()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.harness.close()

    def epoch(self, *, is_lost: bool = False, **run: Any) -> list[tuple[str, int, str]]:
        """What an epoch has read, in its order."""
        table = self.harness.run(ends_at_wait=True, is_lost=is_lost, **run).table
        found = []
        for row in table.to_pylist():
            is_retract = row[UPDATING_META][IS_RETRACT]
            found.append(("-" if is_retract else "+", row["id"], row["name"]))
            if not is_lost:
                self.net[row["id"], row["name"]] += -1 if is_retract else 1
        # Nothing is taken back that was not added.
        assert min(self.net.values(), default=0) >= 0
        return found

    def is_as(self, folder: Path) -> bool:
        found = load_table(folder, NAME).scan().to_arrow().to_pylist()
        return +self.net == Counter((row["id"], row["name"]) for row in found)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """Of a table that has been read up to its first snapshot."""
    make_table(tmp_path, NAME, rows(0, 1, 2))
    with Reader(tmp_path) as made:
        assert made.epoch() == [("+", 0, "a"), ("+", 1, "a"), ("+", 2, "a")]
        yield made


def test_appended_rows_are_added(reader, tmp_path):
    make_table(tmp_path, NAME, rows(3))
    assert reader.epoch() == [("+", 3, "a")]
    assert reader.epoch() == []


def test_rows_of_a_file_that_is_deleted_are_taken_back(reader, tmp_path):
    load_table(tmp_path, NAME).delete("id < 100")
    assert reader.epoch() == [("-", 0, "a"), ("-", 1, "a"), ("-", 2, "a")]
    assert reader.is_as(tmp_path)


def test_rows_that_a_rewritten_file_keeps_are_taken_back_and_added_again(reader, tmp_path):
    load_table(tmp_path, NAME).delete("id == 1")
    assert reader.epoch() == [("-", 0, "a"), ("-", 1, "a"), ("-", 2, "a"), ("+", 0, "a"), ("+", 2, "a")]
    assert reader.is_as(tmp_path)


def test_an_overwritten_table_and_merged_rows_are_changes(reader, tmp_path):
    load_table(tmp_path, NAME).overwrite(rows(7, 8))
    reader.epoch()
    assert +reader.net == Counter([(7, "a"), (8, "a")])
    with Sink(SCHEMA, folder=tmp_path, mode="merge", keys=["id"]) as sink:
        sink.write(rows(8, 9, name="b"))
    reader.epoch()
    assert +reader.net == Counter([(7, "a"), (8, "b"), (9, "b")])


def test_files_that_are_only_joined_are_no_change(reader, tmp_path):
    make_table(tmp_path, NAME, rows(3))
    reader.epoch()
    join_files(load_table(tmp_path, NAME))
    table = load_table(tmp_path, NAME)
    assert table.current_snapshot().summary.operation.value == "replace"
    assert len(list(table.scan().plan_files())) == 1
    assert reader.epoch() == []
    table.delete("id == 0")
    reader.epoch()
    assert reader.is_as(tmp_path)


def test_rows_that_positional_deletes_take_away_are_taken_back_once(reader, tmp_path):
    add_position_deletes(load_table(tmp_path, NAME), [1])
    assert reader.epoch() == [("-", 1, "a")]
    add_position_deletes(load_table(tmp_path, NAME), [1, 2])
    assert reader.epoch() == [("-", 2, "a")]
    assert reader.is_as(tmp_path)
    # The file that they belong to goes: what they took away is not taken back again.
    load_table(tmp_path, NAME).delete("id < 100")
    assert reader.epoch() == [("-", 0, "a")]
    assert reader.is_as(tmp_path)


def test_a_snapshot_with_positional_deletes_begins_without_what_they_take_away(reader, tmp_path):
    add_position_deletes(load_table(tmp_path, NAME), [0])
    with Reader(tmp_path) as later:
        assert later.epoch() == [("+", 1, "a"), ("+", 2, "a")]


def test_equality_deletes_are_refused_with_words(reader, tmp_path):
    add_equality_deletes(load_table(tmp_path, NAME))
    with pytest.raises(OperatorError, match="has equality deletes, which pyiceberg does not read") as caught:
        reader.epoch()
    assert caught.value.cause_retry == "no_retry"


def test_a_snapshot_before_a_change_that_has_expired_is_an_error(reader, tmp_path):
    make_table(tmp_path, NAME, rows(3))
    table = load_table(tmp_path, NAME)
    before = table.current_snapshot().snapshot_id
    table.delete("id == 1")
    reader.epoch(rows=2)
    table.refresh().maintenance.expire_snapshots().by_id(before).commit()
    with pytest.raises(OperatorError, match=r"snapshot before \d+ has expired"):
        reader.epoch()


def test_the_id_of_a_row_is_made_of_its_keys(reader, tmp_path):
    with Sink(SCHEMA, folder=tmp_path, mode="merge", keys=["id"]) as sink:
        sink.write(rows(1, name="b"))
    with Reader(tmp_path, keys=["id"], start={"timestamp": "2001-01-01T00:00:00Z"}) as keyed:
        table = keyed.harness.run(ends_at_wait=True).table
    found = {(row["id"], row[UPDATING_META][ROW_ID]) for row in table.to_pylist()}
    assert sorted(each for each, _ in found) == [0, 1, 2]


def test_without_watch_it_ends_with_the_snapshot_of_its_first_start(tmp_path):
    make_table(tmp_path, NAME, rows(0, 1))
    load_table(tmp_path, NAME).delete("id == 0")
    with Reader(tmp_path, watch=None, start={"timestamp": "2001-01-01T00:00:00Z"}) as bounded:
        load_table(tmp_path, NAME).delete("id == 1")
        run = bounded.harness.run(parallelism=3)
    assert run.is_final
    assert [(row["id"], row[UPDATING_META][IS_RETRACT]) for row in run.table.to_pylist()] == [
        (0, False),
        (1, False),
        (0, True),
        (1, True),
        (1, False),
    ]


def test_a_file_that_is_listed_twice_is_read_twice_and_its_changes_are_refused(reader, tmp_path):
    table = load_table(tmp_path, NAME)
    [task] = table.scan().plan_files()
    table.add_files([task.file.file_path], check_duplicate_files=False)
    assert table.scan().count() == 6
    assert reader.epoch() == [("+", 0, "a"), ("+", 1, "a"), ("+", 2, "a")]
    with Reader(tmp_path) as later:
        assert Counter(later.epoch()) == Counter({("+", 0, "a"): 2, ("+", 1, "a"): 2, ("+", 2, "a"): 2})
        assert later.is_as(tmp_path)
        load_table(tmp_path, NAME).delete("id == 1")
        with pytest.raises(OperatorError, match=r"has the file .* twice") as caught:
            later.epoch()
    assert caught.value.cause_retry == "no_retry"


@pytest.mark.parametrize("before", [False, True])
def test_state_of_the_other_way_of_reading_is_refused(tmp_path, before):
    """Also where `--allow-change` lets it in: the buckets of the one are not those of the other."""
    for number in range(20):
        make_table(tmp_path, NAME, rows(number))
    settings = {has: check_source(resolved(tmp_path, changes=has, watch=SECOND)) for has in (False, True)}
    now = before
    counts = (1, 128) if before else (128, 1)
    message = f"in {counts[0]} buckets, and it reads them in {counts[1]} now"
    with closing(SourceHarness(lambda: IcebergSource(settings[now]))) as harness:
        assert harness.run(rows=3, parallelism=2, ends_at_wait=True).table.num_rows
        now = not before
        with pytest.raises(OperatorError, match=message) as caught:
            harness.run(parallelism=2, ends_at_wait=True)
    assert caught.value.cause_retry == "no_retry"


def test_positions_of_before_are_of_128_buckets():
    written = msgspec.to_builtins(Position("table", 7, is_full=True, files=3, sequence=2))
    found = msgspec.convert(written[:9], Position)
    assert (found.files, found.sequence, found.buckets) == (3, 2, BUCKETS)
    assert BUCKETS == 128


@pytest.mark.filterwarnings("ignore:Delete operation did not match any records")
@pytest.mark.parametrize("seed", range(6))
def test_kills_and_rescales_in_the_middle_of_changes_lose_and_repeat_nothing(tmp_path, seed):
    """Every row of the table is counted at the end: duplicates and gaps are a difference."""
    dice = random.Random(seed)
    make_table(tmp_path, NAME, rows(*range(12)), properties={"write.parquet.row-group-limit": "3"})
    with Reader(tmp_path, batch_rows=2) as job:
        for turn in range(40):
            if turn < 30 and dice.random() < 0.6:
                change(tmp_path, dice, turn)
            job.epoch(rows=dice.randint(1, 5), parallelism=dice.randint(1, 4), is_lost=dice.random() < 0.3)
        while job.epoch(parallelism=2):
            pass
        assert job.is_as(tmp_path)


def change(folder: Path, dice: random.Random, turn: int) -> None:
    table = load_table(folder, NAME)
    ids = [100 + 10 * turn + each for each in range(dice.randint(1, 6))]
    match dice.randrange(5):
        case 0 | 1:
            table.append(rows(*ids))
        case 2:
            table.delete(f"id >= {dice.randrange(300)} and id < {dice.randrange(300, 400)}")
        case 3:
            low = dice.randrange(300)
            table.overwrite(rows(*ids, name="b"), overwrite_filter=f"id >= {low} and id < {low + 30}")
        case 4:
            if dice.random() < 0.5:
                add_position_deletes(table, [dice.randrange(2)])
            else:
                # Each is another job.
                with Sink(SCHEMA, folder=folder, mode="merge", keys=["id"], incarnation=f"{turn:016x}") as sink:
                    sink.write(rows(*ids[:2], dice.randrange(12), name="c"))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"keys": ["id"]}, "keys are for changes: true"),
        ({"changes": True, "keys": ["nme"]}, "no column 'nme'"),
        ({"changes": True, "on_change": "skip"}, "no snapshot is skipped"),
        ({"changes": True}, "no id of a row can be made of"),
    ],
)
def test_mistakes_are_found_when_it_is_planned(tmp_path, config, message):
    nested = rows(0).append_column("tags", pa.array([["x"]], pa.list_(pa.string())))
    make_table(tmp_path, NAME, nested)
    with pytest.raises(ConfigError, match=message):
        resolved(tmp_path, **config)
