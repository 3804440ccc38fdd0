from arroyo_core.proto import options_pb2 as _options_pb2
from arroyo_std import std_pb2 as _std_pb2
from google.protobuf import any_pb2 as _any_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JoinType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOIN_TYPE_UNSPECIFIED: _ClassVar[JoinType]
    inner: _ClassVar[JoinType]
    left: _ClassVar[JoinType]
    right: _ClassVar[JoinType]
    full: _ClassVar[JoinType]
    semi: _ClassVar[JoinType]
    anti: _ClassVar[JoinType]

class AsofDirection(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ASOF_DIRECTION_UNSPECIFIED: _ClassVar[AsofDirection]
    backward: _ClassVar[AsofDirection]
    forward: _ClassVar[AsofDirection]
JOIN_TYPE_UNSPECIFIED: JoinType
inner: JoinType
left: JoinType
right: JoinType
full: JoinType
semi: JoinType
anti: JoinType
ASOF_DIRECTION_UNSPECIFIED: AsofDirection
backward: AsofDirection
forward: AsofDirection

class JoinKey(_message.Message):
    __slots__ = ("left", "right")
    LEFT_FIELD_NUMBER: _ClassVar[int]
    RIGHT_FIELD_NUMBER: _ClassVar[int]
    left: str
    right: str
    def __init__(self, left: _Optional[str] = ..., right: _Optional[str] = ...) -> None: ...

class JoinPrefixes(_message.Message):
    __slots__ = ("left", "right")
    LEFT_FIELD_NUMBER: _ClassVar[int]
    RIGHT_FIELD_NUMBER: _ClassVar[int]
    left: str
    right: str
    def __init__(self, left: _Optional[str] = ..., right: _Optional[str] = ...) -> None: ...

class WindowJoinConfig(_message.Message):
    __slots__ = ("type", "on", "size", "offset", "allowed_lateness", "late", "prefixes", "condition")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ON_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_LATENESS_FIELD_NUMBER: _ClassVar[int]
    LATE_FIELD_NUMBER: _ClassVar[int]
    PREFIXES_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    type: JoinType
    on: _containers.RepeatedCompositeFieldContainer[JoinKey]
    size: int
    offset: int
    allowed_lateness: int
    late: _std_pb2.Late
    prefixes: JoinPrefixes
    condition: str
    def __init__(self, type: _Optional[_Union[JoinType, str]] = ..., on: _Optional[_Iterable[_Union[JoinKey, _Mapping]]] = ..., size: _Optional[int] = ..., offset: _Optional[int] = ..., allowed_lateness: _Optional[int] = ..., late: _Optional[_Union[_std_pb2.Late, str]] = ..., prefixes: _Optional[_Union[JoinPrefixes, _Mapping]] = ..., condition: _Optional[str] = ...) -> None: ...

class JoinConfig(_message.Message):
    __slots__ = ("type", "on", "ttl", "late", "prefixes", "time_column", "condition")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ON_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    LATE_FIELD_NUMBER: _ClassVar[int]
    PREFIXES_FIELD_NUMBER: _ClassVar[int]
    TIME_COLUMN_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    type: JoinType
    on: _containers.RepeatedCompositeFieldContainer[JoinKey]
    ttl: int
    late: _std_pb2.Late
    prefixes: JoinPrefixes
    time_column: str
    condition: str
    def __init__(self, type: _Optional[_Union[JoinType, str]] = ..., on: _Optional[_Iterable[_Union[JoinKey, _Mapping]]] = ..., ttl: _Optional[int] = ..., late: _Optional[_Union[_std_pb2.Late, str]] = ..., prefixes: _Optional[_Union[JoinPrefixes, _Mapping]] = ..., time_column: _Optional[str] = ..., condition: _Optional[str] = ...) -> None: ...

class IntervalJoinConfig(_message.Message):
    __slots__ = ("type", "on", "lower", "upper", "late", "prefixes", "time_column", "condition")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ON_FIELD_NUMBER: _ClassVar[int]
    LOWER_FIELD_NUMBER: _ClassVar[int]
    UPPER_FIELD_NUMBER: _ClassVar[int]
    LATE_FIELD_NUMBER: _ClassVar[int]
    PREFIXES_FIELD_NUMBER: _ClassVar[int]
    TIME_COLUMN_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    type: JoinType
    on: _containers.RepeatedCompositeFieldContainer[JoinKey]
    lower: str
    upper: str
    late: _std_pb2.Late
    prefixes: JoinPrefixes
    time_column: str
    condition: str
    def __init__(self, type: _Optional[_Union[JoinType, str]] = ..., on: _Optional[_Iterable[_Union[JoinKey, _Mapping]]] = ..., lower: _Optional[str] = ..., upper: _Optional[str] = ..., late: _Optional[_Union[_std_pb2.Late, str]] = ..., prefixes: _Optional[_Union[JoinPrefixes, _Mapping]] = ..., time_column: _Optional[str] = ..., condition: _Optional[str] = ...) -> None: ...

class AsofJoinConfig(_message.Message):
    __slots__ = ("on", "tolerance", "direction", "type", "late", "prefixes")
    ON_FIELD_NUMBER: _ClassVar[int]
    TOLERANCE_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    LATE_FIELD_NUMBER: _ClassVar[int]
    PREFIXES_FIELD_NUMBER: _ClassVar[int]
    on: _containers.RepeatedCompositeFieldContainer[JoinKey]
    tolerance: int
    direction: AsofDirection
    type: JoinType
    late: _std_pb2.Late
    prefixes: JoinPrefixes
    def __init__(self, on: _Optional[_Iterable[_Union[JoinKey, _Mapping]]] = ..., tolerance: _Optional[int] = ..., direction: _Optional[_Union[AsofDirection, str]] = ..., type: _Optional[_Union[JoinType, str]] = ..., late: _Optional[_Union[_std_pb2.Late, str]] = ..., prefixes: _Optional[_Union[JoinPrefixes, _Mapping]] = ...) -> None: ...

class LookupTable(_message.Message):
    __slots__ = ("path", "format", "storage_options", "columns", "lookup", "config", "empty_as_text")
    class Format(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        FORMAT_UNSPECIFIED: _ClassVar[LookupTable.Format]
        parquet: _ClassVar[LookupTable.Format]
        csv: _ClassVar[LookupTable.Format]
        json: _ClassVar[LookupTable.Format]
    FORMAT_UNSPECIFIED: LookupTable.Format
    parquet: LookupTable.Format
    csv: LookupTable.Format
    json: LookupTable.Format
    class StorageOptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PATH_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    STORAGE_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    LOOKUP_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    EMPTY_AS_TEXT_FIELD_NUMBER: _ClassVar[int]
    path: str
    format: LookupTable.Format
    storage_options: _containers.ScalarMap[str, str]
    columns: _containers.RepeatedScalarFieldContainer[str]
    lookup: str
    config: _any_pb2.Any
    empty_as_text: bool
    def __init__(self, path: _Optional[str] = ..., format: _Optional[_Union[LookupTable.Format, str]] = ..., storage_options: _Optional[_Mapping[str, str]] = ..., columns: _Optional[_Iterable[str]] = ..., lookup: _Optional[str] = ..., config: _Optional[_Union[_any_pb2.Any, _Mapping]] = ..., empty_as_text: bool = ...) -> None: ...

class LookupCache(_message.Message):
    __slots__ = ("max_bytes", "ttl")
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    max_bytes: int
    ttl: int
    def __init__(self, max_bytes: _Optional[int] = ..., ttl: _Optional[int] = ...) -> None: ...

class LookupJoinConfig(_message.Message):
    __slots__ = ("table", "on", "type", "cache", "prefixes", "condition")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    ON_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    CACHE_FIELD_NUMBER: _ClassVar[int]
    PREFIXES_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    table: LookupTable
    on: _containers.RepeatedCompositeFieldContainer[JoinKey]
    type: JoinType
    cache: LookupCache
    prefixes: JoinPrefixes
    condition: str
    def __init__(self, table: _Optional[_Union[LookupTable, _Mapping]] = ..., on: _Optional[_Iterable[_Union[JoinKey, _Mapping]]] = ..., type: _Optional[_Union[JoinType, str]] = ..., cache: _Optional[_Union[LookupCache, _Mapping]] = ..., prefixes: _Optional[_Union[JoinPrefixes, _Mapping]] = ..., condition: _Optional[str] = ...) -> None: ...
