from arroyo_core.proto import options_pb2 as _options_pb2
from arroyo_std import std_pb2 as _std_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MapBatchesConfig(_message.Message):
    __slots__ = ("function", "on_error")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    ON_ERROR_FIELD_NUMBER: _ClassVar[int]
    function: str
    on_error: _std_pb2.OnError
    def __init__(self, function: _Optional[str] = ..., on_error: _Optional[_Union[_std_pb2.OnError, str]] = ...) -> None: ...

class AsyncUdfConfig(_message.Message):
    __slots__ = ("function", "arguments", "concurrency", "timeout", "retries", "backoff", "ordered", "on_error")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    AS_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    RETRIES_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_FIELD_NUMBER: _ClassVar[int]
    ORDERED_FIELD_NUMBER: _ClassVar[int]
    ON_ERROR_FIELD_NUMBER: _ClassVar[int]
    function: str
    arguments: _containers.RepeatedScalarFieldContainer[str]
    concurrency: int
    timeout: int
    retries: int
    backoff: int
    ordered: bool
    on_error: _std_pb2.OnError
    def __init__(self, function: _Optional[str] = ..., arguments: _Optional[_Iterable[str]] = ..., concurrency: _Optional[int] = ..., timeout: _Optional[int] = ..., retries: _Optional[int] = ..., backoff: _Optional[int] = ..., ordered: bool = ..., on_error: _Optional[_Union[_std_pb2.OnError, str]] = ..., **kwargs) -> None: ...
