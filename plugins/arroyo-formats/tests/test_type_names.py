from __future__ import annotations

import pyarrow as pa
import pytest
from arroyo_formats.type_names import SIMPLE_TYPES, TypeNameError, parse_type
from hypothesis import given
from hypothesis import strategies as st

UTC = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("int64", pa.int64()),
        (" BIGINT ", pa.int64()),
        ("timestamp", UTC),
        ("timestamp_ms", pa.timestamp("ms", tz="UTC")),
        ("decimal(10, 2)", pa.decimal128(10, 2)),
        ("list<list<string>>", pa.list_(pa.list_(pa.string()))),
        ("struct<a: int64, b: struct<c: timestamp>>", pa.struct([("a", pa.int64()), ("b", pa.struct([("c", UTC)]))])),
        ("map<string, decimal(5,1)>", pa.map_(pa.string(), pa.decimal128(5, 1))),
    ],
)
def test_a_name_gives_its_type(text: str, kind: pa.DataType) -> None:
    assert parse_type(text) == kind


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a type at character 1"),
        ("list<int64", "expected '>' at character 11"),
        ("list<int64>>", "unexpected '>' at character 12"),
        ("decimal(10)", "expected ',', got ')' at character 11"),
        ("decimal(5,9)", "1 to 38 digits"),
        ("decimal(x,9)", "expected a number, got 'x'"),
        ("struct<a int64>", "expected ':', got 'int64' at character 10"),
        ("struct<a: int64, a: string>", "field 'a' appears twice"),
        ("struct<1: int64>", "expected a field name, got '1'"),
        ("int64; drop", "unexpected ';' at character 6"),
        ("map<string>", "expected ','"),
    ],
)
def test_a_malformed_name_says_where_it_goes_wrong(text: str, message: str) -> None:
    with pytest.raises(TypeNameError) as raised:
        parse_type(text)
    assert message in str(raised.value)


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(TypeNameError, match="unknown type 'timestmp'") as raised:
        parse_type("list<timestmp>")
    assert raised.value.suggestion == "timestamp"


def _written(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"list<{_written(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{field.name}: {_written(field.type)}' for field in kind)}>"
    return next(name for name, simple in SIMPLE_TYPES.items() if simple == kind)


TYPES = st.recursive(
    st.sampled_from(list(SIMPLE_TYPES.values())),
    lambda inner: (
        inner.map(pa.list_)
        | st.lists(inner, min_size=1, max_size=3).map(
            lambda kinds: pa.struct([(f"f{i}", k) for i, k in enumerate(kinds)])
        )
    ),
    max_leaves=6,
)


@given(TYPES)
def test_every_nested_type_is_read_back_from_its_name(kind: pa.DataType) -> None:
    assert parse_type(_written(kind)) == kind
