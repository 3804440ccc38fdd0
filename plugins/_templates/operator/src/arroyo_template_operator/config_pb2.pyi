from arroyo_core.proto import options_pb2 as _options_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class TotalsConfig(_message.Message):
    __slots__ = ("key", "value", "column")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    column: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ..., column: _Optional[str] = ...) -> None: ...
