"""Functions under `@batch_udf` and `@async_udf`: declarations, and batches that are not what was declared."""

from __future__ import annotations

import asyncio
import threading

import pyarrow as pa
import pytest

from arroyo_core.errors import UdfDeclarationError, UdfError
from arroyo_core.udf import AsyncUdf, BatchUdf, async_udf, batch_udf

ROWS = pa.RecordBatch.from_pydict({"a": [1, 2], "b": ["x", "y"]})
#: Who waits for it waits much longer than any timeout here; not for ever, since nobody ends the thread.
NEVER = threading.Event()


@batch_udf(schema=pa.schema({"b": pa.string(), "a": pa.float64()}))
def swap(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


def test_columns_are_found_by_name_and_cast():
    assert isinstance(swap, BatchUdf)
    assert swap.signature == "swap(batch: RecordBatch) -> RecordBatch"
    found = swap.evaluate(ROWS, swap.derive_schema(ROWS.schema))
    assert found.to_pydict() == {"b": ["x", "y"], "a": [1.0, 2.0]}
    assert swap(ROWS) is ROWS


def test_a_schema_may_be_derived_or_stay():
    @batch_udf
    def same(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.to_pandas().pipe(pa.Table.from_pandas, preserve_index=False)

    @batch_udf(schema=lambda schema: pa.schema([schema.field("a")]))
    def narrow(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.select(["a"])

    assert same.derive_schema(ROWS.schema) == ROWS.schema
    assert same.evaluate(ROWS, ROWS.schema).equals(ROWS)
    assert narrow.evaluate(ROWS, narrow.derive_schema(ROWS.schema)).to_pydict() == {"a": [1, 2]}


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda: [1], "it gave list, not a pyarrow.RecordBatch"),
        (lambda: ROWS.select(["a"]), "its result lacks b; it declares b, a"),
        (lambda: ROWS.append_column("c", pa.array([1, 2])), "its result has c; it declares b, a"),
        (lambda: ROWS.rename_columns(["b", "a"]), "column 'a' of its result is string, which does not fit double"),
        (lambda: 1 // 0, "ZeroDivisionError.*called with a batch of 2 rows"),
        (lambda: NEVER.wait(10), "it did not return within 500ms"),
    ],
)
def test_a_result_that_was_not_declared_is_caught(result, message):
    wrong = batch_udf(name="wrong", schema=swap.schema, timeout="500ms")(lambda batch: result())
    with pytest.raises(UdfError, match=message):
        wrong.evaluate(ROWS, swap.schema)


def test_a_schema_that_cannot_be_derived_is_caught():
    wrong = batch_udf(name="wrong", schema=lambda schema: schema.field("zz"))(lambda batch: batch)
    with pytest.raises(UdfError, match="UDF 'wrong': KeyError"):
        wrong.derive_schema(ROWS.schema)
    wrong = batch_udf(name="wrong", schema=lambda schema: "a")(lambda batch: batch)
    with pytest.raises(UdfError, match=r"'schema' gave str, not a pyarrow.Schema"):
        wrong.derive_schema(ROWS.schema)


def test_mistakes_of_batch_functions_are_named():
    with pytest.raises(UdfDeclarationError, match="UDF 'two': it takes one argument"):
        batch_udf(name="two")(lambda a, b: a)
    with pytest.raises(UdfDeclarationError, match=r"UDF 'one': 'schema' is a pyarrow.Schema"):
        batch_udf(name="one", schema="int64")(lambda a: a)


@async_udf(concurrency=7, timeout="5s", retries=3, backoff="50ms", ordered=False)
async def look_up(key: str, fallback: str | None) -> int:
    """A number for a key."""
    return len(key)


def test_a_coroutine_is_declared_with_its_settings():
    assert isinstance(look_up, AsyncUdf)
    assert look_up.signature == "look_up(key: string, fallback: string?) -> int64"
    settings = (look_up.concurrency, look_up.timeout_us, look_up.retries, look_up.backoff_us, look_up.is_ordered)
    assert settings == (7, 5_000_000, 3, 50_000, False)
    assert asyncio.run(look_up("abc", None)) == 3


async def _one(x: int) -> int:
    return x


async def _none() -> int:
    return 1


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (len, {}, "UDF 'len': it is not a coroutine function: write async def"),
        (_one, {"concurrency": 0}, "'concurrency' is 0; it must be at least 1"),
        (_one, {"retries": -1}, "'retries' is -1; it must not be negative"),
        (_one, {"timeout": "soon"}, "'timeout': 'soon' is not a duration"),
        (_one, {"timeout": 5}, "UDF '_one': 'timeout' is 5; write a text such as '5s'"),
        (_none, {}, "a function needs at least one parameter"),
    ],
)
def test_mistakes_of_coroutines_are_named(function, options, message):
    with pytest.raises(UdfDeclarationError, match=message):
        async_udf(**options)(function)
