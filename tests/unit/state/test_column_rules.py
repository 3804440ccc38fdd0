"""Tables whose columns come and go: old files are read with the columns that the table has now, or it is refused."""

from __future__ import annotations

import random
from datetime import timedelta

import pyarrow as pa
import pytest
from arroyo_jobs.checkpoints.verification import Verifier

from arroyo_core.api.schema import ArroyoSchema
from arroyo_core.proto.state_pb2 import StateFile
from arroyo_core.state import (
    ColumnOwner,
    ColumnRules,
    IncompatibleCheckpointError,
    StorageProvider,
    WarmCache,
    cache,
    timestamp_table_config,
)
from arroyo_core.state.column_rules import column_path, compare_columns, name_columns
from arroyo_core.state.failures import StateValueError
from arroyo_core.state.fitting import fit_rows
from arroyo_core.state.inspection import read_table
from arroyo_core.state.merge import table_files
from arroyo_core.state.rows import RowFormat
from arroyo_core.state.table_types import derive_mismatch, describe_changes

from .support.state_job import Job

TIME = pa.timestamp("us", "UTC")
DAY = timedelta(days=1)
RULES = ColumnRules()


def config(columns, *, rules=RULES, generational=False, keys=("k",)):
    """A table `t` with a key, a time and these columns."""
    schema = pa.schema([("k", pa.int64()), ("ts", TIME), *columns.items()])
    return timestamp_table_config("t", "", DAY, generational, ArroyoSchema(schema, "ts", keys), column_rules=rules)


class View:
    """One way to write and read a table."""

    generational = False

    def __init__(self, manager):
        self.view = self.take(manager)


class ByTime(View):
    def take(self, manager):
        return manager.get_expiring_time_key_table("t")

    def write(self, batch):
        self.view.insert_batch(batch)

    def rows(self):
        return [row for time in self.view.times() for part in self.view.get_batches(time) for row in part.to_pylist()]


class ByKey(View):
    def take(self, manager):
        return manager.get_key_time_table("t")

    def write(self, batch):
        self.view.insert(batch)

    def rows(self):
        return [row for part in self.view.get_all_parts() for row in part.to_pylist()]


class LastByKey(View):
    generational = True

    def take(self, manager):
        return manager.get_last_key_value_table("t")

    def write(self, batch):
        self.view.upsert(batch)

    def rows(self):
        return self.view.get_all().to_pylist()


class Lives:
    """A job whose table is declared again in each life."""

    def __init__(self, folder, kind, *, is_cached=False):
        self.kind = kind
        warm = WarmCache(folder / "cache") if is_cached else None
        self.job = Job(StorageProvider(str(folder / "store")), {}, cache=warm)

    def live(self, columns, rows=(), *, parallelism=1, rules=RULES):
        """Restore, look at what is there, write rows, and take a checkpoint; returns what was there."""
        self.job.tables = {"t": config(columns, rules=rules, generational=self.kind.generational)}
        self.job.resume(parallelism)
        views = [self.kind(manager) for manager in self.job.managers]
        found = [row for view in views for row in view.rows()]
        schema = pa.schema([("k", pa.int64()), ("ts", TIME), *columns.items()])
        if rows:
            batch = pa.RecordBatch.from_pylist([{"ts": 0, **row} for row in rows], schema=schema)
            for view, part in zip(views, self.job.split(batch), strict=True):
                view.write(part)
        self.job.take()
        return sorted(({name: row[name] for name in row if name != "ts"} for row in found), key=repr)


@pytest.fixture(params=[False, True], ids=["cold", "warm"])
def make_lives(tmp_path, monkeypatch, request):
    monkeypatch.setattr(cache, "SMALL_BYTES", -1)
    return lambda kind: Lives(tmp_path, kind, is_cached=request.param)


KINDS = [ByTime, ByKey, LastByKey]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_any_columns_come_and_go_in_any_order(make_lives, kind, seed):
    """Against a dictionary by key; files of all lives are read, merged and cached together."""
    draw = random.Random(seed)
    lives, model, names = make_lives(kind), {}, []
    for life in range(10):
        before, names = names, draw.sample(["a", "b", "c", "d"], draw.randint(0, 4))
        # A column that was not there in the life before is null in all rows of before, though files may have it.
        model = {key: {name: row[name] if name in before else None for name in names} for key, row in model.items()}
        rows = [{"k": life * 10 + number, **{name: draw.randint(0, 99) for name in names}} for number in range(3)]
        found = lives.live(dict.fromkeys(names, pa.int64()), rows, parallelism=draw.randint(1, 3))
        assert found == sorted(({"k": key, **row} for key, row in model.items()), key=repr)
        model |= {row["k"]: {name: row[name] for name in names} for row in rows}
    assert any(len(table_files(table)) for table in tables_of(lives.job))
    assert [verdict.problems for verdict in Verifier(lives.job.backend).verify_all()] == [()] * 10


def tables_of(job):
    return job.checkpoint.operators[0].table_checkpoint_metadata.values()


@pytest.mark.parametrize("kind", KINDS)
def test_columns_inside_of_lists_come_go_and_widen(make_lives, kind):
    lives = make_lives(kind)
    old = pa.list_(pa.struct([("a", pa.int32()), ("gone", pa.string())]))
    new = pa.list_(pa.struct([("b", pa.string()), ("a", pa.int64())]))
    rows = [{"k": 1, "l": [{"a": 1, "gone": "x"}, None]}, {"k": 2, "l": None}, {"k": 3, "l": []}]
    lives.live({"l": old, "f": pa.float32()}, [{**row, "f": 0.5} for row in rows])
    assert lives.live({"l": new, "f": pa.float64()}) == [
        {"k": 1, "l": [{"b": None, "a": 1}, None], "f": 0.5},
        {"k": 2, "l": None, "f": 0.5},
        {"k": 3, "l": [], "f": 0.5},
    ]


def test_what_is_shown_of_a_table_has_the_columns_that_it_has_now(tmp_path):
    lives = Lives(tmp_path, ByKey)
    lives.live({"a": pa.int64()}, [{"k": 1, "a": 7}])
    lives.live({"b": pa.int64()}, [{"k": 2, "b": 8}])
    shown = read_table(lives.job.storage, lives.job.checkpoint, "op", "t").drop_columns(["ts"]).to_pylist()
    assert sorted(shown, key=str) == [{"k": 1, "b": None}, {"k": 2, "b": 8}]


def test_a_table_that_nobody_looks_at_keeps_what_it_has_no_values_for(tmp_path):
    lives = Lives(tmp_path, ByKey)
    lives.live({"a": pa.int64()}, [{"k": 1, "a": 7}])
    lives.job.tables = {"t": config({})}
    lives.job.resume(1)
    lives.job.take()
    assert lives.live({"a": pa.int64()}) == [{"k": 1, "a": None}]


def owned(**identities):
    return ColumnRules(owners={name: ColumnOwner(f"sum {name}", identity) for name, identity in identities.items()})


def test_a_column_of_the_same_identity_goes_on_under_its_new_name(tmp_path):
    lives = Lives(tmp_path, LastByKey)
    number = pa.int64()
    lives.live({"a": number}, [{"k": 1, "a": 7}], rules=owned(a="x"))
    assert lives.live({"b": number}, rules=owned(b="x")) == [{"k": 1, "b": 7}]
    assert lives.live({"c": number, "a": number}, rules=owned(c="x", a="y")) == [{"k": 1, "c": 7, "a": None}]
    assert lives.live({"a": number}, rules=owned(a="y")) == [{"k": 1, "a": None}]
    assert lives.live({"c": number}, rules=owned(c="x")) == [{"k": 1, "c": None}]


def test_columns_of_one_identity_are_not_mistaken_for_each_other():
    before, after = config({"a": pa.int64(), "b": pa.int64()}, rules=owned(a="x", b="x")), {"c": pa.int64()}
    now = config({**after, "d": pa.int64()}, rules=owned(c="x", d="x"))
    assert describe_changes(before, now) == ("sum c added", "sum d added", "sum a removed", "sum b removed")
    # Of two only one is left: that is the one of its name.
    assert describe_changes(before, config({"a": pa.int64()}, rules=owned(a="x"))) == ("sum b removed",)


NUMBER = {"a": pa.int64()}


@pytest.mark.parametrize(
    ("before", "now", "reason"),
    [
        (
            config(NUMBER),
            config({"a": pa.string()}),
            "has column a as int64 in the checkpoint, and now it is string",
        ),
        (config(NUMBER), config({"a": pa.int32()}), "has column a as int64 in the checkpoint, and now it is int32"),
        (config(NUMBER), config({"a": pa.uint64()}), "has column a as int64 in the checkpoint, and now it is uint64"),
        (
            config({"a": pa.list_(pa.int64())}),
            config({"a": pa.large_list(pa.int64())}),
            "has column a as list<item: int64> in the checkpoint, and now it is large_list<item: int64>",
        ),
        (
            config({"_rows": pa.list_(pa.struct([("x", pa.int64())]))}),
            config({"_rows": pa.list_(pa.struct([("x", pa.bool_())]))}),
            "has column x as int64 in the checkpoint, and now it is bool",
        ),
        (
            config({}),
            config(NUMBER, rules=ColumnRules(fixed=("a",))),
            "has no column a in the checkpoint, which must stay so",
        ),
        (
            config(NUMBER),
            config({}, rules=ColumnRules(fixed=("a",))),
            "has a column a in the checkpoint, which must stay so",
        ),
        (
            config({}),
            config(NUMBER, rules=ColumnRules(closed="it is full")),
            "has no column a in the checkpoint, and none may be new: it is full",
        ),
        (
            config(NUMBER, rules=owned(a="x")),
            config({"b": pa.int64()}, rules=ColumnRules(owners={"b": ColumnOwner("sum a", "y")})),
            "keeps sum a in a in the checkpoint, and now in b",
        ),
        (
            config(NUMBER, rules=None),
            config({**NUMBER, "b": pa.int64()}, rules=owned(a="x", b="y")),
            "was written by an earlier version, which did not record what its columns belong to (b came or went): run "
            "the pipeline as it was once with this version, until it has a checkpoint, and change it then",
        ),
        (
            config(NUMBER),
            config(NUMBER, keys=("a",)),
            "has key columns ('k',) in the checkpoint, and is declared with ('a',)",
        ),
    ],
)
def test_what_cannot_be_taken_over_is_refused_with_words(before, now, reason):
    assert derive_mismatch(before, now) == reason


def test_a_column_that_takes_no_nulls_cannot_be_new():
    schema = pa.schema([("k", pa.int64()), ("ts", TIME), pa.field("a", pa.int64(), nullable=False)])
    now = timestamp_table_config("t", "", DAY, False, ArroyoSchema(schema, "ts", ("k",)), column_rules=RULES)
    assert derive_mismatch(config({}), now) == "has no column a in the checkpoint, and it must not be null"


def test_a_table_of_an_earlier_version_gets_columns_that_are_rows_own():
    before = config(NUMBER, rules=None)
    assert derive_mismatch(before, config({"b": pa.int64()})) is None
    assert describe_changes(before, config({"b": pa.int64()})) == (
        "new column b is null in old rows",
        "column a is left out of old rows",
    )


def test_a_table_without_rules_takes_no_other_columns(tmp_path):
    lives = Lives(tmp_path, ByKey)
    lives.live(NUMBER, [{"k": 1, "a": 7}], rules=None)
    with pytest.raises(IncompatibleCheckpointError, match="has columns"):
        lives.live({"b": pa.int64()}, rules=None)


def test_equal_configs_have_equal_bytes():
    names = [f"c{number}" for number in range(50)]
    rules = [ColumnRules(owners={name: ColumnOwner(name, name) for name in order}) for order in (names, names[::-1])]
    assert config(NUMBER, rules=rules[0]).config == config(NUMBER, rules=rules[1]).config


def test_names_with_dots_are_not_paths():
    nested = pa.schema([("a", pa.struct([("b", pa.int64())]))])
    dotted = pa.schema([("a.b", pa.int64())])
    changes = compare_columns(nested, dotted, written=None, declared=None)
    assert (list(changes.added), changes.removed) == ([column_path("", "a.b")], ["a"])
    assert name_columns(changes, {}) == {"a\\.b": "", "a": ""}


def test_a_wrong_type_in_a_file_is_still_noticed(tmp_path):
    lives = Lives(tmp_path, ByKey)
    lives.live(NUMBER, [{"k": 1, "a": 7}])
    operator = lives.job.checkpoint.operators[0]
    operator.table_configs["t"].CopyFrom(config({"a": pa.string()}))
    lives.job.backend.publish(type(lives.job.checkpoint)(job_id="job", epoch=2, parent_epoch=1, operators=[operator]))
    (problem,) = Verifier(lives.job.backend).verify(2).problems
    assert "has a column 'a' of type int64, not string" in problem


def test_a_null_in_a_column_without_nulls_is_an_error_of_state():
    schema = ArroyoSchema(pa.schema([pa.field("k", pa.int64(), nullable=False)]))
    rows = RowFormat("t", schema, is_generational=False, unkeyed_hash=0)
    with pytest.raises(StateValueError, match=r"table 't': its rows do not fit its columns: .*'k'"):
        rows.decode(pa.table({"k": pa.array([1, None], pa.int64())}))


def test_rows_that_fit_are_not_copied():
    rows = pa.table({"a": [1, 2]})
    assert fit_rows(rows, rows.schema, StateFile().column_names) is rows


def test_a_slice_of_lists_is_fitted_as_its_whole_is():
    old, new = pa.list_(pa.struct([("a", pa.int32())])), pa.list_(pa.struct([("a", pa.int64()), ("b", pa.bool_())]))
    values = [[{"a": 1}], None, [], [{"a": 2}, {"a": 3}], [None]]
    rows = pa.table({"l": pa.chunked_array([pa.array(values, old)])}).slice(1, 4)
    fitted = fit_rows(rows, pa.schema([("l", new)]), {})
    expected = [value and [each and {**each, "b": None} for each in value] for value in values[1:]]
    assert fitted.column("l").to_pylist() == expected
    fitted.validate(full=True)
