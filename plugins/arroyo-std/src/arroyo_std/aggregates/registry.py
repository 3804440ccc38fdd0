"""The aggregate functions by name, and what each accepts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from arroyo_core.api import Registry
from arroyo_core.api.hashing import is_hashable
from arroyo_core.errors import ConfigError, PluginError
from arroyo_core.udf import AggregateUdf
from arroyo_std.aggregates.collected import CountDistinct, ListOf, Median, Recomputed
from arroyo_std.aggregates.function import Aggregate
from arroyo_std.aggregates.groups import Groups, Kernel
from arroyo_std.aggregates.moments import Moments
from arroyo_std.aggregates.ordered import Bitwise, Ordered
from arroyo_std.aggregates.simple import Count, Extreme, Mean, Sum
from arroyo_std.aggregates.sketches import ApproxCountDistinct, ApproxPercentile
from arroyo_std.aggregates.user import UserAggregate
from arroyo_std.columns import check_column, nearest, normal_type
from arroyo_std.fitting import check_arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateSpec:
    """One aggregate as the config has it. `field` is its path there, for errors."""

    function: str
    field: str
    column: str | None = None
    alias: str | None = None
    filter: str | None = None
    percentile: float | None = None
    other: str | None = None
    columns: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns it is computed of, however they are written."""
        return self.columns or tuple(each for each in (self.column, self.other) if each)

    @property
    def name(self) -> str:
        """The name of the result's column."""
        return self.alias or "_".join([self.function.replace(".", "_"), *self.inputs])

    def shown(self) -> str:
        """For people."""
        columns = ", ".join(self.inputs) or "*"
        percentile = f", {self.percentile}" if self.percentile is not None else ""
        return f"{self.function}({columns}{percentile})" + (f" where {self.filter}" if self.filter else "")


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What a function is bound to: the spec, and the plain types of its columns."""

    spec: AggregateSpec
    kinds: tuple[pa.DataType, ...]

    @property
    def column(self) -> str:
        assert self.spec.column is not None
        return self.spec.column


@dataclass(frozen=True, slots=True)
class _Columns:
    """Which columns a function takes: in words, and as a decision."""

    words: str
    is_accepted: Callable[[pa.DataType], bool]


_ANY = _Columns("any column", lambda kind: True)


@dataclass(frozen=True, slots=True)
class _Function:
    """How a function is made, and what of."""

    make: Callable[[_Inputs], Aggregate]
    columns: _Columns = _ANY
    needs_column: bool = True
    has_other: bool = False
    has_percentile: bool = False


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_value(kind: pa.DataType) -> bool:
    return is_hashable(kind) and not pa.types.is_struct(kind)


def _has_order(kind: pa.DataType) -> bool:
    """Whether pyarrow can compare such values group by group: asked of pyarrow itself."""
    try:
        Groups(_NO_CODES, 0).run([Kernel("min", pa.array([], kind))])
    except pa.ArrowNotImplementedError:
        return False
    return True


_NO_CODES = Groups.of_columns([], 0).codes
_NUMBERS = _Columns("a number", _is_number)
_BOOLEANS = _Columns("a boolean", pa.types.is_boolean)
_INTEGERS = _Columns("an integer", pa.types.is_integer)
_VALUES = _Columns("a column of plain values, neither list nor struct", _is_value)
_ORDERED = _Columns("a column of values with an order", _has_order)


def _extreme(kernel: str) -> Callable[[_Inputs], Aggregate]:
    return lambda inputs: Extreme(inputs.column, inputs.kinds[0], kernel=kernel)


def _ordered(is_last: bool) -> Callable[[_Inputs], Aggregate]:
    return lambda inputs: Ordered(inputs.column, inputs.kinds[0], is_last=is_last)


def _bitwise(inputs: _Inputs) -> Aggregate:
    return Bitwise(inputs.column, inputs.kinds[0], function=inputs.spec.function)


def _moments(inputs: _Inputs) -> Aggregate:
    columns = (inputs.column, *([inputs.spec.other] if inputs.spec.other else []))
    return Moments(columns, function=inputs.spec.function)


def _percentile(inputs: _Inputs) -> Aggregate:
    assert inputs.spec.percentile is not None
    return ApproxPercentile(inputs.column, percentile=inputs.spec.percentile)


FUNCTIONS: Mapping[str, _Function] = {
    "count": _Function(lambda inputs: Count(inputs.spec.column), needs_column=False),
    "sum": _Function(lambda inputs: Sum(inputs.column, inputs.kinds[0], label=inputs.spec.field), _NUMBERS),
    "min": _Function(_extreme("min"), _ORDERED),
    "max": _Function(_extreme("max"), _ORDERED),
    "mean": _Function(lambda inputs: Mean(inputs.column), _NUMBERS),
    "count_distinct": _Function(lambda inputs: CountDistinct(inputs.column, inputs.kinds[0]), _VALUES),
    "approx_count_distinct": _Function(lambda inputs: ApproxCountDistinct(inputs.column), _VALUES),
    **{name: _Function(_moments, _NUMBERS) for name in ("stddev_pop", "stddev_samp", "var_pop", "var_samp")},
    "first": _Function(_ordered(is_last=False)),
    "last": _Function(_ordered(is_last=True)),
    "any": _Function(_extreme("any"), _BOOLEANS),
    "all": _Function(_extreme("all"), _BOOLEANS),
    "list": _Function(lambda inputs: ListOf(inputs.column, inputs.kinds[0])),
    "median": _Function(lambda inputs: Median(inputs.column, inputs.kinds[0]), _NUMBERS),
    "approx_percentile": _Function(_percentile, _NUMBERS, has_percentile=True),
    **{name: _Function(_bitwise, _INTEGERS) for name in ("bit_and", "bit_or", "bit_xor")},
    **{name: _Function(_moments, _NUMBERS, has_other=True) for name in ("covar_pop", "covar_samp", "corr")},
}


def bind_aggregate(
    spec: AggregateSpec, schema: pa.Schema, registry: Registry, *, is_updating: bool = False
) -> Aggregate:
    """The function for columns of these types; for rows that may be taken back if `is_updating`.

    Raises `ConfigError` at the field that is wrong.
    """
    function, user_function = FUNCTIONS.get(spec.function), _user_function(spec, registry)
    if user_function is not None:
        return _bind_user_function(spec, user_function, schema, is_updating=is_updating)
    if function is None:
        names = sorted({*FUNCTIONS, *(each.name for each in registry.udfs.values() if isinstance(each, AggregateUdf))})
        raise ConfigError(
            f"no aggregate function {spec.function!r}",
            field=f"{spec.field}.function",
            value=spec.function,
            allowed=names,
            suggestion=nearest(spec.function, names),
        )
    _check_settings(spec, function)
    columns = [(spec.column, "column"), (spec.other, "other")]
    kinds = tuple(_column_type(spec, function, name, part, schema) for name, part in columns if name is not None)
    inputs = _Inputs(spec, kinds)
    bound = function.make(inputs)
    if not is_updating or bound.is_retractable:
        return bound
    if not all(_is_value(kind) for kind in kinds):
        raise ConfigError(
            f"{spec.function} cannot take back rows of an updating input; column {spec.column!r} is {kinds[0]}",
            field=f"{spec.field}.column",
            value=spec.column,
        )
    if spec.function == "approx_count_distinct":
        # Hashes cannot be taken back; the exact answer is as good.
        return bind_aggregate(replace(spec, function="count_distinct"), schema, registry, is_updating=True)
    return Recomputed(bound, [name for name, _ in columns if name is not None], kinds)


def _user_function(spec: AggregateSpec, registry: Registry) -> AggregateUdf | None:
    found = registry.find_udf(spec.function)
    if isinstance(found, AggregateUdf):
        if spec.function in FUNCTIONS:
            source = f" of {found.source}" if found.source else ""
            raise PluginError(f"UDF {found.name!r}{source} has the name of an aggregate of std: it needs another")
        return found
    if found is not None and spec.function not in FUNCTIONS:
        raise ConfigError(
            f"function {spec.function!r} is not an aggregate: use it in std.project in front, or in 'filter'",
            field=f"{spec.field}.function",
            value=spec.function,
        )
    return None


def _bind_user_function(
    spec: AggregateSpec, function: AggregateUdf, schema: pa.Schema, *, is_updating: bool
) -> Aggregate:
    if spec.percentile is not None:
        raise ConfigError(f"{spec.function} takes no 'percentile'", field=f"{spec.field}.percentile")
    if spec.columns and (spec.column or spec.other):
        raise ConfigError("'columns' and 'column' exclude each other", field=f"{spec.field}.columns")
    if spec.columns:
        fields = [f"{spec.field}.columns[{place}]" for place in range(len(spec.columns))]
    else:
        fields = [f"{spec.field}.{part}" for part, name in (("column", spec.column), ("other", spec.other)) if name]
    if not fields:
        raise ConfigError(f"{function.signature} needs 'column' or 'columns'", field=f"{spec.field}.function")
    check_arguments(function, spec.inputs, schema, fields=fields)
    bound = UserAggregate(function, spec.inputs)
    if not is_updating:
        return bound
    kinds = [normal_type(schema.field(name).type) for name in spec.inputs]
    for name, kind, field in zip(spec.inputs, kinds, fields, strict=True):
        if not _is_value(kind):
            raise ConfigError(
                f"{spec.function} cannot take back rows of an updating input; column {name!r} is {kind}",
                field=field,
                value=name,
            )
    return Recomputed(bound, spec.inputs, kinds)


def _check_settings(spec: AggregateSpec, function: _Function) -> None:
    if spec.columns:
        raise ConfigError(
            f"'columns' is for user functions; {spec.function} takes 'column'", field=f"{spec.field}.columns"
        )
    if spec.column is None and function.needs_column:
        raise ConfigError(f"{spec.function} needs a column", field=f"{spec.field}.column")
    if (spec.other is not None) != function.has_other:
        fault = "needs a second column" if function.has_other else "takes no second column"
        raise ConfigError(f"{spec.function} {fault}", field=f"{spec.field}.other", value=spec.other)
    if (spec.percentile is not None) != function.has_percentile:
        fault = "needs" if function.has_percentile else "takes no"
        raise ConfigError(
            f"{spec.function} {fault} 'percentile'", field=f"{spec.field}.percentile", value=spec.percentile
        )
    if spec.percentile is not None and not 0 <= spec.percentile <= 1:
        raise ConfigError(
            "a percentile lies between 0 and 1: 0.95 for the 95th",
            field=f"{spec.field}.percentile",
            value=spec.percentile,
        )


def _column_type(spec: AggregateSpec, function: _Function, name: str, part: str, schema: pa.Schema) -> pa.DataType:
    check_column(name, schema.names, field=f"{spec.field}.{part}")
    kind = normal_type(schema.field(name).type)
    if pa.types.is_float16(kind):
        kind = pa.float32()
    if not function.columns.is_accepted(kind):
        fitting = [each.name for each in schema if function.columns.is_accepted(normal_type(each.type))]
        raise ConfigError(
            f"{spec.function} takes {function.columns.words}; column {name!r} is {kind}",
            field=f"{spec.field}.{part}",
            value=name,
            allowed=fitting,
        )
    return kind
