from arroyo_core.proto import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OnError(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ON_ERROR_UNSPECIFIED: _ClassVar[OnError]
    fail: _ClassVar[OnError]
    null: _ClassVar[OnError]
    dead_letter: _ClassVar[OnError]

class OutputFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTPUT_FORMAT_UNSPECIFIED: _ClassVar[OutputFormat]
    json: _ClassVar[OutputFormat]
    csv: _ClassVar[OutputFormat]
    table: _ClassVar[OutputFormat]

class Late(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LATE_UNSPECIFIED: _ClassVar[Late]
    drop: _ClassVar[Late]
    side_output: _ClassVar[Late]

class WindowTime(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WINDOW_TIME_UNSPECIFIED: _ClassVar[WindowTime]
    event: _ClassVar[WindowTime]
    processing: _ClassVar[WindowTime]
ON_ERROR_UNSPECIFIED: OnError
fail: OnError
null: OnError
dead_letter: OnError
OUTPUT_FORMAT_UNSPECIFIED: OutputFormat
json: OutputFormat
csv: OutputFormat
table: OutputFormat
LATE_UNSPECIFIED: Late
drop: Late
side_output: Late
WINDOW_TIME_UNSPECIFIED: WindowTime
event: WindowTime
processing: WindowTime

class FilterConfig(_message.Message):
    __slots__ = ("predicate", "on_error")
    PREDICATE_FIELD_NUMBER: _ClassVar[int]
    ON_ERROR_FIELD_NUMBER: _ClassVar[int]
    predicate: str
    on_error: OnError
    def __init__(self, predicate: _Optional[str] = ..., on_error: _Optional[_Union[OnError, str]] = ...) -> None: ...

class NamedExpression(_message.Message):
    __slots__ = ("name", "sql")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SQL_FIELD_NUMBER: _ClassVar[int]
    name: str
    sql: str
    def __init__(self, name: _Optional[str] = ..., sql: _Optional[str] = ...) -> None: ...

class ProjectConfig(_message.Message):
    __slots__ = ("expressions", "keep", "drop", "on_error")
    EXPRESSIONS_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    DROP_FIELD_NUMBER: _ClassVar[int]
    ON_ERROR_FIELD_NUMBER: _ClassVar[int]
    expressions: _containers.RepeatedCompositeFieldContainer[NamedExpression]
    keep: _containers.RepeatedScalarFieldContainer[str]
    drop: _containers.RepeatedScalarFieldContainer[str]
    on_error: OnError
    def __init__(self, expressions: _Optional[_Iterable[_Union[NamedExpression, _Mapping]]] = ..., keep: _Optional[_Iterable[str]] = ..., drop: _Optional[_Iterable[str]] = ..., on_error: _Optional[_Union[OnError, str]] = ...) -> None: ...

class KeyByConfig(_message.Message):
    __slots__ = ("keys",)
    KEYS_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, keys: _Optional[_Iterable[str]] = ...) -> None: ...

class WatermarkConfig(_message.Message):
    __slots__ = ("column", "max_lateness", "expression", "period", "idle_time")
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    MAX_LATENESS_FIELD_NUMBER: _ClassVar[int]
    EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    IDLE_TIME_FIELD_NUMBER: _ClassVar[int]
    column: str
    max_lateness: int
    expression: str
    period: int
    idle_time: int
    def __init__(self, column: _Optional[str] = ..., max_lateness: _Optional[int] = ..., expression: _Optional[str] = ..., period: _Optional[int] = ..., idle_time: _Optional[int] = ...) -> None: ...

class UnionConfig(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class UnnestConfig(_message.Message):
    __slots__ = ("column", "outer", "ordinality")
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    AS_FIELD_NUMBER: _ClassVar[int]
    OUTER_FIELD_NUMBER: _ClassVar[int]
    ORDINALITY_FIELD_NUMBER: _ClassVar[int]
    column: str
    outer: bool
    ordinality: str
    def __init__(self, column: _Optional[str] = ..., outer: bool = ..., ordinality: _Optional[str] = ..., **kwargs) -> None: ...

class StdoutConfig(_message.Message):
    __slots__ = ("format", "limit", "max_cell_width", "at_once")
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    MAX_CELL_WIDTH_FIELD_NUMBER: _ClassVar[int]
    AT_ONCE_FIELD_NUMBER: _ClassVar[int]
    format: OutputFormat
    limit: int
    max_cell_width: int
    at_once: bool
    def __init__(self, format: _Optional[_Union[OutputFormat, str]] = ..., limit: _Optional[int] = ..., max_cell_width: _Optional[int] = ..., at_once: bool = ...) -> None: ...

class BlackholeConfig(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class OrderKey(_message.Message):
    __slots__ = ("column", "descending", "nulls_last")
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    DESCENDING_FIELD_NUMBER: _ClassVar[int]
    NULLS_LAST_FIELD_NUMBER: _ClassVar[int]
    column: str
    descending: bool
    nulls_last: bool
    def __init__(self, column: _Optional[str] = ..., descending: bool = ..., nulls_last: bool = ...) -> None: ...

class Aggregate(_message.Message):
    __slots__ = ("function", "column", "filter", "percentile", "other", "columns", "distinct", "order_by", "separator")
    class Function(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        count: _ClassVar[Aggregate.Function]
        sum: _ClassVar[Aggregate.Function]
        min: _ClassVar[Aggregate.Function]
        max: _ClassVar[Aggregate.Function]
        mean: _ClassVar[Aggregate.Function]
        count_distinct: _ClassVar[Aggregate.Function]
        approx_count_distinct: _ClassVar[Aggregate.Function]
        stddev_pop: _ClassVar[Aggregate.Function]
        stddev_samp: _ClassVar[Aggregate.Function]
        var_pop: _ClassVar[Aggregate.Function]
        var_samp: _ClassVar[Aggregate.Function]
        first: _ClassVar[Aggregate.Function]
        last: _ClassVar[Aggregate.Function]
        any: _ClassVar[Aggregate.Function]
        all: _ClassVar[Aggregate.Function]
        list: _ClassVar[Aggregate.Function]
        median: _ClassVar[Aggregate.Function]
        approx_percentile: _ClassVar[Aggregate.Function]
        bit_and: _ClassVar[Aggregate.Function]
        bit_or: _ClassVar[Aggregate.Function]
        bit_xor: _ClassVar[Aggregate.Function]
        covar_pop: _ClassVar[Aggregate.Function]
        covar_samp: _ClassVar[Aggregate.Function]
        corr: _ClassVar[Aggregate.Function]
        regr_slope: _ClassVar[Aggregate.Function]
        regr_intercept: _ClassVar[Aggregate.Function]
        regr_count: _ClassVar[Aggregate.Function]
        regr_r2: _ClassVar[Aggregate.Function]
        regr_avgx: _ClassVar[Aggregate.Function]
        regr_avgy: _ClassVar[Aggregate.Function]
        regr_sxx: _ClassVar[Aggregate.Function]
        regr_syy: _ClassVar[Aggregate.Function]
        regr_sxy: _ClassVar[Aggregate.Function]
        percentile_cont: _ClassVar[Aggregate.Function]
        approx_percentile_with_weight: _ClassVar[Aggregate.Function]
        string_agg: _ClassVar[Aggregate.Function]
    count: Aggregate.Function
    sum: Aggregate.Function
    min: Aggregate.Function
    max: Aggregate.Function
    mean: Aggregate.Function
    count_distinct: Aggregate.Function
    approx_count_distinct: Aggregate.Function
    stddev_pop: Aggregate.Function
    stddev_samp: Aggregate.Function
    var_pop: Aggregate.Function
    var_samp: Aggregate.Function
    first: Aggregate.Function
    last: Aggregate.Function
    any: Aggregate.Function
    all: Aggregate.Function
    list: Aggregate.Function
    median: Aggregate.Function
    approx_percentile: Aggregate.Function
    bit_and: Aggregate.Function
    bit_or: Aggregate.Function
    bit_xor: Aggregate.Function
    covar_pop: Aggregate.Function
    covar_samp: Aggregate.Function
    corr: Aggregate.Function
    regr_slope: Aggregate.Function
    regr_intercept: Aggregate.Function
    regr_count: Aggregate.Function
    regr_r2: Aggregate.Function
    regr_avgx: Aggregate.Function
    regr_avgy: Aggregate.Function
    regr_sxx: Aggregate.Function
    regr_syy: Aggregate.Function
    regr_sxy: Aggregate.Function
    percentile_cont: Aggregate.Function
    approx_percentile_with_weight: Aggregate.Function
    string_agg: Aggregate.Function
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    AS_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    PERCENTILE_FIELD_NUMBER: _ClassVar[int]
    OTHER_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    DISTINCT_FIELD_NUMBER: _ClassVar[int]
    ORDER_BY_FIELD_NUMBER: _ClassVar[int]
    SEPARATOR_FIELD_NUMBER: _ClassVar[int]
    function: str
    column: str
    filter: str
    percentile: float
    other: str
    columns: _containers.RepeatedScalarFieldContainer[str]
    distinct: bool
    order_by: _containers.RepeatedCompositeFieldContainer[OrderKey]
    separator: str
    def __init__(self, function: _Optional[str] = ..., column: _Optional[str] = ..., filter: _Optional[str] = ..., percentile: _Optional[float] = ..., other: _Optional[str] = ..., columns: _Optional[_Iterable[str]] = ..., distinct: bool = ..., order_by: _Optional[_Iterable[_Union[OrderKey, _Mapping]]] = ..., separator: _Optional[str] = ..., **kwargs) -> None: ...

class TumblingWindowConfig(_message.Message):
    __slots__ = ("size", "offset", "keys", "aggregates", "allowed_lateness", "late", "time", "early")
    SIZE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    AGGREGATES_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_LATENESS_FIELD_NUMBER: _ClassVar[int]
    LATE_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    EARLY_FIELD_NUMBER: _ClassVar[int]
    size: int
    offset: int
    keys: _containers.RepeatedScalarFieldContainer[str]
    aggregates: _containers.RepeatedCompositeFieldContainer[Aggregate]
    allowed_lateness: int
    late: Late
    time: WindowTime
    early: int
    def __init__(self, size: _Optional[int] = ..., offset: _Optional[int] = ..., keys: _Optional[_Iterable[str]] = ..., aggregates: _Optional[_Iterable[_Union[Aggregate, _Mapping]]] = ..., allowed_lateness: _Optional[int] = ..., late: _Optional[_Union[Late, str]] = ..., time: _Optional[_Union[WindowTime, str]] = ..., early: _Optional[int] = ...) -> None: ...

class SlidingWindowConfig(_message.Message):
    __slots__ = ("size", "slide", "keys", "aggregates", "allowed_lateness", "late", "time", "offset")
    SIZE_FIELD_NUMBER: _ClassVar[int]
    SLIDE_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    AGGREGATES_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_LATENESS_FIELD_NUMBER: _ClassVar[int]
    LATE_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    size: int
    slide: int
    keys: _containers.RepeatedScalarFieldContainer[str]
    aggregates: _containers.RepeatedCompositeFieldContainer[Aggregate]
    allowed_lateness: int
    late: Late
    time: WindowTime
    offset: int
    def __init__(self, size: _Optional[int] = ..., slide: _Optional[int] = ..., keys: _Optional[_Iterable[str]] = ..., aggregates: _Optional[_Iterable[_Union[Aggregate, _Mapping]]] = ..., allowed_lateness: _Optional[int] = ..., late: _Optional[_Union[Late, str]] = ..., time: _Optional[_Union[WindowTime, str]] = ..., offset: _Optional[int] = ...) -> None: ...

class AssignWindowConfig(_message.Message):
    __slots__ = ("size", "slide", "offset")
    SIZE_FIELD_NUMBER: _ClassVar[int]
    SLIDE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    size: int
    slide: int
    offset: int
    def __init__(self, size: _Optional[int] = ..., slide: _Optional[int] = ..., offset: _Optional[int] = ...) -> None: ...

class SessionWindowConfig(_message.Message):
    __slots__ = ("gap", "keys", "aggregates", "allowed_lateness", "late", "time")
    GAP_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    AGGREGATES_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_LATENESS_FIELD_NUMBER: _ClassVar[int]
    LATE_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    gap: int
    keys: _containers.RepeatedScalarFieldContainer[str]
    aggregates: _containers.RepeatedCompositeFieldContainer[Aggregate]
    allowed_lateness: int
    late: Late
    time: WindowTime
    def __init__(self, gap: _Optional[int] = ..., keys: _Optional[_Iterable[str]] = ..., aggregates: _Optional[_Iterable[_Union[Aggregate, _Mapping]]] = ..., allowed_lateness: _Optional[int] = ..., late: _Optional[_Union[Late, str]] = ..., time: _Optional[_Union[WindowTime, str]] = ...) -> None: ...

class UpdatingAggregateConfig(_message.Message):
    __slots__ = ("keys", "aggregates", "ttl", "flush_interval", "empty_group")
    KEYS_FIELD_NUMBER: _ClassVar[int]
    AGGREGATES_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    FLUSH_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    EMPTY_GROUP_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedScalarFieldContainer[str]
    aggregates: _containers.RepeatedCompositeFieldContainer[Aggregate]
    ttl: int
    flush_interval: int
    empty_group: bool
    def __init__(self, keys: _Optional[_Iterable[str]] = ..., aggregates: _Optional[_Iterable[_Union[Aggregate, _Mapping]]] = ..., ttl: _Optional[int] = ..., flush_interval: _Optional[int] = ..., empty_group: bool = ...) -> None: ...
