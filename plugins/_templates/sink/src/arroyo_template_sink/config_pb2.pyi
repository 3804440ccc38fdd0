from arroyo_core.proto import options_pb2 as _options_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class LedgerConfig(_message.Message):
    __slots__ = ("path", "table")
    PATH_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    path: str
    table: str
    def __init__(self, path: _Optional[str] = ..., table: _Optional[str] = ...) -> None: ...
