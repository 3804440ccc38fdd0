from arroyo_core.proto import options_pb2 as _options_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Column(_message.Message):
    __slots__ = ("name", "type")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: str
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ...) -> None: ...

class ListedFile(_message.Message):
    __slots__ = ("path", "size", "version", "modified", "identity")
    PATH_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MODIFIED_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    path: str
    size: int
    version: str
    modified: int
    identity: str
    def __init__(self, path: _Optional[str] = ..., size: _Optional[int] = ..., version: _Optional[str] = ..., modified: _Optional[int] = ..., identity: _Optional[str] = ...) -> None: ...

class Watch(_message.Message):
    __slots__ = ()
    class Order(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        name: _ClassVar[Watch.Order]
        time: _ClassVar[Watch.Order]
    name: Watch.Order
    time: Watch.Order
    class Start(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        all: _ClassVar[Watch.Start]
        new: _ClassVar[Watch.Start]
    all: Watch.Start
    new: Watch.Start
    class Until(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        now: _ClassVar[Watch.Until]
    now: Watch.Until
    class AfterCommit(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        archive: _ClassVar[Watch.AfterCommit]
        delete: _ClassVar[Watch.AfterCommit]
    archive: Watch.AfterCommit
    delete: Watch.AfterCommit
    def __init__(self) -> None: ...

class BadData(_message.Message):
    __slots__ = ()
    class Policy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        fail: _ClassVar[BadData.Policy]
        drop: _ClassVar[BadData.Policy]
        dead_letter: _ClassVar[BadData.Policy]
    fail: BadData.Policy
    drop: BadData.Policy
    dead_letter: BadData.Policy
    def __init__(self) -> None: ...

class SourceConfig(_message.Message):
    __slots__ = ("path", "format", "event_time_field", "schema", "bad_data", "dead_letter", "columns", "batch_rows", "storage_options", "csv", "split_size", "primary_key", "watch", "order", "start", "lateness", "max_remembered_files", "until", "after_commit", "archive_path", "grow", "predicate", "files", "is_listed")
    class StorageOptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PATH_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIME_FIELD_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    BAD_DATA_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    BATCH_ROWS_FIELD_NUMBER: _ClassVar[int]
    STORAGE_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    CSV_FIELD_NUMBER: _ClassVar[int]
    SPLIT_SIZE_FIELD_NUMBER: _ClassVar[int]
    PRIMARY_KEY_FIELD_NUMBER: _ClassVar[int]
    WATCH_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    LATENESS_FIELD_NUMBER: _ClassVar[int]
    MAX_REMEMBERED_FILES_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    AFTER_COMMIT_FIELD_NUMBER: _ClassVar[int]
    ARCHIVE_PATH_FIELD_NUMBER: _ClassVar[int]
    GROW_FIELD_NUMBER: _ClassVar[int]
    PREDICATE_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    IS_LISTED_FIELD_NUMBER: _ClassVar[int]
    path: str
    format: _struct_pb2.Value
    event_time_field: str
    schema: _containers.RepeatedCompositeFieldContainer[Column]
    bad_data: str
    dead_letter: str
    columns: _containers.RepeatedScalarFieldContainer[str]
    batch_rows: int
    storage_options: _containers.ScalarMap[str, str]
    csv: CsvOptions
    split_size: int
    primary_key: _containers.RepeatedScalarFieldContainer[str]
    watch: int
    order: str
    start: str
    lateness: int
    max_remembered_files: int
    until: str
    after_commit: str
    archive_path: str
    grow: bool
    predicate: str
    files: _containers.RepeatedCompositeFieldContainer[ListedFile]
    is_listed: bool
    def __init__(self, path: _Optional[str] = ..., format: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., event_time_field: _Optional[str] = ..., schema: _Optional[_Iterable[_Union[Column, _Mapping]]] = ..., bad_data: _Optional[str] = ..., dead_letter: _Optional[str] = ..., columns: _Optional[_Iterable[str]] = ..., batch_rows: _Optional[int] = ..., storage_options: _Optional[_Mapping[str, str]] = ..., csv: _Optional[_Union[CsvOptions, _Mapping]] = ..., split_size: _Optional[int] = ..., primary_key: _Optional[_Iterable[str]] = ..., watch: _Optional[int] = ..., order: _Optional[str] = ..., start: _Optional[str] = ..., lateness: _Optional[int] = ..., max_remembered_files: _Optional[int] = ..., until: _Optional[str] = ..., after_commit: _Optional[str] = ..., archive_path: _Optional[str] = ..., grow: bool = ..., predicate: _Optional[str] = ..., files: _Optional[_Iterable[_Union[ListedFile, _Mapping]]] = ..., is_listed: bool = ...) -> None: ...

class CsvOptions(_message.Message):
    __slots__ = ("delimiter", "no_header", "newlines_in_values")
    DELIMITER_FIELD_NUMBER: _ClassVar[int]
    NO_HEADER_FIELD_NUMBER: _ClassVar[int]
    NEWLINES_IN_VALUES_FIELD_NUMBER: _ClassVar[int]
    delimiter: str
    no_header: bool
    newlines_in_values: bool
    def __init__(self, delimiter: _Optional[str] = ..., no_header: bool = ..., newlines_in_values: bool = ...) -> None: ...

class BadPartitions(_message.Message):
    __slots__ = ()
    class Policy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        fail: _ClassVar[BadPartitions.Policy]
        drop: _ClassVar[BadPartitions.Policy]
    fail: BadPartitions.Policy
    drop: BadPartitions.Policy
    def __init__(self) -> None: ...

class SinkConfig(_message.Message):
    __slots__ = ("path", "format", "partition_by", "max_file_size", "compression", "if_exists", "max_open_files", "storage_options", "delimiter", "updating", "bad_partitions", "max_partitions", "max_file_rows", "min_file_size", "max_hold", "sort_by", "file_prefix", "close_at_watermark", "file_name")
    class Compression(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        none: _ClassVar[SinkConfig.Compression]
        zstd: _ClassVar[SinkConfig.Compression]
        snappy: _ClassVar[SinkConfig.Compression]
        lz4: _ClassVar[SinkConfig.Compression]
        gzip: _ClassVar[SinkConfig.Compression]
    none: SinkConfig.Compression
    zstd: SinkConfig.Compression
    snappy: SinkConfig.Compression
    lz4: SinkConfig.Compression
    gzip: SinkConfig.Compression
    class IfExists(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        append: _ClassVar[SinkConfig.IfExists]
        fail: _ClassVar[SinkConfig.IfExists]
    append: SinkConfig.IfExists
    fail: SinkConfig.IfExists
    class Updating(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        append_only: _ClassVar[SinkConfig.Updating]
        keep_meta: _ClassVar[SinkConfig.Updating]
    append_only: SinkConfig.Updating
    keep_meta: SinkConfig.Updating
    class StorageOptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PATH_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    PARTITION_BY_FIELD_NUMBER: _ClassVar[int]
    MAX_FILE_SIZE_FIELD_NUMBER: _ClassVar[int]
    COMPRESSION_FIELD_NUMBER: _ClassVar[int]
    IF_EXISTS_FIELD_NUMBER: _ClassVar[int]
    MAX_OPEN_FILES_FIELD_NUMBER: _ClassVar[int]
    STORAGE_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    DELIMITER_FIELD_NUMBER: _ClassVar[int]
    UPDATING_FIELD_NUMBER: _ClassVar[int]
    BAD_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_FILE_ROWS_FIELD_NUMBER: _ClassVar[int]
    MIN_FILE_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAX_HOLD_FIELD_NUMBER: _ClassVar[int]
    SORT_BY_FIELD_NUMBER: _ClassVar[int]
    FILE_PREFIX_FIELD_NUMBER: _ClassVar[int]
    CLOSE_AT_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    FILE_NAME_FIELD_NUMBER: _ClassVar[int]
    path: str
    format: _struct_pb2.Value
    partition_by: _containers.RepeatedScalarFieldContainer[str]
    max_file_size: int
    compression: str
    if_exists: str
    max_open_files: int
    storage_options: _containers.ScalarMap[str, str]
    delimiter: str
    updating: str
    bad_partitions: str
    max_partitions: int
    max_file_rows: int
    min_file_size: int
    max_hold: int
    sort_by: _containers.RepeatedScalarFieldContainer[str]
    file_prefix: str
    close_at_watermark: bool
    file_name: str
    def __init__(self, path: _Optional[str] = ..., format: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., partition_by: _Optional[_Iterable[str]] = ..., max_file_size: _Optional[int] = ..., compression: _Optional[str] = ..., if_exists: _Optional[str] = ..., max_open_files: _Optional[int] = ..., storage_options: _Optional[_Mapping[str, str]] = ..., delimiter: _Optional[str] = ..., updating: _Optional[str] = ..., bad_partitions: _Optional[str] = ..., max_partitions: _Optional[int] = ..., max_file_rows: _Optional[int] = ..., min_file_size: _Optional[int] = ..., max_hold: _Optional[int] = ..., sort_by: _Optional[_Iterable[str]] = ..., file_prefix: _Optional[str] = ..., close_at_watermark: bool = ..., file_name: _Optional[str] = ...) -> None: ...
