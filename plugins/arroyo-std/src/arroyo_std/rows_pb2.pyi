from arroyo_core.proto import options_pb2 as _options_pb2
from arroyo_std import std_pb2 as _std_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Keep(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KEEP_UNSPECIFIED: _ClassVar[Keep]
    first: _ClassVar[Keep]
    last: _ClassVar[Keep]

class NeighborFunction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NEIGHBOR_FUNCTION_UNSPECIFIED: _ClassVar[NeighborFunction]
    lag: _ClassVar[NeighborFunction]
    lead: _ClassVar[NeighborFunction]
KEEP_UNSPECIFIED: Keep
first: Keep
last: Keep
NEIGHBOR_FUNCTION_UNSPECIFIED: NeighborFunction
lag: NeighborFunction
lead: NeighborFunction

class DeduplicateConfig(_message.Message):
    __slots__ = ("keys", "keep", "ttl")
    KEYS_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedScalarFieldContainer[str]
    keep: Keep
    ttl: int
    def __init__(self, keys: _Optional[_Iterable[str]] = ..., keep: _Optional[_Union[Keep, str]] = ..., ttl: _Optional[int] = ...) -> None: ...

class TopNConfig(_message.Message):
    __slots__ = ("n", "partition_by", "order_by", "rank_column", "ties")
    N_FIELD_NUMBER: _ClassVar[int]
    PARTITION_BY_FIELD_NUMBER: _ClassVar[int]
    ORDER_BY_FIELD_NUMBER: _ClassVar[int]
    RANK_COLUMN_FIELD_NUMBER: _ClassVar[int]
    TIES_FIELD_NUMBER: _ClassVar[int]
    n: int
    partition_by: _containers.RepeatedScalarFieldContainer[str]
    order_by: _containers.RepeatedCompositeFieldContainer[_std_pb2.OrderKey]
    rank_column: str
    ties: bool
    def __init__(self, n: _Optional[int] = ..., partition_by: _Optional[_Iterable[str]] = ..., order_by: _Optional[_Iterable[_Union[_std_pb2.OrderKey, _Mapping]]] = ..., rank_column: _Optional[str] = ..., ties: bool = ...) -> None: ...

class WindowFunctionConfig(_message.Message):
    __slots__ = ("expression", "expressions")
    EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    AS_FIELD_NUMBER: _ClassVar[int]
    EXPRESSIONS_FIELD_NUMBER: _ClassVar[int]
    expression: str
    expressions: _containers.RepeatedCompositeFieldContainer[_std_pb2.NamedExpression]
    def __init__(self, expression: _Optional[str] = ..., expressions: _Optional[_Iterable[_Union[_std_pb2.NamedExpression, _Mapping]]] = ..., **kwargs) -> None: ...

class NeighborsConfig(_message.Message):
    __slots__ = ("keys", "order_by", "values", "ttl")
    KEYS_FIELD_NUMBER: _ClassVar[int]
    ORDER_BY_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedScalarFieldContainer[str]
    order_by: _containers.RepeatedCompositeFieldContainer[_std_pb2.OrderKey]
    values: _containers.RepeatedCompositeFieldContainer[NeighborValue]
    ttl: int
    def __init__(self, keys: _Optional[_Iterable[str]] = ..., order_by: _Optional[_Iterable[_Union[_std_pb2.OrderKey, _Mapping]]] = ..., values: _Optional[_Iterable[_Union[NeighborValue, _Mapping]]] = ..., ttl: _Optional[int] = ...) -> None: ...

class NeighborValue(_message.Message):
    __slots__ = ("function", "column", "offset", "default")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_FIELD_NUMBER: _ClassVar[int]
    AS_FIELD_NUMBER: _ClassVar[int]
    function: NeighborFunction
    column: str
    offset: int
    default: str
    def __init__(self, function: _Optional[_Union[NeighborFunction, str]] = ..., column: _Optional[str] = ..., offset: _Optional[int] = ..., default: _Optional[str] = ..., **kwargs) -> None: ...

class SqlConfig(_message.Message):
    __slots__ = ("query",)
    QUERY_FIELD_NUMBER: _ClassVar[int]
    query: str
    def __init__(self, query: _Optional[str] = ...) -> None: ...

class ProcessConfig(_message.Message):
    __slots__ = ("function", "arguments", "keys")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    function: str
    arguments: _struct_pb2.Struct
    keys: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, function: _Optional[str] = ..., arguments: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., keys: _Optional[_Iterable[str]] = ...) -> None: ...

class UpsertConfig(_message.Message):
    __slots__ = ("keys", "deleted_column")
    KEYS_FIELD_NUMBER: _ClassVar[int]
    DELETED_COLUMN_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedScalarFieldContainer[str]
    deleted_column: str
    def __init__(self, keys: _Optional[_Iterable[str]] = ..., deleted_column: _Optional[str] = ...) -> None: ...
