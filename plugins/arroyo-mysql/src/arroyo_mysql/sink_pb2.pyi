from arroyo_core.proto import options_pb2 as _options_pb2
from arroyo_mysql import connection_pb2 as _connection_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WriteMode(_message.Message):
    __slots__ = ()
    class Mode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        append: _ClassVar[WriteMode.Mode]
        upsert: _ClassVar[WriteMode.Mode]
    append: WriteMode.Mode
    upsert: WriteMode.Mode
    def __init__(self) -> None: ...

class SinkConfig(_message.Message):
    __slots__ = ("connection", "table", "mode", "keys", "deleted_column", "create_table", "token_table")
    CONNECTION_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    DELETED_COLUMN_FIELD_NUMBER: _ClassVar[int]
    CREATE_TABLE_FIELD_NUMBER: _ClassVar[int]
    TOKEN_TABLE_FIELD_NUMBER: _ClassVar[int]
    connection: _connection_pb2.Connection
    table: str
    mode: str
    keys: _containers.RepeatedScalarFieldContainer[str]
    deleted_column: str
    create_table: bool
    token_table: str
    def __init__(self, connection: _Optional[_Union[_connection_pb2.Connection, _Mapping]] = ..., table: _Optional[str] = ..., mode: _Optional[str] = ..., keys: _Optional[_Iterable[str]] = ..., deleted_column: _Optional[str] = ..., create_table: bool = ..., token_table: _Optional[str] = ...) -> None: ...
