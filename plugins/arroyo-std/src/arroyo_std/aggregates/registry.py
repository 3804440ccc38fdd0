"""The aggregate functions by name, and what each accepts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

import pyarrow as pa

from arroyo_core.api import Registry
from arroyo_core.api.hashing import is_hashable
from arroyo_core.errors import ConfigError, PluginError
from arroyo_core.udf import AggregateUdf
from arroyo_std.aggregates.collected import CountDistinct, ListOf, Percentile, Recomputed
from arroyo_std.aggregates.function import Aggregate
from arroyo_std.aggregates.groups import Groups, Kernel
from arroyo_std.aggregates.in_order import JoinedTexts, OrderedList, Outermost
from arroyo_std.aggregates.moments import Moments
from arroyo_std.aggregates.ordered import Bitwise, Ordered
from arroyo_std.aggregates.simple import Count, Extreme, Mean, Sum
from arroyo_std.aggregates.sketches import ApproxCountDistinct, ApproxPercentile, ApproxWeightedPercentile
from arroyo_std.aggregates.user import UserAggregate
from arroyo_std.columns import check_column, nearest, normal_type
from arroyo_std.fitting import check_arguments
from arroyo_std.ranking import OrderBy
from arroyo_std.row_values import is_nested


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
    is_distinct: bool = False
    order_by: tuple[OrderBy, ...] = ()
    separator: str | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns it is computed of, however they are written."""
        return self.columns or tuple(each for each in (self.column, self.other) if each)

    @property
    def read(self) -> tuple[str, ...]:
        """The columns of rows that it reads, for its values or for their order."""
        return (*self.inputs, *(each.column for each in self.order_by))

    @property
    def name(self) -> str:
        """The name of the result's column."""
        distinct = ["distinct"] if self.is_distinct else []
        return self.alias or "_".join([self.function.replace(".", "_"), *distinct, *self.inputs])

    def shown(self) -> str:
        """For people."""
        columns = ("distinct " if self.is_distinct else "") + (", ".join(self.inputs) or "*")
        percentile = f", {self.percentile}" if self.percentile is not None else ""
        separator = f", {self.separator!r}" if self.separator is not None else ""
        order = f" order by {', '.join(each.shown() for each in self.order_by)}" if self.order_by else ""
        return f"{self.function}({columns}{percentile}{separator}{order})" + (
            f" where {self.filter}" if self.filter else ""
        )


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What a function is bound to: the spec, and the plain types of its columns and of those of its order."""

    spec: AggregateSpec
    kinds: tuple[pa.DataType, ...]
    order_kinds: tuple[pa.DataType, ...] = ()

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


class Distinct(Enum):
    """What `distinct` means to a function."""

    #: It cannot be asked for.
    NONE = auto()
    #: Equal values count once.
    ONCE = auto()
    #: It makes no difference.
    SAME = auto()


@dataclass(frozen=True, slots=True)
class _Function:
    """How a function is made, and what of."""

    make: Callable[[_Inputs], Aggregate]
    columns: _Columns = _ANY
    needs_column: bool = True
    has_other: bool = False
    has_percentile: bool = False
    has_order: bool = False
    has_separator: bool = False
    distinct: Distinct = Distinct.NONE


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
_TEXTS = _Columns("a text", lambda kind: bool(pa.types.is_string(kind) or pa.types.is_large_string(kind)))
_INTEGERS = _Columns("an integer", pa.types.is_integer)
_VALUES = _Columns("a column of plain values, neither list nor struct", _is_value)
_ORDERED = _Columns("a column of values with an order", _has_order)


def _extreme(kernel: str) -> Callable[[_Inputs], Aggregate]:
    return lambda inputs: Extreme(inputs.column, inputs.kinds[0], kernel=kernel)


def _ordered(is_last: bool) -> Callable[[_Inputs], Aggregate]:
    def make(inputs: _Inputs) -> Aggregate:
        column, kind, order_by = inputs.column, inputs.kinds[0], inputs.spec.order_by
        if order_by:
            return Outermost(column, kind, order_by, inputs.order_kinds, is_last=is_last)
        return Ordered(column, kind, is_last=is_last)

    return make


def _bitwise(inputs: _Inputs) -> Aggregate:
    return Bitwise(inputs.column, inputs.kinds[0], function=inputs.spec.function)


def _moments(inputs: _Inputs) -> Aggregate:
    columns = (inputs.column, *([inputs.spec.other] if inputs.spec.other else []))
    return Moments(columns, function=inputs.spec.function)


def _approx_percentile(inputs: _Inputs) -> Aggregate:
    assert inputs.spec.percentile is not None
    if inputs.spec.other is not None:
        return ApproxWeightedPercentile(inputs.column, inputs.spec.other, percentile=inputs.spec.percentile)
    return ApproxPercentile(inputs.column, percentile=inputs.spec.percentile)


def _percentile(inputs: _Inputs) -> Aggregate:
    percentile = 0.5 if inputs.spec.percentile is None else inputs.spec.percentile
    return Percentile(inputs.column, inputs.kinds[0], percentile=percentile)


def _list(inputs: _Inputs) -> Aggregate:
    if not inputs.spec.order_by:
        return ListOf(inputs.column, inputs.kinds[0])
    return OrderedList(inputs.column, inputs.kinds[0], inputs.spec.order_by, inputs.order_kinds)


def _joined_texts(inputs: _Inputs) -> Aggregate:
    separator = "," if inputs.spec.separator is None else inputs.spec.separator
    order_by, order_kinds = inputs.spec.order_by, inputs.order_kinds
    return JoinedTexts(inputs.column, inputs.kinds[0], order_by, order_kinds, separator=separator)


def _sum(inputs: _Inputs) -> Aggregate:
    return Sum(inputs.column, inputs.kinds[0], label=inputs.spec.field)


_ONCE, _SAME = Distinct.ONCE, Distinct.SAME
_SPREADS = ("stddev_pop", "stddev_samp", "var_pop", "var_samp")
_PAIRS = ("covar_pop", "covar_samp", "corr")
_REGRESSIONS = tuple(
    f"regr_{part}" for part in ("slope", "intercept", "count", "r2", "avgx", "avgy", "sxx", "syy", "sxy")
)

FUNCTIONS: Mapping[str, _Function] = {
    "count": _Function(lambda inputs: Count(inputs.spec.column), needs_column=False, distinct=_ONCE),
    "sum": _Function(_sum, _NUMBERS, distinct=_ONCE),
    "min": _Function(_extreme("min"), _ORDERED, distinct=_SAME),
    "max": _Function(_extreme("max"), _ORDERED, distinct=_SAME),
    "mean": _Function(lambda inputs: Mean(inputs.column), _NUMBERS, distinct=_ONCE),
    "count_distinct": _Function(lambda inputs: CountDistinct(inputs.column, inputs.kinds[0]), _VALUES, distinct=_SAME),
    "approx_count_distinct": _Function(lambda inputs: ApproxCountDistinct(inputs.column), _VALUES, distinct=_SAME),
    **{name: _Function(_moments, _NUMBERS, distinct=_ONCE) for name in _SPREADS},
    "first": _Function(_ordered(is_last=False), has_order=True),
    "last": _Function(_ordered(is_last=True), has_order=True),
    "any": _Function(_extreme("any"), _BOOLEANS, distinct=_SAME),
    "all": _Function(_extreme("all"), _BOOLEANS, distinct=_SAME),
    "list": _Function(_list, has_order=True, distinct=_ONCE),
    "string_agg": _Function(_joined_texts, _TEXTS, has_order=True, has_separator=True, distinct=_ONCE),
    "median": _Function(_percentile, _NUMBERS, distinct=_ONCE),
    "percentile_cont": _Function(_percentile, _NUMBERS, has_percentile=True, distinct=_ONCE),
    "approx_percentile": _Function(_approx_percentile, _NUMBERS, has_percentile=True),
    "approx_percentile_with_weight": _Function(_approx_percentile, _NUMBERS, has_other=True, has_percentile=True),
    "bit_and": _Function(_bitwise, _INTEGERS, distinct=_SAME),
    "bit_or": _Function(_bitwise, _INTEGERS, distinct=_SAME),
    "bit_xor": _Function(_bitwise, _INTEGERS, distinct=_ONCE),
    **{name: _Function(_moments, _NUMBERS, has_other=True) for name in (*_PAIRS, *_REGRESSIONS)},
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
    if spec.is_distinct and spec.function == "count":
        spec = replace(spec, function="count_distinct", alias=spec.name)
        return bind_aggregate(spec, schema, registry, is_updating=is_updating)
    columns = [(spec.column, "column"), (spec.other, "other")]
    kinds = tuple(_column_type(spec, function, name, part, schema) for name, part in columns if name is not None)
    inputs = _Inputs(spec, kinds, _order_kinds(spec, schema))
    bound = function.make(inputs)
    names = [name for name, _ in columns if name is not None]
    if spec.is_distinct and function.distinct is Distinct.ONCE:
        _check_values(spec, kinds, "cannot tell which values are equal")
        return Recomputed(bound, names, kinds, is_distinct=True)
    if not is_updating or bound.is_retractable:
        return bound
    _check_values(spec, kinds, "cannot take back rows of an updating input")
    if spec.function == "approx_count_distinct":
        # Hashes cannot be taken back; the exact answer is as good.
        return bind_aggregate(replace(spec, function="count_distinct"), schema, registry, is_updating=True)
    orders = {
        each.column: kind
        for each, kind in zip(spec.order_by, inputs.order_kinds, strict=True)
        if each.column not in names
    }
    return Recomputed(bound, [*names, *orders], [*kinds, *orders.values()])


def _check_values(spec: AggregateSpec, kinds: Sequence[pa.DataType], fault: str) -> None:
    if not all(_is_value(kind) for kind in kinds):
        raise ConfigError(
            f"{spec.function} {fault}; column {spec.column!r} is {kinds[0]}",
            field=f"{spec.field}.column",
            value=spec.column,
        )


def _order_kinds(spec: AggregateSpec, schema: pa.Schema) -> tuple[pa.DataType, ...]:
    """The types of the columns of the order; raises `ConfigError` at one that is not there, or that has no order."""
    for each in spec.order_by:
        check_column(each.column, schema.names, field=f"{each.field}.column")
        if is_nested(schema.field(each.column).type):
            raise ConfigError("lists and maps have no order", field=f"{each.field}.column", value=each.column)
        if spec.is_distinct and each.column != spec.column:
            raise ConfigError(
                f"distinct values can be ordered by nothing but themselves: {spec.column!r}",
                field=f"{each.field}.column",
                value=each.column,
            )
    return tuple(normal_type(schema.field(each.column).type) for each in spec.order_by)


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
    settings = {
        "percentile": spec.percentile is not None,
        "distinct": spec.is_distinct,
        "order_by": bool(spec.order_by),
        "separator": spec.separator is not None,
    }
    for setting in [name for name, is_given in settings.items() if is_given]:
        raise ConfigError(f"{spec.function} takes no {setting!r}", field=f"{spec.field}.{setting}")
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
    if spec.order_by and not function.has_order:
        raise ConfigError(f"{spec.function} takes no 'order_by'", field=f"{spec.field}.order_by")
    if spec.separator is not None and not function.has_separator:
        raise ConfigError(f"{spec.function} takes no 'separator'", field=f"{spec.field}.separator")
    if spec.is_distinct and function.distinct is Distinct.NONE:
        raise ConfigError(f"{spec.function} takes no 'distinct'", field=f"{spec.field}.distinct")
    if spec.is_distinct and spec.column is None:
        raise ConfigError("rows are not compared: 'distinct' needs a column", field=f"{spec.field}.column")
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
