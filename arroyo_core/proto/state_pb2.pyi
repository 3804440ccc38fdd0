from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TableType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TABLE_TYPE_UNSPECIFIED: _ClassVar[TableType]
    GLOBAL_KEY_VALUE: _ClassVar[TableType]
    EXPIRING_KEYED_TIME_TABLE: _ClassVar[TableType]
TABLE_TYPE_UNSPECIFIED: TableType
GLOBAL_KEY_VALUE: TableType
EXPIRING_KEYED_TIME_TABLE: TableType

class TableConfig(_message.Message):
    __slots__ = ("table_type", "config", "state_version")
    TABLE_TYPE_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    STATE_VERSION_FIELD_NUMBER: _ClassVar[int]
    table_type: TableType
    config: bytes
    state_version: int
    def __init__(self, table_type: _Optional[_Union[TableType, str]] = ..., config: _Optional[bytes] = ..., state_version: _Optional[int] = ...) -> None: ...
