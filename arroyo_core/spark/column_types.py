"""Types of Spark as Arrow has them, and how the columns of a DataFrame differ from those that a pipeline declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from arroyo_core.errors import DataError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_SIMPLE = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "varchar": pa.string(),
    "char": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    # An instant: the time zone of the session decides how it is shown, and not which it is.
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}


def arrow_type(kind: DataType) -> pa.DataType | None:
    """The Arrow type of a Spark type, with instants in UTC; None for one that no pipeline has."""
    from pyspark.sql import types

    if isinstance(kind, types.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, types.ArrayType):
        item = arrow_type(kind.elementType)
        return None if item is None else pa.list_(item)
    if isinstance(kind, types.MapType):
        key, value = arrow_type(kind.keyType), arrow_type(kind.valueType)
        return None if key is None or value is None else pa.map_(key, value)
    if isinstance(kind, types.StructType):
        found = [(field.name, arrow_type(field.dataType)) for field in kind.fields]
        return None if any(each is None for _, each in found) else pa.struct(found)
    return _SIMPLE.get(kind.typeName().partition("(")[0])


def arrow_schema(schema: StructType) -> pa.Schema:
    """The columns of a DataFrame as a pipeline has them; raises `DataError` for a type that none has."""
    fields = []
    for field in schema.fields:
        kind = arrow_type(field.dataType)
        if kind is None:
            raise DataError(
                f"column {field.name!r} is {field.dataType.simpleString()}, which pipelines have no type for: cast it, "
                "or leave it out with select"
            )
        fields.append(pa.field(field.name, kind))
    return pa.schema(fields)


def check_columns(name: str, schema: StructType, declared: pa.Schema) -> None:
    """Raises `DataError` with every declared column that the DataFrame does not have, or has as something else.

    Whether a column may be null is not compared: all columns of pipelines may. Others than the declared ones are not
    read.
    """
    mistakes = [mistake for field in declared if (mistake := _mistake(field, schema)) is not None]
    if mistakes:
        lines = "\n".join(f"  {mistake}" for mistake in mistakes)
        raise DataError(
            f"the DataFrame for {name!r} is not what its schema declares:\n{lines}\n"
            f"the DataFrame has: {schema.simpleString()}"
        )


def _mistake(field: pa.Field, schema: StructType) -> str | None:
    found = [column for column in schema.fields if column.name == field.name]
    if not found:
        other = next((column.name for column in schema.fields if column.name.lower() == field.name.lower()), None)
        return f"{field.name}: missing" + (f"; there is {other}, and names are compared exactly" if other else "")
    if len(found) > 1:
        return f"{field.name}: there are {len(found)} columns of this name"
    kind = arrow_type(found[0].dataType)
    if kind is not None and kind.equals(field.type):
        return None
    hint = ""
    if kind == pa.timestamp("us") and pa.types.is_timestamp(field.type):
        hint = "; it has no time zone: cast it to timestamp in Spark, which takes that of the session"
    elif pa.types.is_timestamp(field.type) and kind is not None and pa.types.is_timestamp(kind):
        hint = "; times of Spark are microseconds: declare it as timestamp"
    return f"{field.name}: declared {field.type}, but the DataFrame has {found[0].dataType.simpleString()}{hint}"


def spark_schema(schema: pa.Schema) -> StructType:
    """The columns of a DataFrame for rows of a pipeline; raises `DataError` for a type that Spark has not."""
    from pyspark.sql import types

    fields = []
    for field in schema:
        kind = spark_type(field.type)
        if kind is None:
            raise DataError(
                f"column {field.name!r} is {field.type}, which Spark has no type for: cast it, with std.project"
            )
        fields.append(types.StructField(field.name, kind))
    return types.StructType(fields)


def spark_type(kind: pa.DataType) -> DataType | None:
    """The Spark type for values of an Arrow type; None where it has none."""
    from pyspark.sql import types

    if pa.types.is_decimal128(kind):
        return types.DecimalType(kind.precision, kind.scale)
    if pa.types.is_list(kind):
        item = spark_type(kind.value_type)
        return None if item is None else types.ArrayType(item)
    if pa.types.is_map(kind):
        key, value = spark_type(kind.key_type), spark_type(kind.item_type)
        return None if key is None or value is None else types.MapType(key, value)
    if pa.types.is_struct(kind):
        found = [(field.name, spark_type(field.type)) for field in kind]
        return (
            None
            if any(each is None for _, each in found)
            else types.StructType([types.StructField(name, each) for name, each in found if each is not None])
        )
    names = [name for name, simple in _SIMPLE.items() if simple == kind]
    simple_types: dict[str, type[DataType]] = {
        "boolean": types.BooleanType,
        "byte": types.ByteType,
        "short": types.ShortType,
        "integer": types.IntegerType,
        "long": types.LongType,
        "float": types.FloatType,
        "double": types.DoubleType,
        "string": types.StringType,
        "binary": types.BinaryType,
        "date": types.DateType,
        "timestamp": types.TimestampType,
        "timestamp_ntz": types.TimestampNTZType,
    }
    return simple_types[names[0]]() if names and names[0] in simple_types else None
