"""What every installed format with messages does, whoever wrote it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from arroyo_formats import Decoded, installed_formats
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api.updating import IS_RETRACT, UPDATING_META, make_updates, row_ids
from arroyo_core.errors import ConfigError

from .support.cases import CASES, Subject, can_hold, schema_of
from .support.values import TYPES, batches

FORMATS = sorted(installed_formats())


@cache
def held_types(name: str) -> tuple[pa.DataType, ...]:
    """The types that the format says it can hold."""
    held = tuple(kind for kind in TYPES if can_hold(name, kind))
    assert held, f"{name} holds none of the types with its default settings: give it a case in support/cases.py"
    return held


@st.composite
def subjects(draw: st.DrawFn, name: str) -> Subject:
    held = held_types(name)
    widest = 4 if can_hold(name, held[0], held[0]) else 1
    return Subject(name, schema_of(draw(st.lists(st.sampled_from(held), min_size=1, max_size=widest))))


def comparable(value: Any) -> Any:
    """Equal for equal values, where NaN is one."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items()}
    return [comparable(item) for item in value] if isinstance(value, list | tuple) else value


def plain_rows(batch: pa.RecordBatch, kept: Callable[[Any], Any] = lambda value: value) -> list[Any]:
    """The rows in a form that can be compared; timestamps as numbers."""
    columns = []
    for column in batch.columns:
        is_time = pa.types.is_timestamp(column.type)
        columns.append((column.cast(pa.int64()) if is_time else column).to_pylist())
    return [comparable(kept(list(row))) for row in zip(*columns, strict=True)]


def by_message(decoded: Decoded, count: int) -> list[Any]:
    """For each message its rows, or that it is bad; what is wrong in itself fails here."""
    decoded.batch.validate(full=True)
    origins = np.arange(count) if decoded.origins is None else decoded.origins
    assert len(origins) == decoded.batch.num_rows
    assert (np.diff(origins) >= 0).all(), "rows are not in the order of the messages"
    found: list[Any] = [[] for _ in range(count)]
    for origin, row in zip(origins.tolist(), plain_rows(decoded.batch), strict=True):
        found[origin].append(row)
    for bad in decoded.bad:
        assert found[bad.index] == [], "a bad message has rows"
        assert bad.error, "a bad message has no reason"
        assert "\n" not in bad.error
        found[bad.index] = "bad"
    return found


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_any_value_of_any_type_it_holds_comes_back(name: str, data: st.DataObject) -> None:
    subject = data.draw(subjects(name))
    batch = data.draw(batches(subject.schema))
    messages = subject.encode(batch)
    assert len(messages) == batch.num_rows
    # A null value of a raw format is a message without content, which no reader is given.
    sent = [message for message in messages if message is not None]
    decoded = subject.reader().read(sent)
    assert not decoded.bad, decoded.bad
    rows = decoded.batch.drop_columns([UPDATING_META]) if subject.format.is_updating else decoded.batch
    written = zip(plain_rows(batch, subject.case.kept), messages, strict=True)
    assert plain_rows(rows) == [row for row, message in written if message is not None]


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_no_message_has_an_effect_on_another(name: str, data: st.DataObject) -> None:
    subject = data.draw(subjects(name))
    good = [message for message in subject.encode(data.draw(batches(subject.schema))) if message is not None]
    junk = st.binary(max_size=30) | st.sampled_from(
        [b"", b" ", b"\n", b"{}", b"{", b"}", b"[]", b"null", b'"', b'{"c0":1}{"c0":2}']
    )
    kinds = [junk, junk.map(lambda text: text + b"\n" + text)]
    if good:
        whole = st.sampled_from(good)
        kinds += [whole, whole, st.builds(lambda text, cut: text[:cut], whole, st.integers(0, 40))]
        kinds += [
            st.builds(lambda left, right: left + right, whole, whole),
            st.builds(spoiled, whole, st.integers(0, 99)),
        ]
    messages = data.draw(st.lists(st.one_of(*kinds), max_size=14))
    alone = [by_message(subject.reader().read([message]), 1)[0] for message in messages]
    assert by_message(subject.reader().read(messages), len(messages)) == alone
    # And from what a reader has seen before, nothing follows.
    reader = subject.reader()
    assert [by_message(reader.read([message]), 1)[0] for message in messages] == alone


def spoiled(message: bytes, place: int) -> bytes:
    place %= max(len(message), 1)
    return message[:place] + b"\xfe" + message[place + 1 :]


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_gives_nothing(name: str) -> None:
    subject = Subject(name, schema_of(held_types(name)[:1]))
    decoded = subject.reader().read([])
    assert (decoded.batch.num_rows, list(decoded.bad)) == (0, [])
    assert decoded.batch.schema.equals(subject.reader().schema)
    assert subject.encode(empty(subject)) == []


def empty(subject: Subject) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in subject.schema], schema=subject.schema)


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=5)
@given(data=st.data())
def test_many_messages_keep_their_order(name: str, data: st.DataObject) -> None:
    kind = next(kind for kind in (pa.int64(), pa.string(), pa.binary()) if can_hold(name, kind))
    subject = Subject(name, schema_of([kind]))
    count = data.draw(st.integers(1000, 3000))
    wanted = [n if kind == pa.int64() else f"{n}" if kind == pa.string() else b"%d" % n for n in range(count)]
    batch = pa.RecordBatch.from_arrays([pa.array(wanted, kind)], schema=subject.schema)
    messages = subject.encode(batch)
    bad = data.draw(st.sets(st.integers(0, count - 1), max_size=20))
    messages = [b'{"c0": [' if place in bad else message for place, message in enumerate(messages)]
    decoded = subject.reader().read(messages)
    found = decoded.batch.column(0).to_pylist()
    origins = range(count) if decoded.origins is None else decoded.origins.tolist()
    assert {each.index for each in decoded.bad} <= bad
    kept = {place: value for place, value in zip(origins, found, strict=True) if place not in bad}
    assert kept == {place: wanted[place] for place in range(count) if place not in bad}


@pytest.mark.parametrize("name", [name for name in FORMATS if installed_formats()[name].is_updating])
@given(data=st.data())
def test_rows_that_are_taken_back_come_back_as_such(name: str, data: st.DataObject) -> None:
    subject = data.draw(subjects(name))
    rows = data.draw(batches(subject.schema))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=rows.num_rows, max_size=rows.num_rows)), dtype=bool)
    numbered = pa.RecordBatch.from_arrays([pa.array(range(rows.num_rows))], names=["n"])
    batch = make_updates(rows, is_retract=mask, ids=row_ids(numbered, ["n"]))
    encoded = subject.format.writer(subject.settings, batch.schema).write(batch)
    decoded = subject.reader().read(encoded.messages.to_pylist())
    assert decoded.batch.column(UPDATING_META).field(IS_RETRACT).to_pylist() == mask.tolist()
    assert plain_rows(decoded.batch.drop_columns([UPDATING_META])) == plain_rows(rows, subject.case.kept)


def test_a_column_that_a_format_cannot_hold_is_named() -> None:
    for name in FORMATS:
        for kind in set(TYPES) - set(held_types(name)):
            with pytest.raises(ConfigError) as raised:
                Subject(name, schema_of([kind]))
            assert raised.value.field
            assert str(kind) in str(raised.value) or "c0" in str(raised.value)


def test_every_case_is_of_an_installed_format() -> None:
    assert set(CASES) <= set(FORMATS)
