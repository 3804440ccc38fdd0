from arroyo_core.proto import options_pb2 as _options_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class SslMode(_message.Message):
    __slots__ = ()
    class Mode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        disable: _ClassVar[SslMode.Mode]
        prefer: _ClassVar[SslMode.Mode]
        require: _ClassVar[SslMode.Mode]
        verify_ca: _ClassVar[SslMode.Mode]
        verify_full: _ClassVar[SslMode.Mode]
    disable: SslMode.Mode
    prefer: SslMode.Mode
    require: SslMode.Mode
    verify_ca: SslMode.Mode
    verify_full: SslMode.Mode
    def __init__(self) -> None: ...

class Connection(_message.Message):
    __slots__ = ("url", "host", "port", "database", "user", "password", "sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout")
    URL_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    PASSWORD_FIELD_NUMBER: _ClassVar[int]
    SSLMODE_FIELD_NUMBER: _ClassVar[int]
    SSLROOTCERT_FIELD_NUMBER: _ClassVar[int]
    SSLCERT_FIELD_NUMBER: _ClassVar[int]
    SSLKEY_FIELD_NUMBER: _ClassVar[int]
    CONNECT_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    url: str
    host: str
    port: int
    database: str
    user: str
    password: str
    sslmode: str
    sslrootcert: str
    sslcert: str
    sslkey: str
    connect_timeout: int
    def __init__(self, url: _Optional[str] = ..., host: _Optional[str] = ..., port: _Optional[int] = ..., database: _Optional[str] = ..., user: _Optional[str] = ..., password: _Optional[str] = ..., sslmode: _Optional[str] = ..., sslrootcert: _Optional[str] = ..., sslcert: _Optional[str] = ..., sslkey: _Optional[str] = ..., connect_timeout: _Optional[int] = ...) -> None: ...
