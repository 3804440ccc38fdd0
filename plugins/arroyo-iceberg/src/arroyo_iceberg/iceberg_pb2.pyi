from arroyo_core.proto import options_pb2 as _options_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Catalog(_message.Message):
    __slots__ = ("type", "uri", "warehouse", "name", "password", "credential", "token", "properties")
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        sql: _ClassVar[Catalog.Type]
        rest: _ClassVar[Catalog.Type]
    sql: Catalog.Type
    rest: Catalog.Type
    class PropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TYPE_FIELD_NUMBER: _ClassVar[int]
    URI_FIELD_NUMBER: _ClassVar[int]
    WAREHOUSE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PASSWORD_FIELD_NUMBER: _ClassVar[int]
    CREDENTIAL_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    type: str
    uri: str
    warehouse: str
    name: str
    password: str
    credential: str
    token: str
    properties: _containers.ScalarMap[str, str]
    def __init__(self, type: _Optional[str] = ..., uri: _Optional[str] = ..., warehouse: _Optional[str] = ..., name: _Optional[str] = ..., password: _Optional[str] = ..., credential: _Optional[str] = ..., token: _Optional[str] = ..., properties: _Optional[_Mapping[str, str]] = ...) -> None: ...

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
    __slots__ = ("catalog", "table", "mode", "keys", "partition_by", "schema_evolution", "if_missing", "max_file_size", "max_partitions", "branch", "deleted_column", "table_properties")
    class TablePropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CATALOG_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    PARTITION_BY_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_EVOLUTION_FIELD_NUMBER: _ClassVar[int]
    IF_MISSING_FIELD_NUMBER: _ClassVar[int]
    MAX_FILE_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAX_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    DELETED_COLUMN_FIELD_NUMBER: _ClassVar[int]
    TABLE_PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    catalog: Catalog
    table: str
    mode: str
    keys: _containers.RepeatedScalarFieldContainer[str]
    partition_by: _containers.RepeatedScalarFieldContainer[str]
    schema_evolution: str
    if_missing: str
    max_file_size: int
    max_partitions: int
    branch: str
    deleted_column: str
    table_properties: _containers.ScalarMap[str, str]
    def __init__(self, catalog: _Optional[_Union[Catalog, _Mapping]] = ..., table: _Optional[str] = ..., mode: _Optional[str] = ..., keys: _Optional[_Iterable[str]] = ..., partition_by: _Optional[_Iterable[str]] = ..., schema_evolution: _Optional[str] = ..., if_missing: _Optional[str] = ..., max_file_size: _Optional[int] = ..., max_partitions: _Optional[int] = ..., branch: _Optional[str] = ..., deleted_column: _Optional[str] = ..., table_properties: _Optional[_Mapping[str, str]] = ...) -> None: ...

class SourceConfig(_message.Message):
    __slots__ = ("catalog", "table", "start", "watch", "branch", "on_change", "columns", "event_time_field", "batch_rows", "give_up_after", "changes", "keys", "planned")
    CATALOG_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    WATCH_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    ON_CHANGE_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIME_FIELD_FIELD_NUMBER: _ClassVar[int]
    BATCH_ROWS_FIELD_NUMBER: _ClassVar[int]
    GIVE_UP_AFTER_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    PLANNED_FIELD_NUMBER: _ClassVar[int]
    catalog: Catalog
    table: str
    start: _struct_pb2.Value
    watch: int
    branch: str
    on_change: str
    columns: _containers.RepeatedScalarFieldContainer[str]
    event_time_field: str
    batch_rows: int
    give_up_after: int
    changes: bool
    keys: _containers.RepeatedScalarFieldContainer[str]
    planned: Planned
    def __init__(self, catalog: _Optional[_Union[Catalog, _Mapping]] = ..., table: _Optional[str] = ..., start: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., watch: _Optional[int] = ..., branch: _Optional[str] = ..., on_change: _Optional[str] = ..., columns: _Optional[_Iterable[str]] = ..., event_time_field: _Optional[str] = ..., batch_rows: _Optional[int] = ..., give_up_after: _Optional[int] = ..., changes: bool = ..., keys: _Optional[_Iterable[str]] = ..., planned: _Optional[_Union[Planned, _Mapping]] = ...) -> None: ...

class LookupConfig(_message.Message):
    __slots__ = ("catalog", "table", "branch", "snapshot", "columns", "planned")
    CATALOG_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    PLANNED_FIELD_NUMBER: _ClassVar[int]
    catalog: Catalog
    table: str
    branch: str
    snapshot: str
    columns: _containers.RepeatedScalarFieldContainer[str]
    planned: Planned
    def __init__(self, catalog: _Optional[_Union[Catalog, _Mapping]] = ..., table: _Optional[str] = ..., branch: _Optional[str] = ..., snapshot: _Optional[str] = ..., columns: _Optional[_Iterable[str]] = ..., planned: _Optional[_Union[Planned, _Mapping]] = ...) -> None: ...

class Planned(_message.Message):
    __slots__ = ("schema", "start", "is_full", "until", "table_id", "sequence")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    IS_FULL_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    TABLE_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    schema: bytes
    start: int
    is_full: bool
    until: int
    table_id: str
    sequence: int
    def __init__(self, schema: _Optional[bytes] = ..., start: _Optional[int] = ..., is_full: bool = ..., until: _Optional[int] = ..., table_id: _Optional[str] = ..., sequence: _Optional[int] = ...) -> None: ...
