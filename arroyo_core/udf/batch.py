"""`@batch_udf`: functions that make a batch of a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, overload

import pyarrow as pa

from arroyo_core.errors import UdfDeclarationError
from arroyo_core.udf.annotations import positional
from arroyo_core.udf.deadlines import call_within
from arroyo_core.udf.declaration import read_doc, read_duration_us, read_name, read_volatility
from arroyo_core.udf.user_errors import failure, raised
from arroyo_core.udf.user_function import UserFunction
from arroyo_core.udf.values import CONVERSION_ERRORS

#: The columns of the result: as they are, made from those of the input, or None for the same as the input's.
OutputSchema: TypeAlias = pa.Schema | Callable[[pa.Schema], pa.Schema] | None


@dataclass(frozen=True, kw_only=True)
class BatchUdf(UserFunction):
    """Any number of rows from the rows of a batch. How rows are cut into batches is not promised."""

    function: Callable[[pa.RecordBatch], pa.RecordBatch]
    schema: OutputSchema = None
    #: How long one call may take; None for as long as it likes.
    timeout_us: int | None = None

    @property
    def signature(self) -> str:
        return f"{self.name}(batch: RecordBatch) -> RecordBatch"

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return self.function(batch)

    def derive_schema(self, schema: pa.Schema) -> pa.Schema:
        """The columns of the result for these of the input; raises `UdfError` where the author's function does."""
        if self.schema is None:
            return schema
        if isinstance(self.schema, pa.Schema):
            return self.schema
        try:
            derived = self.schema(schema)
        except BaseException as error:
            raise raised(self, error) from error
        if not isinstance(derived, pa.Schema):
            raise failure(self, f"'schema' gave {type(derived).__name__}, not a pyarrow.Schema")
        return derived

    def evaluate(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        """The author's rows for a batch, under `schema`, as `derive_schema` gave it.

        Columns are found by their names, in any order. Raises `UdfError` where the function raises, wants to end
        the process, is late, or gives other columns.
        """
        result = call_within(self, self.timeout_us, lambda: self._call(batch))
        if isinstance(result, pa.Table):
            result = result.combine_chunks().to_batches()
            result = result[0] if result else pa.RecordBatch.from_pylist([], schema=schema)
        if not isinstance(result, pa.RecordBatch):
            raise failure(self, f"it gave {type(result).__name__}, not a pyarrow.RecordBatch")
        if result.schema.equals(schema, check_metadata=True):
            return result
        missing = [name for name in schema.names if name not in result.schema.names]
        extra = [name for name in result.schema.names if name not in schema.names]
        if missing or extra:
            faults = [f"{word} {', '.join(names)}" for word, names in (("lacks", missing), ("has", extra)) if names]
            raise failure(self, f"its result {' and '.join(faults)}; it declares {', '.join(schema.names)}")
        return pa.RecordBatch.from_arrays([self._column(result, field) for field in schema], schema=schema)

    def _call(self, batch: pa.RecordBatch) -> Any:
        try:
            return self.function(batch)
        except BaseException as error:
            raise raised(self, error, sample=f"a batch of {batch.num_rows} rows") from error

    def _column(self, batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
        column = batch.column(field.name)
        if column.type == field.type:
            return column
        try:
            return column.cast(field.type)
        except CONVERSION_ERRORS as error:
            raise failure(
                self, f"column {field.name!r} of its result is {column.type}, which does not fit {field.type}: {error}"
            ) from error


@overload
def batch_udf(function: Callable[[pa.RecordBatch], pa.RecordBatch], /) -> BatchUdf: ...


@overload
def batch_udf(
    *,
    name: str | None = None,
    schema: OutputSchema = None,
    volatility: str = "deterministic",
    timeout: str | None = None,
) -> Callable[[Callable[[pa.RecordBatch], pa.RecordBatch]], BatchUdf]: ...


def batch_udf(
    function: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None,
    /,
    *,
    name: str | None = None,
    schema: OutputSchema = None,
    volatility: str = "deterministic",
    timeout: str | None = None,
) -> BatchUdf | Callable[[Callable[[pa.RecordBatch], pa.RecordBatch]], BatchUdf]:
    """Declare a function of batches; `schema` tells the columns of its results.

    Raises `UdfDeclarationError` for a mistake.
    """

    def declare(written: Callable[[pa.RecordBatch], pa.RecordBatch]) -> BatchUdf:
        called = read_name(written, name)
        if len(positional(written, udf=called)) != 1:
            raise UdfDeclarationError(f"UDF {called!r}: it takes one argument, a pyarrow.RecordBatch")
        if not (schema is None or isinstance(schema, pa.Schema) or callable(schema)):
            raise UdfDeclarationError(
                f"UDF {called!r}: 'schema' is a pyarrow.Schema, a function from schema to schema, or None"
            )
        return BatchUdf(
            name=called,
            parameters=(),
            return_type=pa.struct(list(schema)) if isinstance(schema, pa.Schema) else pa.null(),
            volatility=read_volatility(volatility, udf=called),
            doc=read_doc(written),
            function=written,
            schema=schema,
            timeout_us=read_duration_us(timeout, option="timeout", udf=called),
        )

    return declare if function is None else declare(function)
