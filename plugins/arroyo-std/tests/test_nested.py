from __future__ import annotations

import pyarrow as pa
import pytest
from arroyo_std.nested import has_struct, nullable_type, spread_nulls
from arroyo_std.sql import Expression, compile_expressions
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import Registry

INNER = pa.struct([pa.field("d", pa.int64(), nullable=False), pa.field("e", pa.list_(pa.string()))])
STRUCT = pa.struct({"a": pa.int64(), "c": INNER})

inner = st.fixed_dictionaries({"d": st.integers(1, 9), "e": st.none() | st.lists(st.text("xy"), max_size=2)})
structs = st.none() | st.fixed_dictionaries({"a": st.none() | st.integers(1, 9), "c": st.none() | inner})
lists = st.none() | st.lists(structs, max_size=3)


def field_of(value, *path):
    for name in path:
        value = None if value is None else value[name]
    return value


@settings(deadline=None)
@given(values=st.lists(structs, max_size=8), start=st.integers(0, 8))
def test_a_field_of_a_null_struct_is_null_in_sql(values, start):
    batch = pa.RecordBatch.from_arrays([pa.array(values, STRUCT)], ["s"]).slice(start)
    sqls = {"a": "s.a", "c": "s.c", "d": "s.c.d", "e": "s['c']['e']", "none": "s.c.d is null"}
    compiled = compile_expressions(
        [Expression(name=name, sql=sql, field=name) for name, sql in sqls.items()], batch.schema, Registry()
    )
    assert compiled.evaluate(batch).to_pylist() == [
        {
            "a": field_of(value, "a"),
            "c": field_of(value, "c"),
            "d": field_of(value, "c", "d"),
            "e": field_of(value, "c", "e"),
            "none": field_of(value, "c", "d") is None,
        }
        for value in values[start:]
    ]


@settings(deadline=None)
@given(
    values=st.lists(lists, max_size=6),
    start=st.integers(0, 6),
    list_type=st.sampled_from([pa.list_(STRUCT), pa.large_list(STRUCT)]),
)
def test_an_element_that_is_null_has_null_fields_in_sql(values, start, list_type):
    batch = pa.RecordBatch.from_arrays([pa.array(values, list_type)], ["l"]).slice(start)
    compiled = compile_expressions([Expression(name="a", sql="l[1]['a']", field="a")], batch.schema, Registry())
    expected = [field_of(value[0], "a") if value else None for value in values[start:]]
    assert compiled.evaluate(batch).column(0).to_pylist() == expected


@pytest.mark.parametrize(
    "data_type", [STRUCT, pa.list_(STRUCT), pa.large_list(STRUCT), pa.list_(STRUCT, 2), pa.list_(pa.list_(STRUCT))]
)
def test_spreading_nulls_changes_no_value(data_type):
    element = {"a": 1, "c": {"d": 2, "e": ["x"]}}
    values = {
        STRUCT: [element, None, {"a": None, "c": None}],
        pa.list_(STRUCT, 2): [[element, None], None, [None, element]],
        pa.list_(pa.list_(STRUCT)): [[[element], None], None, [[], [None]]],
    }.get(data_type, [[element, None], None, []])
    array = pa.array(values, data_type)
    for part in (array, array.slice(1), array.slice(0, 0)):
        spread = spread_nulls(part)
        spread.validate(full=True)
        assert spread.to_pylist() == part.to_pylist()
        assert spread.type == nullable_type(data_type)
        assert has_struct(data_type)


def test_elements_that_claim_no_nulls_are_accepted():
    data_type = pa.list_(pa.field("item", pa.int64(), nullable=False))
    batch = pa.RecordBatch.from_arrays([pa.array([[5], []], data_type)], ["l"])
    compiled = compile_expressions([Expression(name="a", sql="l[1]", field="a")], batch.schema, Registry())
    assert compiled.evaluate(batch).column(0).to_pylist() == [5, None]
