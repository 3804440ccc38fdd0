from arroyo_core.proto import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Registry(_message.Message):
    __slots__ = ("url", "subject", "version", "username", "password", "token", "ca_file", "register", "timeout_ms", "ca")
    URL_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    USERNAME_FIELD_NUMBER: _ClassVar[int]
    PASSWORD_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    CA_FILE_FIELD_NUMBER: _ClassVar[int]
    REGISTER_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    CA_FIELD_NUMBER: _ClassVar[int]
    url: str
    subject: str
    version: str
    username: str
    password: str
    token: str
    ca_file: str
    register: bool
    timeout_ms: int
    ca: str
    def __init__(self, url: _Optional[str] = ..., subject: _Optional[str] = ..., version: _Optional[str] = ..., username: _Optional[str] = ..., password: _Optional[str] = ..., token: _Optional[str] = ..., ca_file: _Optional[str] = ..., register: bool = ..., timeout_ms: _Optional[int] = ..., ca: _Optional[str] = ...) -> None: ...

class SchemaFile(_message.Message):
    __slots__ = ("name", "text")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    name: str
    text: str
    def __init__(self, name: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class RegisteredText(_message.Message):
    __slots__ = ("text", "references")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    REFERENCES_FIELD_NUMBER: _ClassVar[int]
    text: str
    references: _containers.RepeatedCompositeFieldContainer[SchemaFile]
    def __init__(self, text: _Optional[str] = ..., references: _Optional[_Iterable[_Union[SchemaFile, _Mapping]]] = ...) -> None: ...

class AvroSettings(_message.Message):
    __slots__ = ("schema", "schema_file", "registry", "framing", "registered")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FILE_FIELD_NUMBER: _ClassVar[int]
    REGISTRY_FIELD_NUMBER: _ClassVar[int]
    FRAMING_FIELD_NUMBER: _ClassVar[int]
    REGISTERED_FIELD_NUMBER: _ClassVar[int]
    schema: str
    schema_file: str
    registry: Registry
    framing: str
    registered: RegisteredText
    def __init__(self, schema: _Optional[str] = ..., schema_file: _Optional[str] = ..., registry: _Optional[_Union[Registry, _Mapping]] = ..., framing: _Optional[str] = ..., registered: _Optional[_Union[RegisteredText, _Mapping]] = ...) -> None: ...

class ProtobufSettings(_message.Message):
    __slots__ = ("schema_file", "descriptor_set", "message", "registry", "files", "schema_id")
    SCHEMA_FILE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTOR_SET_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    REGISTRY_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_ID_FIELD_NUMBER: _ClassVar[int]
    schema_file: str
    descriptor_set: str
    message: str
    registry: Registry
    files: _containers.RepeatedCompositeFieldContainer[SchemaFile]
    schema_id: int
    def __init__(self, schema_file: _Optional[str] = ..., descriptor_set: _Optional[str] = ..., message: _Optional[str] = ..., registry: _Optional[_Union[Registry, _Mapping]] = ..., files: _Optional[_Iterable[_Union[SchemaFile, _Mapping]]] = ..., schema_id: _Optional[int] = ...) -> None: ...
