"""Functions under `@udf`: what they are declared as, and what they give for columns."""

from __future__ import annotations

import pickle
import sys
import threading
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Optional

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.errors import UdfDeclarationError, UdfError
from arroyo_core.udf import ScalarUdf, SourceKind, UdfSource, Volatility, udf


@udf
def clean(text: str) -> str:
    """Small letters, no spaces around."""
    return text.strip().lower()


@udf(name="km", arguments=[pa.float64(), pa.float64()], returns=pa.float64())
def distance(a: pa.Array, b: pa.Array) -> pa.Array:
    return pc.abs(pc.subtract(a, b))


def test_a_function_is_declared_by_its_annotations():
    assert isinstance(clean, ScalarUdf)
    assert clean.signature == "clean(text: string) -> string"
    assert clean.doc == "Small letters, no spaces around."
    assert clean.volatility is Volatility.DETERMINISTIC
    assert not clean.is_vectorised
    assert clean("  A ") == "a"


def test_every_annotation_has_its_type():
    @udf
    def f(
        a: int,
        b: float,
        c: str,
        d: bool,
        e: bytes,
        f: datetime,
        g: date,
        h: list[int],
        i: int | None,
        j: Optional[str],  # noqa: UP045
        k: list[list[str]],
    ) -> list[float]:
        return []

    assert [(each.type, each.is_nullable) for each in f.parameters] == [
        (pa.int64(), False),
        (pa.float64(), False),
        (pa.string(), False),
        (pa.bool_(), False),
        (pa.binary(), False),
        (pa.timestamp("us", tz="UTC"), False),
        (pa.date32(), False),
        (pa.list_(pa.int64()), False),
        (pa.int64(), True),
        (pa.string(), True),
        (pa.list_(pa.list_(pa.string())), False),
    ]
    assert f.return_type == pa.list_(pa.float64())


def test_arrays_of_one_type_need_no_explicit_types():
    @udf
    def twice(x: pa.Int64Array) -> pa.Int64Array:
        return pc.multiply(x, 2)

    assert twice.is_vectorised
    assert twice.signature == "twice(x: int64?) -> int64"
    assert twice.evaluate([pa.array([1, None])]).to_pylist() == [2, None]


def _undefined(x: NoSuchType) -> int:  # noqa: F821
    return 1


def _decimal(x: Decimal) -> int:
    return 1


def _unknown(x: complex) -> int:
    return 1


def _union(x: int | str) -> int:
    return 1


def _bare(x) -> int:
    return 1


def _no_result(x: int):
    return 1


def _none() -> int:
    return 1


def _stars(*x: int) -> int:
    return 1


def _keyword(x: int, *, y: int) -> int:
    return 1


def _mixed(x: pa.Array, y: int) -> pa.Array:
    return x


def _untyped_array(x: pa.Array) -> pa.Array:
    return x


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (_undefined, {}, "UDF '_undefined': an annotation cannot be resolved: name 'NoSuchType' is not defined"),
        (_decimal, {}, "UDF '_decimal', parameter 'x': Decimal does not tell precision and scale"),
        (_unknown, {}, "UDF '_unknown', parameter 'x': no Arrow type for complex; use int, float"),
        (_union, {}, r"UDF '_union', parameter 'x': no Arrow type for int \| str"),
        (_bare, {}, "UDF '_bare', parameter 'x': has no annotation; annotate it, or give 'arguments'"),
        (_no_result, {}, "UDF '_no_result', result: has no annotation; annotate it, or give 'returns'"),
        (_none, {}, "UDF '_none': a function needs at least one parameter"),
        (_stars, {}, "UDF '_stars', parameter 'x': a function has a fixed number"),
        (_keyword, {}, "UDF '_keyword', parameter 'y': arguments are given by position only"),
        (_mixed, {}, "UDF '_mixed', parameter 'y': parameter 'x' is a pyarrow.Array, so all must be"),
        (_untyped_array, {}, "UDF '_untyped_array', parameter 'x': Array does not tell the type of its values"),
        (_bare, {"arguments": []}, r"UDF '_bare': 'arguments' has 0 types for 1 parameters \(x\)"),
        (_bare, {"arguments": ["int64"]}, "UDF '_bare', parameter 'x': 'arguments' takes Arrow types"),
        (_bare, {"name": "a b"}, "UDF name 'a b'"),
        (lambda x: x, {}, "UDF name '<lambda>'"),
        (_union, {"volatility": "mostly", "arguments": [pa.int64()]}, "'_union': volatility 'mostly' is unknown"),
        (_union, {"timeout": "5", "arguments": [pa.int64()]}, "UDF '_union': 'timeout': duration '5' has no unit"),
        (_union, {"timeout": "0s", "arguments": [pa.int64()]}, "UDF '_union': 'timeout' must be more than zero"),
    ],
)
def test_a_mistake_in_a_declaration_is_named(function, options, message):
    with pytest.raises(UdfDeclarationError, match=message):
        udf(**options)(function) if options else udf(function)


def test_a_decimal_is_declared_explicitly():
    kind = pa.decimal128(10, 2)

    @udf(arguments=[kind], returns=kind)
    def half(amount: Decimal) -> Decimal:
        return amount / 2

    assert half.evaluate([pa.array([Decimal("3.00"), None], kind)]).to_pylist() == [Decimal("1.50"), None]


@given(rows=st.lists(st.tuples(st.none() | st.integers(-9, 9), st.none() | st.text(max_size=3))))
def test_it_equals_a_list_comprehension_and_skips_nulls(rows):
    @udf
    def repeat(count: int, text: str) -> str:
        return text * count

    @udf
    def tell(count: int | None, text: str) -> str:
        return f"{count}{text}"

    counts, texts = pa.array([row[0] for row in rows], pa.int64()), pa.array([row[1] for row in rows], pa.string())
    expected = [None if count is None or text is None else text * count for count, text in rows]
    assert repeat.evaluate([counts, texts]).to_pylist() == expected
    expected = [None if text is None else f"{count}{text}" for count, text in rows]
    assert tell.evaluate([counts, texts]).to_pylist() == expected
    assert tell.evaluate([counts, texts]).type == pa.string()


VALUES = {
    "ints": (int, pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "floats": (float, pa.float64(), st.floats(allow_nan=False)),
    "texts": (str, pa.string(), st.text()),
    "booleans": (bool, pa.bool_(), st.booleans()),
    "bytes": (bytes, pa.binary(), st.binary()),
    "times": (
        datetime,
        pa.timestamp("us", tz="UTC"),
        st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),
    ),
    "dates": (date, pa.date32(), st.dates()),
    "lists": (list[int], pa.list_(pa.int64()), st.lists(st.integers(-5, 5), max_size=3)),
}


@pytest.mark.parametrize("name", VALUES)
@given(data=st.data())
def test_values_of_every_type_come_and_go_unchanged(name, data):
    annotation, kind, values = VALUES[name]
    seen = []

    def same(x):
        seen.append(x)
        return x

    same.__annotations__ = {"x": annotation, "return": annotation}
    column = data.draw(st.lists(st.none() | values, max_size=5))
    assert udf(same).evaluate([pa.array(column, kind)]).to_pylist() == column
    assert seen == [value for value in column if value is not None]
    assert all(value.tzinfo is not None for value in seen if isinstance(value, datetime))


def test_arguments_are_cast_from_what_sql_gives():
    assert clean.evaluate([pa.array([" A"], pa.large_string())]).to_pylist() == ["a"]
    assert distance.evaluate([pa.array([1], pa.int32()), pa.array([3.5])]).to_pylist() == [2.5]


def test_no_rows_make_no_call():
    @udf
    def never(x: pa.Int64Array) -> pa.DoubleArray:
        raise AssertionError

    assert never.evaluate([pa.array([], pa.int64())]).type == pa.float64()


def test_an_exception_names_function_source_row_and_the_users_frames():
    @udf
    def parse(text: str, base: int) -> int:
        return int(text, base)

    source = UdfSource(kind=SourceKind.BUNDLE, name="parsers", version="1.0", sha256="ab" * 32)
    shipped = parse.at(source, prefix="v1")
    with pytest.raises(UdfError) as caught:
        shipped.evaluate([pa.array(["1", None, "x" * 300]), pa.array([10, 10, 10])])
    error = caught.value
    assert error.udf == "v1.parse"
    assert error.source == "bundle parsers 1.0 (sha256 abababababab)"
    assert error.message.startswith("ValueError: invalid literal for int()")
    assert error.sample == f"text='{'x' * 199}..., base=10"
    assert "return int(text, base)" in error.traceback
    assert "arroyo_core/udf" not in error.traceback
    assert str(error).startswith("UDF 'v1.parse' of bundle parsers 1.0 (sha256 abababababab): ValueError: ")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.udf, copy.sample) == (str(error), error.udf, error.sample)


@given(numbers=st.lists(st.none() | st.integers(-1, 2)))
def test_rows_that_fail_can_be_collected(numbers):
    @udf
    def inverse(number: int) -> float:
        return 1 / number

    failed = {}
    found = inverse.evaluate([pa.array(numbers, pa.int64())], failed=failed)
    assert found.to_pylist() == [1 / number if number else None for number in numbers]
    assert sorted(failed) == [place for place, number in enumerate(numbers) if number == 0]
    assert {error.summary for error in failed.values()} <= {
        "UDF 'inverse': ZeroDivisionError: division by zero; called with number=0"
    }


def test_values_can_be_kept_out_of_errors(monkeypatch):
    monkeypatch.setenv("ARROYO_REDACT_SAMPLES", "1")

    @udf
    def parse(text: str) -> int:
        return int(text)

    @udf
    def wrong(text: str) -> int:
        return text  # type: ignore[return-value]

    for function in (parse, wrong):
        with pytest.raises(UdfError) as caught:
            function.evaluate([pa.array(["secret"])])
        assert "secret" not in str(caught.value)
        assert "text=(hidden)" in str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "result", "message"),
    [
        (int, 1.5, r"it gave 1.5 \(float\), which is not int64"),
        (int, "5", r"it gave '5' \(str\), which is not int64"),
        (int, True, r"it gave True \(bool\), which is not int64"),
        (int, 2**70, "which is not int64"),
        (str, 5, r"it gave 5 \(int\), which is not string"),
        (bool, 1, r"it gave 1 \(int\), which is not bool"),
        (datetime, "2020", "which is not timestamp"),
        (list[int], 3, "which is not list<item: int64>"),
    ],
)
def test_a_result_of_another_type_is_caught(annotation, result, message):
    def give(x: int):
        return result if x == 2 else None

    give.__annotations__["return"] = annotation
    with pytest.raises(UdfError, match=message) as caught:
        udf(give).evaluate([pa.array([1, 2, 3])])
    assert caught.value.sample == "x=2"


def test_large_unsigned_numbers_fit():
    @udf(arguments=[pa.uint64()], returns=pa.uint64())
    def same(x: int) -> int:
        return x

    assert same.evaluate([pa.array([2**64 - 1, 1], pa.uint64())]).to_pylist() == [2**64 - 1, 1]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (pa.array([1]), "it gave 1 values for 2 rows"),
        ([1, 2], "it gave a list, not a pyarrow.Array"),
        (None, "it gave None, not a pyarrow.Array"),
        (pa.array(["a", "b"]), "it gave values of type string, which do not fit int64"),
        (pa.array([1.5, 2.5]), "it gave values of type double, which do not fit int64"),
    ],
)
def test_a_column_of_another_shape_is_caught(result, message):
    @udf
    def whole(x: pa.Int64Array) -> pa.Int64Array:
        return result

    with pytest.raises(UdfError, match=message):
        whole.evaluate([pa.array([1, 2])])


def test_a_column_is_cast_where_nothing_is_lost():
    @udf
    def whole(x: pa.Int64Array) -> pa.Int64Array:
        return pa.chunked_array([x.cast(pa.int32())])

    assert whole.evaluate([pa.array([1, 2])]).equals(pa.array([1, 2]))


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (lambda: sys.exit(3), r"it called sys.exit\(3\)"),
        (sys.exit, r"it called sys.exit\(\)"),
        (lambda: (_ for _ in ()).throw(KeyboardInterrupt), "KeyboardInterrupt"),
    ],
)
def test_a_function_cannot_end_the_process(end, message):
    @udf
    def leave(x: int) -> int:
        end()
        return x

    @udf
    def leave_whole(x: pa.Int64Array) -> pa.Int64Array:
        end()
        return x

    for function in (leave, leave_whole):
        with pytest.raises(UdfError, match=message):
            function.evaluate([pa.array([1])])


def test_a_function_that_does_not_return_is_an_error():
    is_over = threading.Event()

    @udf(timeout="500ms")
    def wait(x: int) -> int:
        if x:
            is_over.wait()
        return x

    assert wait.evaluate([pa.array([0])]).to_pylist() == [0]
    try:
        with pytest.raises(UdfError, match="UDF 'wait': it did not return within 500ms"):
            wait.evaluate([pa.array([10])])
    finally:
        is_over.set()


def test_errors_come_through_a_deadline():
    @udf(timeout="5s")
    def fail(x: int) -> int:
        return 1 // x

    with pytest.raises(UdfError, match="ZeroDivisionError"):
        fail.evaluate([pa.array([0])])
