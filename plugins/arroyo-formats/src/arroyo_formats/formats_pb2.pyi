from arroyo_core.proto import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class JsonSettings(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DebeziumJsonSettings(_message.Message):
    __slots__ = ("primary_key",)
    PRIMARY_KEY_FIELD_NUMBER: _ClassVar[int]
    primary_key: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, primary_key: _Optional[_Iterable[str]] = ...) -> None: ...

class CsvSettings(_message.Message):
    __slots__ = ("delimiter", "no_header", "newlines_in_values")
    DELIMITER_FIELD_NUMBER: _ClassVar[int]
    NO_HEADER_FIELD_NUMBER: _ClassVar[int]
    NEWLINES_IN_VALUES_FIELD_NUMBER: _ClassVar[int]
    delimiter: str
    no_header: bool
    newlines_in_values: bool
    def __init__(self, delimiter: _Optional[str] = ..., no_header: _Optional[bool] = ..., newlines_in_values: _Optional[bool] = ...) -> None: ...

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
