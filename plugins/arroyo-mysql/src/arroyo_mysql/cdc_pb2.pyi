from arroyo_core.proto import options_pb2 as _options_pb2
from arroyo_mysql import connection_pb2 as _connection_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Snapshot(_message.Message):
    __slots__ = ()
    class Mode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        initial: _ClassVar[Snapshot.Mode]
        never: _ClassVar[Snapshot.Mode]
        only: _ClassVar[Snapshot.Mode]
    initial: Snapshot.Mode
    never: Snapshot.Mode
    only: Snapshot.Mode
    def __init__(self) -> None: ...

class Changes(_message.Message):
    __slots__ = ()
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        all: _ClassVar[Changes.Kind]
        inserts: _ClassVar[Changes.Kind]
    all: Changes.Kind
    inserts: Changes.Kind
    def __init__(self) -> None: ...

class CdcUntil(_message.Message):
    __slots__ = ()
    class Place(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        latest: _ClassVar[CdcUntil.Place]
    latest: CdcUntil.Place
    def __init__(self) -> None: ...

class TruncateAction(_message.Message):
    __slots__ = ()
    class Policy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        fail: _ClassVar[TruncateAction.Policy]
        ignore: _ClassVar[TruncateAction.Policy]
    fail: TruncateAction.Policy
    ignore: TruncateAction.Policy
    def __init__(self) -> None: ...

class CatalogueColumn(_message.Message):
    __slots__ = ("name", "type_code", "flags", "length", "scale", "charset", "data_type", "character_set", "collation")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_CODE_FIELD_NUMBER: _ClassVar[int]
    FLAGS_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    CHARSET_FIELD_NUMBER: _ClassVar[int]
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    CHARACTER_SET_FIELD_NUMBER: _ClassVar[int]
    COLLATION_FIELD_NUMBER: _ClassVar[int]
    name: str
    type_code: int
    flags: int
    length: int
    scale: int
    charset: int
    data_type: str
    character_set: str
    collation: str
    def __init__(self, name: _Optional[str] = ..., type_code: _Optional[int] = ..., flags: _Optional[int] = ..., length: _Optional[int] = ..., scale: _Optional[int] = ..., charset: _Optional[int] = ..., data_type: _Optional[str] = ..., character_set: _Optional[str] = ..., collation: _Optional[str] = ...) -> None: ...

class CatalogueTable(_message.Message):
    __slots__ = ("schema", "name", "columns", "key", "known", "is_mariadb")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    IS_MARIADB_FIELD_NUMBER: _ClassVar[int]
    schema: str
    name: str
    columns: _containers.RepeatedCompositeFieldContainer[CatalogueColumn]
    key: _containers.RepeatedCompositeFieldContainer[CatalogueColumn]
    known: _containers.RepeatedScalarFieldContainer[str]
    is_mariadb: bool
    def __init__(self, schema: _Optional[str] = ..., name: _Optional[str] = ..., columns: _Optional[_Iterable[_Union[CatalogueColumn, _Mapping]]] = ..., key: _Optional[_Iterable[_Union[CatalogueColumn, _Mapping]]] = ..., known: _Optional[_Iterable[str]] = ..., is_mariadb: bool = ...) -> None: ...

class CdcConfig(_message.Message):
    __slots__ = ("connection", "table", "columns", "snapshot", "changes", "chunk_rows", "server_id", "on_truncate", "until", "event_time_field", "max_lateness", "idle_after", "warn_lag", "batch_rows", "give_up_after", "catalogue")
    CONNECTION_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    CHUNK_ROWS_FIELD_NUMBER: _ClassVar[int]
    SERVER_ID_FIELD_NUMBER: _ClassVar[int]
    ON_TRUNCATE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIME_FIELD_FIELD_NUMBER: _ClassVar[int]
    MAX_LATENESS_FIELD_NUMBER: _ClassVar[int]
    IDLE_AFTER_FIELD_NUMBER: _ClassVar[int]
    WARN_LAG_FIELD_NUMBER: _ClassVar[int]
    BATCH_ROWS_FIELD_NUMBER: _ClassVar[int]
    GIVE_UP_AFTER_FIELD_NUMBER: _ClassVar[int]
    CATALOGUE_FIELD_NUMBER: _ClassVar[int]
    connection: _connection_pb2.Connection
    table: str
    columns: _containers.RepeatedScalarFieldContainer[str]
    snapshot: str
    changes: str
    chunk_rows: int
    server_id: int
    on_truncate: str
    until: str
    event_time_field: str
    max_lateness: int
    idle_after: int
    warn_lag: int
    batch_rows: int
    give_up_after: int
    catalogue: CatalogueTable
    def __init__(self, connection: _Optional[_Union[_connection_pb2.Connection, _Mapping]] = ..., table: _Optional[str] = ..., columns: _Optional[_Iterable[str]] = ..., snapshot: _Optional[str] = ..., changes: _Optional[str] = ..., chunk_rows: _Optional[int] = ..., server_id: _Optional[int] = ..., on_truncate: _Optional[str] = ..., until: _Optional[str] = ..., event_time_field: _Optional[str] = ..., max_lateness: _Optional[int] = ..., idle_after: _Optional[int] = ..., warn_lag: _Optional[int] = ..., batch_rows: _Optional[int] = ..., give_up_after: _Optional[int] = ..., catalogue: _Optional[_Union[CatalogueTable, _Mapping]] = ...) -> None: ...
