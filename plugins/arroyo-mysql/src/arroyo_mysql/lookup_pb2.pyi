from arroyo_core.proto import options_pb2 as _options_pb2
from arroyo_mysql import connection_pb2 as _connection_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LookupConfig(_message.Message):
    __slots__ = ("connection", "table", "query", "columns")
    CONNECTION_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    connection: _connection_pb2.Connection
    table: str
    query: str
    columns: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, connection: _Optional[_Union[_connection_pb2.Connection, _Mapping]] = ..., table: _Optional[str] = ..., query: _Optional[str] = ..., columns: _Optional[_Iterable[str]] = ...) -> None: ...
