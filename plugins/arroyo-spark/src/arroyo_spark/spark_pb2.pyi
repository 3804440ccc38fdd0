from arroyo_core.proto import options_pb2 as _options_pb2
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

class InputConfig(_message.Message):
    __slots__ = ("schema", "event_time_field", "dataset")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIME_FIELD_FIELD_NUMBER: _ClassVar[int]
    DATASET_FIELD_NUMBER: _ClassVar[int]
    schema: _containers.RepeatedCompositeFieldContainer[Column]
    event_time_field: str
    dataset: str
    def __init__(self, schema: _Optional[_Iterable[_Union[Column, _Mapping]]] = ..., event_time_field: _Optional[str] = ..., dataset: _Optional[str] = ...) -> None: ...

class Mode(_message.Message):
    __slots__ = ()
    class Name(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        append: _ClassVar[Mode.Name]
        overwrite: _ClassVar[Mode.Name]
    append: Mode.Name
    overwrite: Mode.Name
    def __init__(self) -> None: ...

class SinkConfig(_message.Message):
    __slots__ = ("table", "path", "format", "mode", "options", "staging")
    class OptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TABLE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    STAGING_FIELD_NUMBER: _ClassVar[int]
    table: str
    path: str
    format: str
    mode: Mode.Name
    options: _containers.ScalarMap[str, str]
    staging: str
    def __init__(self, table: _Optional[str] = ..., path: _Optional[str] = ..., format: _Optional[str] = ..., mode: _Optional[_Union[Mode.Name, str]] = ..., options: _Optional[_Mapping[str, str]] = ..., staging: _Optional[str] = ...) -> None: ...
