"""Dead letters: rows that an operator could not compute, with the error and where it happened.

A letter is a row of the operator's input, as it came, and after its columns those of `PROVENANCE`. An operator
declares them as a side output and sends them there; any sink keeps them, and `arroyo dlq` reads them from
Parquet files.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from arroyo_core.api.context import OperatorContext
from arroyo_core.api.registry import Origin
from arroyo_core.api.schema import ArroyoSchema
from arroyo_core.errors import ConfigError, UdfError

#: What counts dead letters, for every operator that makes some.
COUNTER = "dead_letters"

#: Says why the row failed, on one line.
ERROR_COLUMN = "_error"

#: The columns that a letter has beside those of its row.
PROVENANCE = pa.schema(
    {
        ERROR_COLUMN: pa.string(),
        #: The job, and the node in it whose operator failed.
        "_error_pipeline": pa.string(),
        "_error_node": pa.string(),
        #: The operator's registered name, and the distribution that brought it, with its version.
        "_error_operator": pa.string(),
        "_error_plugin": pa.string(),
        #: With the epoch it names one run of the row: epochs of another incarnation have the same numbers.
        "_error_incarnation": pa.string(),
        "_error_epoch": pa.int64(),
        "_error_subtask": pa.int64(),
        "_error_time": pa.timestamp("us", "UTC"),
        #: The user function that failed, and its bundle or distribution with digest; null where none did.
        "_error_udf": pa.string(),
        "_error_udf_source": pa.string(),
        #: Where the row came from outside, such as `orders.csv:17`; null where nobody knows.
        "_error_position": pa.string(),
    }
)

#: Letters of earlier versions do not have these.
ADDED_COLUMNS = frozenset({"_error_incarnation"})


def dead_letter_schema(stream: ArroyoSchema) -> ArroyoSchema:
    """The type of the letters of an operator with this input; raises `ConfigError` for a column of a taken name.

    Letters have no event time: nobody promises that these rows are in time.
    """
    taken = [name for name in stream.names if name in PROVENANCE.names]
    if taken:
        raise ConfigError(
            f"the input has a column {taken[0]!r} already, which dead letters get", field="on_error", value=taken[0]
        )
    return ArroyoSchema(pa.schema([*stream.schema, *PROVENANCE]))


def make_dead_letters(
    rows: pa.RecordBatch,
    errors: Sequence[BaseException],
    ctx: OperatorContext,
    *,
    plugin: Origin,
    positions: Sequence[str | None] | None = None,
) -> pa.RecordBatch:
    """Rows of an operator's input that failed, one error for each, as letters of the type above; they are counted."""
    ctx.count(COUNTER, rows.num_rows)
    task, count = ctx.task_info, rows.num_rows
    udfs = [error if isinstance(error, UdfError) else None for error in errors]
    found: dict[str, list[object]] = {
        ERROR_COLUMN: [ctx.redact(describe_error(error)) for error in errors],
        "_error_pipeline": [task.job_id] * count,
        "_error_node": [task.operator_id] * count,
        "_error_operator": [task.operator_name] * count,
        "_error_plugin": [str(plugin)] * count,
        "_error_incarnation": [ctx.token.incarnation or None] * count,
        "_error_epoch": [ctx.epoch] * count,
        "_error_subtask": [task.task_index] * count,
        "_error_time": [ctx.clock.now_us()] * count,
        "_error_udf": [udf.udf if udf else None for udf in udfs],
        "_error_udf_source": [(udf.source or None) if udf else None for udf in udfs],
        "_error_position": list(positions) if positions is not None else [None] * count,
    }
    columns = [pa.array(found[field.name], field.type) for field in PROVENANCE]
    return pa.RecordBatch.from_arrays([*rows.columns, *columns], schema=pa.schema([*rows.schema, *PROVENANCE]))


def describe_error(error: BaseException) -> str:
    """On one line, without the traceback."""
    return error.summary if isinstance(error, UdfError) else str(error)


def is_dead_letters(schema: pa.Schema) -> bool:
    """Whether rows of this type are letters."""
    return set(PROVENANCE.names) - ADDED_COLUMNS <= set(schema.names)


def original_schema(schema: pa.Schema) -> pa.Schema:
    """The type of the rows that letters of this type were made of."""
    return pa.schema([field for field in schema if field.name not in PROVENANCE.names])
