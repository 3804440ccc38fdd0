"""`std.project`: computes, keeps, drops and orders columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import pyarrow as pa

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    DisplayableOperator,
    OperatorContext,
    Registry,
)
from arroyo_core.api.updating import UPDATING_META
from arroyo_core.errors import ConfigError
from arroyo_std.columns import check_column, check_unique, derive_stream
from arroyo_std.on_error import OnError, RowErrors
from arroyo_std.sql import CompiledExpressions, Expression, check_expressions, compile_expressions


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copied:
    """An output column that is an input column."""

    name: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Computed:
    """An output column that an expression computes."""

    name: str
    expression: Expression


_Column = _Copied | _Computed


class Project(ArrowOperator):
    """Makes each output column from the columns of one input row.

    A column that is copied, also under another name, stays what it was to the stream: its event
    time, or one of its keys.
    """

    def __init__(
        self,
        expressions: Sequence[tuple[str, str]],
        *,
        keep: Sequence[str],
        drop: Sequence[str],
        registry: Registry,
        on_error: OnError = OnError.FAIL,
    ) -> None:
        self._expressions = [Expression(name=name, sql=sql, field=f"expressions.{name}") for name, sql in expressions]
        self._keep = keep
        self._drop = drop
        self._registry = registry
        self._errors = RowErrors(on_error)

    def name(self) -> str:
        return "std.project"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        stream = inputs[0]
        self._check_names(stream.names)
        computed: pa.Schema = pa.schema([])
        copies_of: Mapping[str, str] = {}
        if self._expressions:
            checked = check_expressions(self._expressions, stream.schema, self._registry)
            computed, copies_of = checked.schema, checked.copies
        columns = self._columns(stream.names, copies_of)
        if not columns:
            raise ConfigError("no column is left", field="drop", value=list(self._drop))
        schema = pa.schema([_field(column, stream.schema, computed) for column in columns])
        copies = {column.name: column.source for column in columns if isinstance(column, _Copied)}
        return derive_stream(stream, schema, copies)

    def side_outputs(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, ArroyoSchema]:
        return self._errors.side_outputs(inputs[0])

    def needed_columns(self, inputs: Sequence[ArroyoSchema], needed: Set[str]) -> Sequence[Set[str] | None]:
        """All that it computes, needed or not: a row that an expression cannot compute fails the pipeline either way.

        Where it is told what to drop, only the columns that somebody needs stay.
        """
        if self._errors.keeps_rows:
            return [None]
        names = inputs[0].names
        compiled = self._compile(self._expressions, inputs[0].schema)
        computed = compiled.columns if compiled else frozenset()
        copied = {column.source for column in self._columns(names, {}) if isinstance(column, _Copied)}
        staying = copied if self._keep else copied & needed
        return [computed | staying | set(self._drop) | ({UPDATING_META} & set(names))]

    def display(self) -> DisplayableOperator:
        fields = [(label, ", ".join(names)) for label, names in (("keep", self._keep), ("drop", self._drop)) if names]
        computed = [(each.name, each.sql) for each in self._expressions]
        return DisplayableOperator(self.name(), [*fields, *computed, *self._errors.display()])

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        schema = ctx.input_schemas[0].schema
        self._compiled = self._compile(self._expressions, schema)
        copies_of: Mapping[str, str] = self._compiled.copies if self._compiled else {}
        self._output_columns = self._columns(schema.names, copies_of)
        if copies_of:
            # Copies are taken from the batch as they are; SQL need not see them.
            computed = [column.expression for column in self._output_columns if isinstance(column, _Computed)]
            self._compiled = self._compile(computed, schema)
        self._output_schema = ctx.output_schema.schema

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        if self._compiled is None:
            collector.collect(self._output(batch, None))
            return
        compiled = self._compiled
        outcomes = self._errors.compute(
            batch,
            compiled.evaluate,
            ctx,
            collector,
            collect=compiled.evaluate_collecting,
            apart=compiled.evaluate_apart,
        )
        for outcome in outcomes:
            if outcome.result is not None:
                collector.collect(self._output(outcome.rows, outcome.result))
            elif not self._errors.keeps_rows:
                collector.collect(self._output(outcome.rows, compiled.evaluate_apart(outcome.rows)))

    def _output(self, batch: pa.RecordBatch, computed: pa.RecordBatch | None) -> pa.RecordBatch:
        arrays = []
        for column in self._output_columns:
            if isinstance(column, _Copied):
                arrays.append(batch.column(column.source))
            elif computed is not None:
                arrays.append(computed.column(column.name))
        return pa.RecordBatch.from_arrays(arrays, schema=self._output_schema)

    def _compile(self, expressions: Sequence[Expression], schema: pa.Schema) -> CompiledExpressions | None:
        return compile_expressions(expressions, schema, self._registry) if expressions else None

    def _check_names(self, names: Sequence[str]) -> None:
        for field, listed in (("keep", self._keep), ("drop", self._drop)):
            for position, name in enumerate(listed):
                check_column(name, names, field=f"{field}[{position}]")
            check_unique(listed, field=field)
        seen: set[str] = set()
        for expression in self._expressions:
            if not expression.name:
                raise ConfigError("an expression needs a name", field="expressions", value=expression.sql)
            if expression.name in seen:
                raise ConfigError(f"column {expression.name!r} is computed twice", field=expression.field)
            seen.add(expression.name)

    def _columns(self, names: Sequence[str], copies_of: Mapping[str, str]) -> list[_Column]:
        """The output in order: the columns that stay, then the expressions that replace none of them.

        `copies_of` tells which expressions are nothing but a column.
        """
        staying = self._keep or ([name for name in names if name not in self._drop] if self._drop else [])
        if UPDATING_META in names and UPDATING_META not in staying:
            # Without it, rows that are taken back would count as added.
            staying = [*staying, UPDATING_META]
        columns: dict[str, _Column] = {name: _Copied(name=name, source=name) for name in staying}
        for expression in self._expressions:
            source = copies_of.get(expression.name)
            columns[expression.name] = (
                _Copied(name=expression.name, source=source)
                if source is not None
                else _Computed(name=expression.name, expression=expression)
            )
        return list(columns.values())


def _field(column: _Column, inputs: pa.Schema, computed: pa.Schema) -> pa.Field:
    if isinstance(column, _Copied):
        return inputs.field(column.source).with_name(column.name)
    return computed.field(column.name)
