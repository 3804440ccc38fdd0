"""Which change of a key is the last, in plain and in updating streams."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from arroyo_connectors import DELETED, Mode, changes, read_mode
from arroyo_connectors.changes import ChangeSettings, PendingChanges
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.updating import make_updates, row_ids, with_updating
from arroyo_core.errors import ConfigError, DataError

STREAM = ArroyoSchema(pa.schema({"key": pa.string(), "n": pa.float64(), "tags": pa.list_(pa.int64())}))
UPDATING = with_updating(STREAM)
UPSERT = ChangeSettings(mode=Mode.UPSERT, keys=("key",))


def rows(*items):
    return pa.RecordBatch.from_pylist([dict(zip(STREAM.names, item, strict=False)) for item in items], STREAM.schema)


def updates(*items):
    """Each item is `+` or `-`, then the values of a row."""
    plain = rows(*(item[1:] for item in items))
    signs = np.array([item[0] == "-" for item in items], dtype=np.bool_)
    return make_updates(plain, is_retract=signs, ids=row_ids(plain, ["key"]))


def last(*batches, settings=UPSERT, stream=UPDATING):
    pending = PendingChanges(settings, settings.row_schema(stream))
    for batch in batches:
        pending.add(batch, changes.plain_rows(batch, settings.row_schema(stream)))
    return [(row["key"], row["n"], row[DELETED]) for row in pending.take().to_pylist()]


def test_the_last_row_of_a_key_counts():
    found = last(rows(("a", 1), ("b", 2), ("a", 3)), rows(("b", 4)), stream=STREAM)
    assert found == [("a", 3, False), ("b", 4, False)]


def test_a_row_that_replaces_another_is_no_deletion():
    assert last(updates(("-", "a", 1), ("+", "a", 2))) == [("a", 2, False)]


def test_a_row_that_is_taken_back_ends_its_key():
    assert last(updates(("-", "a", 1), ("+", "b", 1)), updates(("-", "b", 1))) == [("a", 1, True), ("b", 1, True)]


def test_a_row_that_is_taken_back_after_its_successor_came_changes_nothing():
    assert last(updates(("+", "a", 2), ("-", "a", 1))) == [("a", 2, False)]
    assert last(updates(("+", "a", 2)), updates(("-", "a", 1))) == [("a", 2, False)]


def test_a_row_is_known_again_by_all_its_values():
    nan = float("nan")
    assert last(updates(("+", "a", nan, [1, None]), ("-", "a", nan, [1, None])))[0][2] is True
    assert last(updates(("+", "a", 1, [1, None]), ("-", "a", 1, [None, 1]))) == [("a", 1, False)]


def test_a_column_says_which_rows_end_their_keys():
    stream = ArroyoSchema(STREAM.schema.append(pa.field("gone", pa.bool_())))
    settings = ChangeSettings(mode=Mode.UPSERT, keys=("key",), deleted_column="gone")
    items = [("a", 1, False), ("b", 1, None), ("a", 5, True), ("c", 1, True), ("c", 2, False)]
    batch = pa.RecordBatch.from_pylist([{"key": k, "n": n, "gone": gone} for k, n, gone in items], stream.schema)
    assert last(batch, settings=settings, stream=stream) == [("b", 1, False), ("a", 5, True), ("c", 2, False)]
    assert settings.row_schema(stream).names == STREAM.names


def test_nothing_is_no_change():
    assert last() == []
    assert last(rows(), stream=STREAM) == []


def test_a_row_without_a_key_is_refused():
    with pytest.raises(DataError, match="'key' is NULL"):
        last(rows((None, 1)), stream=STREAM)


def test_dictionaries_become_plain_columns():
    schema = pa.schema({"key": pa.dictionary(pa.int32(), pa.string()), "n": pa.float64()})
    first, second = (
        pa.RecordBatch.from_arrays([pa.array([key]).dictionary_encode(), pa.array([1.0])], schema=schema)
        for key in ("a", "b")
    )
    assert last(first, second, stream=ArroyoSchema(schema)) == [("a", 1, False), ("b", 1, False)]


def test_changes_are_reduced_while_they_come(monkeypatch):
    monkeypatch.setattr(changes, "LEAST_NEW_ROWS", 10)
    pending = PendingChanges(UPSERT, UPSERT.row_schema(STREAM))
    for number in range(1000):
        batch = rows((str(number % 3), number))
        pending.add(batch, batch)
        assert sum(batch.num_rows for batch in pending._batches) <= 15
    assert [row["n"] for row in pending.take().to_pylist()] == [997, 998, 999]


@given(
    epochs=st.lists(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3)), max_size=12), max_size=6),
    least=st.integers(0, 8),
)
def test_changes_of_a_well_formed_stream_lead_to_its_rows(epochs, least):
    """Rows are replaced, and ended by 0; whatever is reduced on the way, what is applied is what there is."""
    current: dict[str, int] = {}
    applied: dict[str, float] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes, "LEAST_NEW_ROWS", least)
        for epoch in epochs:
            pending = PendingChanges(UPSERT, UPSERT.row_schema(UPDATING))
            for key, value in epoch:
                items = [("-", key, current.pop(key))] if key in current else []
                if value:
                    current[key] = value
                    items.append(("+", key, value))
                batch = updates(*items)
                pending.add(batch, changes.plain_rows(batch, STREAM.schema))
            for row in pending.take().to_pylist():
                if row[DELETED]:
                    applied.pop(row["key"], None)
                else:
                    applied[row["key"]] = row["n"]
            assert applied == current


@pytest.mark.parametrize(
    ("settings", "stream", "words", "field"),
    [
        ({"mode": Mode.APPEND}, UPDATING, "mode append only adds them", "mode"),
        ({"mode": Mode.APPEND, "keys": ("key",)}, STREAM, "keys is for mode upsert", "keys"),
        ({"mode": Mode.APPEND, "deleted_column": "n"}, STREAM, "is for mode upsert", "deleted_column"),
        ({"mode": Mode.UPSERT}, STREAM, "needs the columns of the key", "keys"),
        ({"mode": Mode.UPSERT, "keys": ("kee",)}, STREAM, "no column 'kee'", "keys[0]"),
        ({"mode": Mode.UPSERT, "keys": ("key", "key")}, STREAM, "named twice", "keys[1]"),
        ({"mode": Mode.UPSERT, "keys": ("tags",)}, STREAM, "it cannot be a key", "keys[0]"),
        ({"mode": Mode.UPSERT, "keys": ("key",), "deleted_column": "x"}, STREAM, "no column 'x'", "deleted_column"),
        ({"mode": Mode.UPSERT, "keys": ("key",), "deleted_column": "n"}, STREAM, "not bool", "deleted_column"),
    ],
)
def test_settings_that_do_not_fit_the_input_name_their_field(settings, stream, words, field):
    with pytest.raises(ConfigError, match=words) as refused:
        ChangeSettings(**settings).row_schema(stream)
    assert refused.value.field == field


def test_an_unknown_mode_is_refused():
    assert read_mode("upsert") is Mode.UPSERT
    with pytest.raises(ConfigError, match="unknown mode 'merge'") as refused:
        read_mode("merge")
    assert refused.value.field == "mode"
