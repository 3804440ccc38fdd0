"""Arrow columns as the texts that PostgreSQL reads, and batches as the CSV of its COPY.

Texts rather than its binary form: a text is read as whatever type the column has, so that a `uuid`, a `jsonb` or an
enum takes a string, and a `numeric` an integer. NULL is an empty value, and an empty text a quoted one.
"""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from arroyo_connectors.texts import between, hex_texts, is_bytes, is_list, json_texts, large_text

from arroyo_core.errors import DataError

_CSV = pyarrow.csv.WriteOptions(include_header=False)


def encode_csv(rows: pa.RecordBatch) -> bytes:
    """The rows for `COPY ... (FORMAT csv)`; raises `DataError` for a value that has no text."""
    columns = [csv_column(column, name) for name, column in zip(rows.schema.names, rows.columns, strict=True)]
    out = io.BytesIO()
    batch = pa.RecordBatch.from_arrays(columns, names=[str(place) for place in range(len(columns))])
    pyarrow.csv.write_csv(batch, out, _CSV)
    return out.getvalue()


def csv_column(column: pa.Array, name: str) -> pa.Array:
    """A column that Arrow's writer of CSV writes as PostgreSQL reads it."""
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_date32(kind):
        return column
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    if pa.types.is_floating(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column
    return _micros(column) if pa.types.is_timestamp(kind) else text_column(column, name)


def text_column(column: pa.Array, name: str) -> pa.Array:
    """Each value as the text that PostgreSQL reads; NULL where it is NULL."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column
    if is_bytes(kind):
        return hex_texts(column, "\\x", "")
    if pa.types.is_timestamp(kind):
        return _micros(column).cast(pa.string())
    if pa.types.is_time(kind):
        return column.cast(pa.time64("us"), safe=False).cast(pa.string())
    if pa.types.is_date(kind):
        return column.cast(pa.date32()).cast(pa.string())
    if pa.types.is_duration(kind):
        micros = column.cast(pa.duration("us"), safe=False).cast(pa.int64()).cast(pa.string())
        return pc.binary_join_element_wise(micros, "microseconds", " ")
    if is_list(kind):
        return _array_literals(column, name)
    if pa.types.is_struct(kind) or pa.types.is_map(kind):
        return json_texts(column, name)
    if pa.types.is_float16(kind):
        column = column.cast(pa.float32())
    return column.cast(pa.string())


def _micros(column: pa.Array) -> pa.Array:
    """What PostgreSQL keeps of times; those with a zone in UTC."""
    zone = column.type.tz
    cut = column.cast(pa.timestamp("us", zone), safe=False)
    return cut if zone is None else cut.cast(pa.timestamp("us", "UTC"))


def array_literal(column: pa.Array, name: str) -> str:
    """All values as one array, in its text: `{"1","2",NULL}`."""
    offsets = pa.array([0, len(column)], pa.int64())
    text: str = _array_literals(pa.LargeListArray.from_arrays(offsets, column), name)[0].as_py()
    return text


def check_texts(rows: pa.RecordBatch) -> None:
    """Raise `DataError` for a text with the character NUL, which PostgreSQL cannot store."""
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        _check_text(column, name)


def _check_text(column: pa.Array, name: str) -> None:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        # Its bytes first: they rarely have one, and then no text is looked at.
        data = column.buffers()[2]
        if data is None or (np.frombuffer(data, np.uint8) != 0).all():
            return
        has_nul = pc.match_substring(column, "\0").fill_null(False)
        if has_nul.true_count:
            value = column.filter(has_nul)[0].as_py()
            raise DataError(
                f"column {name!r} has a text with the character NUL, which PostgreSQL cannot store: {value[:60]!r}; "
                "take it out with replace(), or write the column as bytes"
            )
    elif is_list(kind):
        _check_text(column.flatten(), name)
    elif pa.types.is_struct(kind):
        for field, values in zip(kind, column.flatten(), strict=True):
            _check_text(values, f"{name}.{field.name}")


def _array_literals(column: pa.Array, name: str) -> pa.Array:
    """`{1,2,NULL}`, with quotes around all but arrays within."""
    lengths = pc.list_value_length(column).fill_null(0).to_numpy().astype(np.int64)
    values = text_column(column.flatten(), name).cast(pa.large_string())
    if not is_list(column.type.value_type):
        values = between('"', pc.replace_substring(pc.replace_substring(values, "\\", "\\\\"), '"', '\\"'), '"')
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, values.fill_null("NULL")), large_text(","))
    return pc.if_else(column.is_valid(), between("{", joined, "}"), large_text(None))
