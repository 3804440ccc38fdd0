"""Columns of DataFrames beside those that a pipeline declares."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import types as spark

from arroyo_core.errors import DataError
from arroyo_core.spark.column_types import arrow_schema, arrow_type, check_columns


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (spark.LongType(), pa.int64()),
        (spark.StringType(), pa.string()),
        (spark.VarcharType(3), pa.string()),
        (spark.TimestampType(), pa.timestamp("us", "UTC")),
        (spark.TimestampNTZType(), pa.timestamp("us")),
        (spark.DecimalType(12, 2), pa.decimal128(12, 2)),
        (spark.ArrayType(spark.DateType()), pa.list_(pa.date32())),
        (spark.MapType(spark.StringType(), spark.ShortType()), pa.map_(pa.string(), pa.int16())),
        (spark.StructType().add("a", "boolean"), pa.struct([("a", pa.bool_())])),
        (spark.DayTimeIntervalType(), None),
        (spark.ArrayType(spark.DayTimeIntervalType()), None),
    ],
)
def test_types_of_spark_have_arrow_types(kind, expected):
    assert arrow_type(kind) == expected


def test_a_type_that_no_pipeline_has_is_named():
    with pytest.raises(DataError, match=r"column 'd' is interval day to second, .* leave it out with select"):
        arrow_schema(spark.StructType().add("n", "long").add("d", spark.DayTimeIntervalType()))


def test_columns_that_may_not_be_null_and_columns_that_nobody_reads_do_not_differ():
    frame = spark.StructType().add("other", "string").add("n", "long", nullable=False)
    check_columns("rows", frame, pa.schema([("n", pa.int64())]))


def test_every_difference_is_told_with_what_there_is():
    frame = spark.StructType().add("a", "integer").add("B", "long").add("t", "timestamp").add("t", "timestamp")
    declared = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("t", pa.timestamp("us", "UTC")), ("z", pa.string())])
    with pytest.raises(DataError) as raised:
        check_columns("rows", frame, declared)
    assert str(raised.value).splitlines() == [
        "the DataFrame for 'rows' is not what its schema declares:",
        "  a: declared int64, but the DataFrame has int",
        "  b: missing; there is B, and names are compared exactly",
        "  t: there are 2 columns of this name",
        "  z: missing",
        "the DataFrame has: struct<a:int,B:bigint,t:timestamp,t:timestamp>",
    ]
