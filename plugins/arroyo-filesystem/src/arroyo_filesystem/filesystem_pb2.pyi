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
    __slots__ = ("path", "size", "version")
    PATH_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    path: str
    size: int
    version: str
    def __init__(self, path: _Optional[str] = ..., size: _Optional[int] = ..., version: _Optional[str] = ...) -> None: ...

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
    __slots__ = ("path", "format", "event_time_field", "schema", "bad_data", "dead_letter", "columns", "batch_rows", "storage_options", "csv", "split_size", "primary_key", "watch", "files")
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
    FILES_FIELD_NUMBER: _ClassVar[int]
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
    files: _containers.RepeatedCompositeFieldContainer[ListedFile]
    def __init__(self, path: _Optional[str] = ..., format: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., event_time_field: _Optional[str] = ..., schema: _Optional[_Iterable[_Union[Column, _Mapping]]] = ..., bad_data: _Optional[str] = ..., dead_letter: _Optional[str] = ..., columns: _Optional[_Iterable[str]] = ..., batch_rows: _Optional[int] = ..., storage_options: _Optional[_Mapping[str, str]] = ..., csv: _Optional[_Union[CsvOptions, _Mapping]] = ..., split_size: _Optional[int] = ..., primary_key: _Optional[_Iterable[str]] = ..., watch: _Optional[int] = ..., files: _Optional[_Iterable[_Union[ListedFile, _Mapping]]] = ...) -> None: ...

class CsvOptions(_message.Message):
    __slots__ = ("delimiter", "no_header", "newlines_in_values")
    DELIMITER_FIELD_NUMBER: _ClassVar[int]
    NO_HEADER_FIELD_NUMBER: _ClassVar[int]
    NEWLINES_IN_VALUES_FIELD_NUMBER: _ClassVar[int]
    delimiter: str
    no_header: bool
    newlines_in_values: bool
    def __init__(self, delimiter: _Optional[str] = ..., no_header: _Optional[bool] = ..., newlines_in_values: _Optional[bool] = ...) -> None: ...

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
    __slots__ = ("path", "format", "partition_by", "max_file_size", "compression", "if_exists", "max_open_files", "storage_options", "delimiter", "updating", "bad_partitions", "max_partitions")
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
    def __init__(self, path: _Optional[str] = ..., format: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., partition_by: _Optional[_Iterable[str]] = ..., max_file_size: _Optional[int] = ..., compression: _Optional[str] = ..., if_exists: _Optional[str] = ..., max_open_files: _Optional[int] = ..., storage_options: _Optional[_Mapping[str, str]] = ..., delimiter: _Optional[str] = ..., updating: _Optional[str] = ..., bad_partitions: _Optional[str] = ..., max_partitions: _Optional[int] = ...) -> None: ...
