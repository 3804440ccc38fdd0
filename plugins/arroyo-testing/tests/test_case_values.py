"""Values in YAML have the types of columns, and are written so that they are read again."""

from decimal import Decimal

import pyarrow as pa
import pytest
from arroyo_testing.cases.cells import array_of, cell_key, cells_of
from arroyo_testing.cases.reading import read_cell, read_rows
from arroyo_testing.cases.rendering import cell_yaml, row_yaml
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.pipeline.document import YamlList, YamlMap
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.loader import load_document
from arroyo_core.pipeline.mistakes import Mistakes

UTC = pa.timestamp("us", "UTC")
NESTED = pa.struct([("name", pa.string()), ("tags", pa.list_(pa.string())), ("at", UTC)])


def read(text, data_type):
    """A cell, or the first mistake."""
    mistakes = Mistakes()
    value = load_document(f"- {text}\n", file="t", environment=Environment({}), mistakes=mistakes)
    assert isinstance(value, YamlList)
    cell = read_cell(value.items[0], data_type, "it", mistakes)
    errors = mistakes.sorted()
    return str(errors[0].message) if errors else cell


@pytest.mark.parametrize(
    ("text", "data_type", "cell"),
    [
        ("true", pa.bool_(), True),
        ("-128", pa.int8(), -128),
        ("18446744073709551615", pa.uint64(), 2**64 - 1),
        ("1.5", pa.float64(), 1.5),
        (".nan", pa.float32(), "nan"),
        ("0.10", pa.decimal128(10, 2), Decimal("0.1")),
        ("'7.5'", pa.decimal256(50, 1), Decimal("7.5")),
        ("no", pa.string(), "no"),
        ("'7'", pa.large_string(), "7"),
        ("abc", pa.binary(), b"abc"),
        ("{hex: '00ff'}", pa.binary(), b"\x00\xff"),
        ("{base64: AP8=}", pa.binary(2), b"\x00\xff"),
        ("2026-03-01T09:15:00Z", UTC, 1_772_356_500_000_000),
        ("2026-03-01T10:15:00.25+01:00", pa.timestamp("ms", "UTC"), 1_772_356_500_250),
        ("2026-03-01 09:15", pa.timestamp("s"), 1_772_356_500),
        ("2026-03-01T09:15:00.000000001Z", pa.timestamp("ns"), 1_772_356_500_000_000_001),
        ("2026-03-01", pa.date32(), 20513),
        ("2026-03-01", pa.date64(), 20513 * 86_400_000),
        ("'09:15:00.5'", pa.time64("us"), 33_300_500_000),
        ("10s", pa.duration("ms"), 10_000),
        ("[1, ~, 3]", pa.list_(pa.int64()), (1, None, 3)),
        ("{name: a, tags: [x], at: 2026-03-01}", NESTED, ("a", ("x",), 1_772_323_200_000_000)),
        ("{name: a}", NESTED, ("a", None, None)),
        ("{a: 1, b: 2}", pa.map_(pa.string(), pa.int32()), (("a", 1), ("b", 2))),
        ("a", pa.dictionary(pa.int32(), pa.string()), "a"),
        ("~", UTC, None),
    ],
)
def test_a_value_has_the_type_of_its_column(text, data_type, cell):
    found = read(text, data_type)
    assert cell_key(found, data_type) == cell_key(cell, data_type) if cell != "nan" else found != found
    assert [cell_key(each, data_type) for each in cells_of(array_of([found], data_type))] == [
        cell_key(found, data_type)
    ]


@pytest.mark.parametrize(
    ("text", "data_type", "message"),
    [
        ("yes", pa.bool_(), "must be true or false"),
        ("128", pa.int8(), "must be between -128 and 127"),
        ("-1", pa.uint8(), "must be between 0 and 255"),
        ("1.5", pa.int64(), "must be a whole number"),
        ("a", pa.float64(), "must be a number"),
        ("1e39", pa.float32(), "does not fit in 32 bits"),
        ("0.001", pa.decimal128(10, 2), "at most 10 digits, 2 of them after the point"),
        ("12345678901", pa.decimal128(10, 0), "at most 10 digits"),
        ("a", pa.decimal128(10, 2), "must be a number of at most"),
        ("7", pa.string(), "must be a string, not the number 7; put it in quotes"),
        ("7", pa.binary(), "must be a text, {hex: ...} or {base64: ...}"),
        ("{hex: zz}", pa.binary(), "is not valid hex"),
        ("abc", pa.binary(2), "must be 2 bytes, not 3"),
        ("2026-13-01", UTC, "must be a time such as"),
        ("1772356500", UTC, "must be a time such as"),
        ("2026-03-01T09:15:00.5Z", pa.timestamp("s"), "does not fit a timestamp[s]"),
        ("2026-03-01T09:15:00Z", pa.date32(), "does not fit a date"),
        ("9", pa.time32("s"), "must be a time of day"),
        ("10", pa.duration("s"), "has no unit"),
        ("7", pa.list_(pa.int64()), "must be a list"),
        ("[a]", pa.list_(pa.int64()), "an item of it must be a whole number"),
        ("{nmae: a}", NESTED, "it has no field 'nmae'"),
        ("[a]", NESTED, "must be a mapping of fields"),
        ("1", pa.null(), "is always null"),
        ("1", pa.month_day_nano_interval(), "which a test cannot write"),
    ],
)
def test_a_value_of_another_type_is_a_mistake(text, data_type, message):
    assert message in read(text, data_type)


def test_columns_that_are_not_written_are_null_and_rows_with_mistakes_are_left_out():
    mistakes = Mistakes()
    text = "[{a: 1}, {a: x}, {b: y}]"
    value = load_document(text, file="t", environment=Environment({}), mistakes=mistakes)
    assert isinstance(value, YamlList)
    rows = [item for item in value.items if isinstance(item, YamlMap)]
    schema = pa.schema({"a": pa.int64(), "b": pa.string()})
    assert read_rows(rows, schema, node="n", mistakes=mistakes) == [(1, None), (None, "y")]
    assert len(mistakes.sorted()) == 1
    strict = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])
    assert read_rows(rows[2:], strict, node="n", mistakes=mistakes) == []
    assert "the row has no 'a', which is never null in 'n'" in str(mistakes.sorted())


CELLS = {
    pa.bool_(): st.booleans(),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.float32(): st.floats(width=32, allow_nan=False, allow_subnormal=False),
    pa.decimal128(20, 3): st.decimals(-(10**15), 10**15, places=3),
    pa.string(): st.text(st.characters(exclude_categories=["Cs"])),
    pa.binary(): st.binary(),
    UTC: st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999),
    pa.timestamp("ns"): st.integers(-(2**62), 2**62),
    pa.timestamp("s"): st.integers(-62_135_596_800, 253_402_300_799),
    pa.date32(): st.integers(-700_000, 2_900_000),
    pa.time64("ns"): st.integers(0, 86_400 * 10**9 - 1),
    pa.duration("us"): st.integers(-(2**60), 2**60),
}


@given(st.data())
def test_what_is_written_is_read_again(data):
    data_type = data.draw(st.sampled_from(list(CELLS)))
    cell = data.draw(st.none() | CELLS[data_type])
    kind, value = data.draw(
        st.sampled_from(
            [
                (data_type, cell),
                (pa.list_(data_type), (cell, None)),
                (pa.struct([("a b", data_type), ("c", pa.int8())]), (cell, 1)),
                (pa.map_(pa.string(), data_type), (("k: k", cell),)),
            ]
        )
    )
    found = read(cell_yaml(value, kind), kind)
    assert cell_key(found, kind) == cell_key(value, kind)
    row = row_yaml((value,), ["x"], [kind])
    assert row.startswith("{x: ")
    assert "\n" not in row
