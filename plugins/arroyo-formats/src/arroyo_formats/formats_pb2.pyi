from arroyo_core.proto import options_pb2 as _options_pb2
from arroyo_formats import schemas_pb2 as _schemas_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JsonSettings(_message.Message):
    __slots__ = ("schema", "schema_file", "registry", "framing", "registered", "timestamp_formats", "date_formats", "time_zone")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FILE_FIELD_NUMBER: _ClassVar[int]
    REGISTRY_FIELD_NUMBER: _ClassVar[int]
    FRAMING_FIELD_NUMBER: _ClassVar[int]
    REGISTERED_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FORMATS_FIELD_NUMBER: _ClassVar[int]
    DATE_FORMATS_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    schema: str
    schema_file: str
    registry: _schemas_pb2.Registry
    framing: str
    registered: _schemas_pb2.RegisteredText
    timestamp_formats: _containers.RepeatedScalarFieldContainer[str]
    date_formats: _containers.RepeatedScalarFieldContainer[str]
    time_zone: str
    def __init__(self, schema: _Optional[str] = ..., schema_file: _Optional[str] = ..., registry: _Optional[_Union[_schemas_pb2.Registry, _Mapping]] = ..., framing: _Optional[str] = ..., registered: _Optional[_Union[_schemas_pb2.RegisteredText, _Mapping]] = ..., timestamp_formats: _Optional[_Iterable[str]] = ..., date_formats: _Optional[_Iterable[str]] = ..., time_zone: _Optional[str] = ...) -> None: ...

class DebeziumJsonSettings(_message.Message):
    __slots__ = ("primary_key", "schema", "schema_file", "registry", "framing", "registered")
    PRIMARY_KEY_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FILE_FIELD_NUMBER: _ClassVar[int]
    REGISTRY_FIELD_NUMBER: _ClassVar[int]
    FRAMING_FIELD_NUMBER: _ClassVar[int]
    REGISTERED_FIELD_NUMBER: _ClassVar[int]
    primary_key: _containers.RepeatedScalarFieldContainer[str]
    schema: str
    schema_file: str
    registry: _schemas_pb2.Registry
    framing: str
    registered: _schemas_pb2.RegisteredText
    def __init__(self, primary_key: _Optional[_Iterable[str]] = ..., schema: _Optional[str] = ..., schema_file: _Optional[str] = ..., registry: _Optional[_Union[_schemas_pb2.Registry, _Mapping]] = ..., framing: _Optional[str] = ..., registered: _Optional[_Union[_schemas_pb2.RegisteredText, _Mapping]] = ...) -> None: ...

class CsvSettings(_message.Message):
    __slots__ = ("delimiter", "no_header", "newlines_in_values", "timestamp_formats", "date_formats", "time_zone", "empty_as_text")
    DELIMITER_FIELD_NUMBER: _ClassVar[int]
    NO_HEADER_FIELD_NUMBER: _ClassVar[int]
    NEWLINES_IN_VALUES_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FORMATS_FIELD_NUMBER: _ClassVar[int]
    DATE_FORMATS_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    EMPTY_AS_TEXT_FIELD_NUMBER: _ClassVar[int]
    delimiter: str
    no_header: bool
    newlines_in_values: bool
    timestamp_formats: _containers.RepeatedScalarFieldContainer[str]
    date_formats: _containers.RepeatedScalarFieldContainer[str]
    time_zone: str
    empty_as_text: bool
    def __init__(self, delimiter: _Optional[str] = ..., no_header: bool = ..., newlines_in_values: bool = ..., timestamp_formats: _Optional[_Iterable[str]] = ..., date_formats: _Optional[_Iterable[str]] = ..., time_zone: _Optional[str] = ..., empty_as_text: bool = ...) -> None: ...

class RawStringSettings(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RawBytesSettings(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ParquetSettings(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ArrowSettings(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
