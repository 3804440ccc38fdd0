"""Types of Arrow and those of Delta Lake: which columns become what, and which fit into a table's."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.errors import ConfigError, DataError

TIMESTAMP = pa.timestamp("us", "UTC")
TIMESTAMP_WITHOUT_ZONE = pa.timestamp("us")
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    # Greater numbers are found when they come.
    pa.uint64(): pa.int64(),
    pa.float16(): pa.float32(),
}
#: Names with these cannot be written without column mapping.
_BAD_CHARACTERS = frozenset(" ,;{}()\n\t=")


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """The columns as a new table has them; raises `ConfigError` naming one that it cannot have."""
    seen: dict[str, str] = {}
    for name in schema.names:
        if not name or _BAD_CHARACTERS.intersection(name):
            raise ConfigError(
                f"column {name!r} cannot be in a Delta table: names have none of the characters ' ,;{{}}()=', and no "
                "tab or line end"
            )
        if name.casefold() in seen:
            raise ConfigError(f"columns {seen[name.casefold()]!r} and {name!r} differ in case only")
        seen[name.casefold()] = name
    # All may be null: what a column of the stream never has today it may have in a later pipeline.
    return pa.schema([pa.field(each.name, stored_type(each.type, each.name)) for each in schema])


def stored_type(kind: pa.DataType, name: str) -> pa.DataType:
    """What a value of this type is in a new table. Times are of UTC, in microseconds."""
    simple = _stored_simple(kind)
    if simple is not None:
        return simple
    if pa.types.is_dictionary(kind):
        return stored_type(kind.value_type, name)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(pa.field("element", stored_type(kind.value_type, f"{name}[]"), kind.value_field.nullable))
    if pa.types.is_map(kind):
        return pa.map_(stored_type(kind.key_type, f"{name}.key"), stored_type(kind.item_type, f"{name}.value"))
    if pa.types.is_struct(kind):
        fields = [kind.field(index) for index in range(kind.num_fields)]
        return pa.struct(
            [pa.field(each.name, stored_type(each.type, f"{name}.{each.name}"), each.nullable) for each in fields]
        )
    raise ConfigError(f"column {name!r} is {kind}, which a Delta table cannot have: cast it in front of the sink")


def _stored_simple(kind: pa.DataType) -> pa.DataType | None:
    if kind in _INTEGERS or kind in (pa.float32(), pa.float64(), pa.bool_(), pa.date32()):
        return kind
    if kind in _WIDER:
        return _WIDER[kind]
    if pa.types.is_timestamp(kind):
        return TIMESTAMP
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view():
        return pa.string()
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision:
        return kind
    return pa.date32() if kind == pa.date64() else None


def fits(found: pa.DataType, name: str, wanted: pa.DataType) -> bool:
    """Whether every value of a column of the input is a value of the table's column, without loss.

    Times lose what is finer than a microsecond.
    """
    stored = stored_type(found, name)
    if stored == wanted or (pa.types.is_integer(stored) and pa.types.is_integer(wanted) and _is_wider(stored, wanted)):
        return True
    if stored == pa.float32() and wanted == pa.float64():
        return True
    # A time without a zone is one of UTC here, and a wall clock there.
    return wanted == TIMESTAMP_WITHOUT_ZONE and pa.types.is_timestamp(found) and found.tz is None


def _is_wider(narrow: pa.DataType, wide: pa.DataType) -> bool:
    return bool(narrow.bit_width < wide.bit_width)


def cast_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of `schema`, in its order and types; raises `DataError` for a number that is too great."""
    columns = []
    for field in schema:
        column = batch.column(field.name)
        if column.type != field.type:
            # Nanoseconds become microseconds; nothing else is harmed.
            options = pc.CastOptions(field.type, allow_time_truncate=True)
            try:
                column = pc.cast(column, options=options)
            except pa.ArrowInvalid as error:
                raise DataError(f"column {field.name!r}, which is {field.type} in the table: {error}") from error
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)
