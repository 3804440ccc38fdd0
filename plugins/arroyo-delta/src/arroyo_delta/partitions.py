"""Cuts batches by the values of partition columns, which are texts in the log of a table."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.errors import DataError

#: The text of each partition column's value, in order; None for null.
Values: TypeAlias = tuple[str | None, ...]


def partition(batch: pa.RecordBatch, columns: Sequence[str]) -> Iterator[tuple[Values, pa.RecordBatch]]:
    """The rows of each partition, in their order and without the partition columns."""
    if not columns:
        yield (), batch
        return
    codes = np.zeros(batch.num_rows, dtype=np.int64)
    parts: list[Values] = [()]
    for name in columns:
        encoded = pc.dictionary_encode(batch.column(name), null_encoding="encode")
        texts = [value_text(value, name) for value in encoded.dictionary.to_pylist()]
        codes = codes * max(len(texts), 1) + encoded.indices.to_numpy(zero_copy_only=False)
        # Back to dense codes, or many columns would overflow.
        present, codes = np.unique(codes, return_inverse=True)
        parts = [(*parts[code // len(texts)], texts[code % len(texts)]) for code in present]
    rest = batch.drop_columns(list(columns))
    if len(parts) == 1:
        yield parts[0], rest
        return
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(len(parts) + 1))
    for code, values in enumerate(parts):
        yield values, rest.take(pa.array(order[starts[code] : starts[code + 1]]))


def value_text(value: object, column: str) -> str | None:
    """A value of a partition column as the protocol writes it; raises `DataError` for what it cannot tell from null."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case str():
            if not value:
                raise DataError(
                    f"column {column!r} has an empty text, and the table is partitioned by it: Delta tables have null "
                    "there; replace it in front of the sink"
                )
            return value
        case int() | Decimal():
            return str(value)
        case datetime.datetime():
            text = value.replace(tzinfo=None).isoformat(" " if value.tzinfo is None else "T", "microseconds")
            return text if value.tzinfo is None else f"{text}Z"
        case datetime.date():
            return value.isoformat()
    raise AssertionError(f"a partition column has values of {type(value)}")


def text_value(text: str | None, kind: pa.DataType) -> pa.Scalar:
    """The value that a text of the log stands for; raises `DataError`."""
    if text is None or text == "":
        return pa.scalar(None, kind)
    try:
        if pa.types.is_timestamp(kind):
            return pa.scalar(_time(text, has_zone=kind.tz is not None), kind)
        if pa.types.is_decimal(kind):
            return pa.scalar(Decimal(text), kind)
        return pa.scalar(text).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError, ArithmeticError) as error:
        raise DataError(
            f"the log of the table has {text[:100]!r} as a value of a partition column of {kind}"
        ) from error


def _time(text: str, *, has_zone: bool) -> datetime.datetime:
    time = datetime.datetime.fromisoformat(text)
    if has_zone and time.tzinfo is None:
        return time.replace(tzinfo=datetime.UTC)
    return time if has_zone else time.replace(tzinfo=None)
