from arroyo_core.proto import options_pb2 as _options_pb2
from arroyo_mysql import connection_pb2 as _connection_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SourceUntil(_message.Message):
    __slots__ = ()
    class Place(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        latest: _ClassVar[SourceUntil.Place]
    latest: SourceUntil.Place
    def __init__(self) -> None: ...

class SourceConfig(_message.Message):
    __slots__ = ("connection", "table", "query", "columns", "growing_column", "after", "delay", "poll_interval", "until", "batch_rows", "event_time_field")
    CONNECTION_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    GROWING_COLUMN_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    POLL_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    BATCH_ROWS_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIME_FIELD_FIELD_NUMBER: _ClassVar[int]
    connection: _connection_pb2.Connection
    table: str
    query: str
    columns: _containers.RepeatedScalarFieldContainer[str]
    growing_column: str
    after: str
    delay: int
    poll_interval: int
    until: str
    batch_rows: int
    event_time_field: str
    def __init__(self, connection: _Optional[_Union[_connection_pb2.Connection, _Mapping]] = ..., table: _Optional[str] = ..., query: _Optional[str] = ..., columns: _Optional[_Iterable[str]] = ..., growing_column: _Optional[str] = ..., after: _Optional[str] = ..., delay: _Optional[int] = ..., poll_interval: _Optional[int] = ..., until: _Optional[str] = ..., batch_rows: _Optional[int] = ..., event_time_field: _Optional[str] = ...) -> None: ...
