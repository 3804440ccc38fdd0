"""Looks at batches as they are emitted, and remembers the first that is not what was declared."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

import pyarrow as pa

from arroyo_core.api import ArroyoSchema
from arroyo_testing.conformance.faults import ConformanceError


class SchemaGuard:
    """`look` never raises, for the runtime would wrap it: the end of the `with` around the run does.

    What it saw comes before what the run raised, which follows from it.
    """

    def __init__(
        self, name: str, main: ArroyoSchema, sides: Mapping[str, ArroyoSchema] | None = None, how: str = ""
    ) -> None:
        self._name = name
        self._schemas: dict[str | None, ArroyoSchema] = {None: main}
        self._schemas.update((sides or {}).items())
        self._how = f" {how}" if how else ""
        self._fault: ConformanceError | None = None

    def look(self, output: str | None, batch: pa.RecordBatch) -> None:
        if self._fault is None:
            found = self._difference(output, batch)
            where = "" if output is None else f" to its side output {output!r}"
            if found:
                self._fault = ConformanceError(f"{self._name} emits{where}{self._how} {found}")

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fault is not None:
            raise self._fault from None

    def _difference(self, output: str | None, batch: pa.RecordBatch) -> str | None:
        declared = self._schemas.get(output)
        if declared is None:
            return "rows, and declares no such output: name it in side_outputs()"
        found = _difference(batch, declared.schema, "output_schema()" if output is None else "side_outputs()")
        if found is not None:
            return found
        try:
            batch.validate(full=True)
        except pa.ArrowInvalid as error:
            return f"a batch that Arrow finds damaged: {error}"
        return None


def _difference(batch: pa.RecordBatch, declared: pa.Schema, method: str) -> str | None:
    names = batch.schema.names
    if names != declared.names:
        return (
            f"the columns {', '.join(names)}, but {method} declares {', '.join(declared.names)}: "
            "emit these, in this order"
        )
    for field, column in zip(declared, batch.columns, strict=True):
        if column.type != field.type:
            return (
                f"the column {field.name!r} as {column.type}, but {method} declares {field.type}: "
                "cast it, or declare it so"
            )
        if not field.nullable and column.null_count:
            return (
                f"null in the column {field.name!r}, which {method} declares as not nullable: "
                "declare it nullable, or emit a value"
            )
    return None
