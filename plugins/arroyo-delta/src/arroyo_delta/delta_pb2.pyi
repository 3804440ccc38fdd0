from arroyo_core.proto import options_pb2 as _options_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Mode(_message.Message):
    __slots__ = ()
    class Effect(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        append: _ClassVar[Mode.Effect]
        merge: _ClassVar[Mode.Effect]
        overwrite_partitions: _ClassVar[Mode.Effect]
    append: Mode.Effect
    merge: Mode.Effect
    overwrite_partitions: Mode.Effect
    def __init__(self) -> None: ...

class Evolution(_message.Message):
    __slots__ = ()
    class Policy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        none: _ClassVar[Evolution.Policy]
        add: _ClassVar[Evolution.Policy]
    none: Evolution.Policy
    add: Evolution.Policy
    def __init__(self) -> None: ...

class Missing(_message.Message):
    __slots__ = ()
    class Policy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        fail: _ClassVar[Missing.Policy]
        create: _ClassVar[Missing.Policy]
    fail: Missing.Policy
    create: Missing.Policy
    def __init__(self) -> None: ...

class Change(_message.Message):
    __slots__ = ()
    class Policy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        fail: _ClassVar[Change.Policy]
        skip: _ClassVar[Change.Policy]
    fail: Change.Policy
    skip: Change.Policy
    def __init__(self) -> None: ...

class Start(_message.Message):
    __slots__ = ()
    class Place(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        snapshot: _ClassVar[Start.Place]
        latest: _ClassVar[Start.Place]
    snapshot: Start.Place
    latest: Start.Place
    def __init__(self) -> None: ...

class SinkConfig(_message.Message):
    __slots__ = ("table", "storage_options", "mode", "keys", "partition_by", "schema_evolution", "if_missing", "max_file_size", "max_partitions", "deleted_column")
    class StorageOptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TABLE_FIELD_NUMBER: _ClassVar[int]
    STORAGE_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    PARTITION_BY_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_EVOLUTION_FIELD_NUMBER: _ClassVar[int]
    IF_MISSING_FIELD_NUMBER: _ClassVar[int]
    MAX_FILE_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAX_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    DELETED_COLUMN_FIELD_NUMBER: _ClassVar[int]
    table: str
    storage_options: _containers.ScalarMap[str, str]
    mode: str
    keys: _containers.RepeatedScalarFieldContainer[str]
    partition_by: _containers.RepeatedScalarFieldContainer[str]
    schema_evolution: str
    if_missing: str
    max_file_size: int
    max_partitions: int
    deleted_column: str
    def __init__(self, table: _Optional[str] = ..., storage_options: _Optional[_Mapping[str, str]] = ..., mode: _Optional[str] = ..., keys: _Optional[_Iterable[str]] = ..., partition_by: _Optional[_Iterable[str]] = ..., schema_evolution: _Optional[str] = ..., if_missing: _Optional[str] = ..., max_file_size: _Optional[int] = ..., max_partitions: _Optional[int] = ..., deleted_column: _Optional[str] = ...) -> None: ...

class SourceConfig(_message.Message):
    __slots__ = ("table", "storage_options", "start", "watch", "changes", "keys", "on_change", "columns", "event_time_field", "batch_rows", "planned")
    class StorageOptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TABLE_FIELD_NUMBER: _ClassVar[int]
    STORAGE_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    WATCH_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    ON_CHANGE_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIME_FIELD_FIELD_NUMBER: _ClassVar[int]
    BATCH_ROWS_FIELD_NUMBER: _ClassVar[int]
    PLANNED_FIELD_NUMBER: _ClassVar[int]
    table: str
    storage_options: _containers.ScalarMap[str, str]
    start: _struct_pb2.Value
    watch: int
    changes: bool
    keys: _containers.RepeatedScalarFieldContainer[str]
    on_change: str
    columns: _containers.RepeatedScalarFieldContainer[str]
    event_time_field: str
    batch_rows: int
    planned: Planned
    def __init__(self, table: _Optional[str] = ..., storage_options: _Optional[_Mapping[str, str]] = ..., start: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., watch: _Optional[int] = ..., changes: bool = ..., keys: _Optional[_Iterable[str]] = ..., on_change: _Optional[str] = ..., columns: _Optional[_Iterable[str]] = ..., event_time_field: _Optional[str] = ..., batch_rows: _Optional[int] = ..., planned: _Optional[_Union[Planned, _Mapping]] = ...) -> None: ...

class Planned(_message.Message):
    __slots__ = ("schema", "version", "first", "is_snapshot", "partition_by", "table_id")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    IS_SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    PARTITION_BY_FIELD_NUMBER: _ClassVar[int]
    TABLE_ID_FIELD_NUMBER: _ClassVar[int]
    schema: bytes
    version: int
    first: int
    is_snapshot: bool
    partition_by: _containers.RepeatedScalarFieldContainer[str]
    table_id: str
    def __init__(self, schema: _Optional[bytes] = ..., version: _Optional[int] = ..., first: _Optional[int] = ..., is_snapshot: bool = ..., partition_by: _Optional[_Iterable[str]] = ..., table_id: _Optional[str] = ...) -> None: ...

class LookupConfig(_message.Message):
    __slots__ = ("table", "storage_options", "version", "columns", "planned")
    class StorageOptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TABLE_FIELD_NUMBER: _ClassVar[int]
    STORAGE_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    PLANNED_FIELD_NUMBER: _ClassVar[int]
    table: str
    storage_options: _containers.ScalarMap[str, str]
    version: int
    columns: _containers.RepeatedScalarFieldContainer[str]
    planned: Planned
    def __init__(self, table: _Optional[str] = ..., storage_options: _Optional[_Mapping[str, str]] = ..., version: _Optional[int] = ..., columns: _Optional[_Iterable[str]] = ..., planned: _Optional[_Union[Planned, _Mapping]] = ...) -> None: ...
