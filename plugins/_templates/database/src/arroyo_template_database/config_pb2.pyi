from arroyo_core.proto import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class SinkConfig(_message.Message):
    __slots__ = ("path", "table", "mode", "keys", "deleted_column")
    PATH_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    DELETED_COLUMN_FIELD_NUMBER: _ClassVar[int]
    path: str
    table: str
    mode: str
    keys: _containers.RepeatedScalarFieldContainer[str]
    deleted_column: str
    def __init__(self, path: _Optional[str] = ..., table: _Optional[str] = ..., mode: _Optional[str] = ..., keys: _Optional[_Iterable[str]] = ..., deleted_column: _Optional[str] = ...) -> None: ...

class LookupConfig(_message.Message):
    __slots__ = ("path", "table")
    PATH_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    path: str
    table: str
    def __init__(self, path: _Optional[str] = ..., table: _Optional[str] = ...) -> None: ...
