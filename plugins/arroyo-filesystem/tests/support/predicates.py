"""Random predicates: columns of some types, and constants whose type is drawn without a look at that of the column."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

START = dt.datetime(2026, 1, 1)
TYPES = {
    "i": pa.int64(),
    "s": pa.int8(),
    "f": pa.float64(),
    "g": pa.float32(),
    "d": pa.decimal128(12, 2),
    "t": pa.string(),
    "moment": pa.timestamp("us"),
    "day": pa.date32(),
    "b": pa.bool_(),
    "p": pa.string(),
}

NUMBERS = st.integers(-4, 4)
TEXTS = st.text("abé%_'/ x", max_size=3)
#: Whole numbers that are rounded to one another as float32 or float64.
CLOSE = [2**24, 2**24 + 1, 2**53, 2**53 + 1, 2**54 + 2**30 + 1]
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": NUMBERS | st.sampled_from([*CLOSE, -(2**62)]),
    "s": NUMBERS,
    "f": NUMBERS.map(lambda n: n / 2)
    | st.sampled_from([math.nan, -0.0, math.inf, 0.1, 1.1000000000000003, 5.55e-17, *map(float, CLOSE)]),
    "g": NUMBERS.map(lambda n: n / 2) | st.sampled_from([math.nan, -0.0, 0.1, 2.0**24, 2.0**54 + 2**31]),
    "d": NUMBERS.map(lambda n: Decimal(n) / 4) | st.sampled_from([Decimal("0.1"), Decimal(2**24 + 1)]),
    "t": TEXTS,
    "moment": NUMBERS.map(lambda n: START + dt.timedelta(milliseconds=n * 300)),
    "day": NUMBERS.map(lambda n: START.date() + dt.timedelta(days=n)),
    "b": st.booleans(),
}

WHOLE = NUMBERS | st.sampled_from(CLOSE)
#: As they are written.
FRACTIONS = st.sampled_from(
    ["0.5", "-1.5", "0.1", "0.10", "1.1", "1e-16", "0.10000000000000002", "-0.0", "16777216.0", "9007199254740993.0"]
)
ANY_NUMBER = ["{}", "CAST({} AS REAL)", "CAST({} AS FLOAT)", "CAST({} AS DOUBLE)", "CAST(CAST({} AS REAL) AS DOUBLE)"]
#: With digits enough for each of the numbers, beside each of the columns.
DECIMALS = ["CAST({} AS DECIMAL(38, 18))", "CAST('{}' AS DECIMAL(38, 18))"]
UNITS = ["Second", "Millisecond", "Microsecond", "Nanosecond"]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@st.composite
def _numbers(draw: st.DrawFn) -> str:
    if draw(st.booleans()):
        number = draw(WHOLE)
        small = ["CAST({} AS TINYINT)"] if abs(number) < 128 else []
        decimals = [*DECIMALS, "CAST('{}' AS DECIMAL(12, 2))"] if abs(number) < 10**10 else DECIMALS
        forms = [*ANY_NUMBER, *decimals, *small, "CAST({} AS BIGINT)", "CAST(CAST({} AS REAL) AS BIGINT)"]
        return draw(st.sampled_from(forms)).format(number)
    return draw(st.sampled_from([*ANY_NUMBER, *DECIMALS])).format(draw(FRACTIONS))


@st.composite
def _moments(draw: st.DrawFn) -> str:
    moment = draw(VALUES["moment"])
    form = draw(st.sampled_from(["TIMESTAMP {}", "{}", "DATE {}", "arrow_cast({}, 'Timestamp(%s, None)')"]))
    written = moment.date().isoformat() if form.startswith("DATE") else moment.isoformat(timespec="microseconds")
    return form.replace("%s", draw(st.sampled_from(UNITS))).format(_quoted(written))


def _constants(name: str) -> st.SearchStrategy[str]:
    if name in "isfgd":
        return _numbers()
    if name == "moment":
        return _moments()
    if name == "day":
        return st.tuples(st.sampled_from(["DATE ", ""]), VALUES["day"]).map(lambda pair: f"{pair[0]}'{pair[1]}'")
    if name == "b":
        return st.sampled_from(["TRUE", "FALSE"])
    texts = TEXTS | st.sampled_from(["x", "a/b '"]) if name == "p" else TEXTS
    return texts.map(_quoted)


@st.composite
def _single_tests(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(list(TYPES)))
    one = _constants(name)
    form = draw(st.sampled_from(["compare", "turned", "between", "in", "null", "like" if name in "tp" else "compare"]))
    negated = draw(st.sampled_from(["", "NOT "]))
    if form == "between":
        return f"{name} {negated}BETWEEN {draw(one)} AND {draw(one)}"
    if form == "in":
        return f"{name} {negated}IN ({', '.join(draw(st.lists(one, min_size=1, max_size=3)))})"
    if form == "null":
        return f"{name} IS {negated}NULL"
    if form == "like":
        return f"{name} {negated}LIKE {draw(one)}"
    operator = draw(st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">="]))
    return f"{draw(one)} {operator} {name}" if form == "turned" else f"{name} {operator} {draw(one)}"


SINGLE_TESTS = _single_tests()
PREDICATES = st.recursive(
    SINGLE_TESTS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda parts: f"({' '.join(parts)})"),
        inner.map(lambda part: f"NOT ({part})"),
    ),
    max_leaves=5,
)
