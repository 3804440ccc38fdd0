"""Rows of message types, for property tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from arroyo_formats.protobuf.shape import Field, Kind, Label, Value
from hypothesis import strategies as st

from .arrow_values import values

EVERYTHING = Path(__file__).parent / "everything.proto"


def rows(fields: Sequence[Field]) -> st.SearchStrategy[dict[str, Any]]:
    """Values of fields that can be written: null where a field can tell, one of a `oneof` at most."""
    single = st.fixed_dictionaries({f.name: _field(f) for f in fields if not f.oneof})
    oneofs = [_oneof([f for f in fields if f.oneof == name]) for name in sorted({f.oneof for f in fields if f.oneof})]
    return st.tuples(single, *oneofs).map(lambda parts: {key: value for part in parts for key, value in part.items()})


def _oneof(fields: Sequence[Field]) -> st.SearchStrategy[dict[str, Any]]:
    nothing = {field.name: None for field in fields}
    chosen = [_value(f.value).map(lambda value, name=f.name: {**nothing, name: value}) for f in fields]
    return st.one_of(st.just(nothing), *chosen)


def _field(field: Field) -> st.SearchStrategy[Any]:
    found = _value(field.value)
    if field.label is Label.REPEATED:
        return st.lists(found, max_size=3)
    if field.label is Label.MAP:
        # In the order of the keys, which is the one that all readers can have.
        return st.dictionaries(values(field.key), found, max_size=3).map(
            lambda entries: sorted(entries.items(), key=_key)
        )
    return st.none() | found if field.has_presence else found


def _key(entry: tuple[Any, Any]) -> Any:
    return entry[0]


def _value(value: Value) -> st.SearchStrategy[Any]:
    if value.kind is Kind.ENUM:
        return st.sampled_from([name for _, name in value.names]) | st.just("77")
    if value.kind is Kind.MESSAGE:
        return rows(value.fields)
    return values(value.type)


def batch_of(found: Sequence[dict[str, Any]], fields: Sequence[Field]) -> pa.RecordBatch:
    columns = [pa.array([row[field.name] for row in found], field.type) for field in fields]
    return pa.RecordBatch.from_arrays(columns, [field.name for field in fields])


def same(first: Any, second: Any) -> bool:
    """Whether rows are equal, where maps have no order."""
    return _sorted(first) == _sorted(second)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(inner) for key, inner in value.items()}
    if isinstance(value, list):
        items = [_sorted(inner) for inner in value]
        return sorted(items, key=repr) if items and isinstance(items[0], tuple) else items
    if isinstance(value, tuple):
        return tuple(_sorted(inner) for inner in value)
    # Not a number is not equal to itself.
    return repr(value) if isinstance(value, float) else value
