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

class Metadata(_message.Message):
    __slots__ = ()
    class Part(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        topic: _ClassVar[Metadata.Part]
        partition: _ClassVar[Metadata.Part]
        offset: _ClassVar[Metadata.Part]
        timestamp: _ClassVar[Metadata.Part]
        key: _ClassVar[Metadata.Part]
        headers: _ClassVar[Metadata.Part]
    topic: Metadata.Part
    partition: Metadata.Part
    offset: Metadata.Part
    timestamp: Metadata.Part
    key: Metadata.Part
    headers: Metadata.Part
    def __init__(self) -> None: ...

class MetadataColumn(_message.Message):
    __slots__ = ("name", "part")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    name: str
    part: str
    def __init__(self, name: _Optional[str] = ..., part: _Optional[str] = ...) -> None: ...

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

class DataLoss(_message.Message):
    __slots__ = ()
    class Policy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        fail: _ClassVar[DataLoss.Policy]
        earliest: _ClassVar[DataLoss.Policy]
        latest: _ClassVar[DataLoss.Policy]
    fail: DataLoss.Policy
    earliest: DataLoss.Policy
    latest: DataLoss.Policy
    def __init__(self) -> None: ...

class SourceConfig(_message.Message):
    __slots__ = ("bootstrap_servers", "topic", "topics", "topic_pattern", "format", "schema", "event_time_field", "max_lateness", "idle_after", "start", "until", "group_id", "read_committed", "on_data_loss", "metadata", "bad_data", "dead_letter", "discovery_interval", "batch_rows", "client")
    class ClientEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    BOOTSTRAP_SERVERS_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    TOPIC_PATTERN_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIME_FIELD_FIELD_NUMBER: _ClassVar[int]
    MAX_LATENESS_FIELD_NUMBER: _ClassVar[int]
    IDLE_AFTER_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    READ_COMMITTED_FIELD_NUMBER: _ClassVar[int]
    ON_DATA_LOSS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    BAD_DATA_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_FIELD_NUMBER: _ClassVar[int]
    DISCOVERY_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    BATCH_ROWS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    bootstrap_servers: str
    topic: str
    topics: _containers.RepeatedScalarFieldContainer[str]
    topic_pattern: str
    format: _struct_pb2.Value
    schema: _containers.RepeatedCompositeFieldContainer[Column]
    event_time_field: str
    max_lateness: int
    idle_after: int
    start: _struct_pb2.Value
    until: _struct_pb2.Value
    group_id: str
    read_committed: bool
    on_data_loss: str
    metadata: _containers.RepeatedCompositeFieldContainer[MetadataColumn]
    bad_data: str
    dead_letter: str
    discovery_interval: int
    batch_rows: int
    client: _containers.ScalarMap[str, str]
    def __init__(self, bootstrap_servers: _Optional[str] = ..., topic: _Optional[str] = ..., topics: _Optional[_Iterable[str]] = ..., topic_pattern: _Optional[str] = ..., format: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., schema: _Optional[_Iterable[_Union[Column, _Mapping]]] = ..., event_time_field: _Optional[str] = ..., max_lateness: _Optional[int] = ..., idle_after: _Optional[int] = ..., start: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., until: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., group_id: _Optional[str] = ..., read_committed: bool = ..., on_data_loss: _Optional[str] = ..., metadata: _Optional[_Iterable[_Union[MetadataColumn, _Mapping]]] = ..., bad_data: _Optional[str] = ..., dead_letter: _Optional[str] = ..., discovery_interval: _Optional[int] = ..., batch_rows: _Optional[int] = ..., client: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Start(_message.Message):
    __slots__ = ()
    class Place(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        earliest: _ClassVar[Start.Place]
        latest: _ClassVar[Start.Place]
        group: _ClassVar[Start.Place]
    earliest: Start.Place
    latest: Start.Place
    group: Start.Place
    def __init__(self) -> None: ...

class Until(_message.Message):
    __slots__ = ()
    class Place(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        latest: _ClassVar[Until.Place]
    latest: Until.Place
    def __init__(self) -> None: ...

class Delivery(_message.Message):
    __slots__ = ()
    class Guarantee(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        exactly_once: _ClassVar[Delivery.Guarantee]
        at_least_once: _ClassVar[Delivery.Guarantee]
    exactly_once: Delivery.Guarantee
    at_least_once: Delivery.Guarantee
    def __init__(self) -> None: ...

class LostMarker(_message.Message):
    __slots__ = ()
    class Policy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        fail: _ClassVar[LostMarker.Policy]
        repeat: _ClassVar[LostMarker.Policy]
        skip: _ClassVar[LostMarker.Policy]
    fail: LostMarker.Policy
    repeat: LostMarker.Policy
    skip: LostMarker.Policy
    def __init__(self) -> None: ...

class Header(_message.Message):
    __slots__ = ("name", "column")
    NAME_FIELD_NUMBER: _ClassVar[int]
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    name: str
    column: str
    def __init__(self, name: _Optional[str] = ..., column: _Optional[str] = ...) -> None: ...

class SinkConfig(_message.Message):
    __slots__ = ("bootstrap_servers", "topic", "topic_field", "format", "key_fields", "partition_by", "timestamp_field", "headers", "delivery", "on_lost_marker", "progress_topic", "client")
    class ClientEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    BOOTSTRAP_SERVERS_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELDS_FIELD_NUMBER: _ClassVar[int]
    PARTITION_BY_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    ON_LOST_MARKER_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_TOPIC_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    bootstrap_servers: str
    topic: str
    topic_field: str
    format: _struct_pb2.Value
    key_fields: _containers.RepeatedScalarFieldContainer[str]
    partition_by: _containers.RepeatedScalarFieldContainer[str]
    timestamp_field: str
    headers: _containers.RepeatedCompositeFieldContainer[Header]
    delivery: str
    on_lost_marker: str
    progress_topic: str
    client: _containers.ScalarMap[str, str]
    def __init__(self, bootstrap_servers: _Optional[str] = ..., topic: _Optional[str] = ..., topic_field: _Optional[str] = ..., format: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., key_fields: _Optional[_Iterable[str]] = ..., partition_by: _Optional[_Iterable[str]] = ..., timestamp_field: _Optional[str] = ..., headers: _Optional[_Iterable[_Union[Header, _Mapping]]] = ..., delivery: _Optional[str] = ..., on_lost_marker: _Optional[str] = ..., progress_topic: _Optional[str] = ..., client: _Optional[_Mapping[str, str]] = ...) -> None: ...

class LookupConfig(_message.Message):
    __slots__ = ("bootstrap_servers", "topic", "format", "schema", "key_column", "client")
    class ClientEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    BOOTSTRAP_SERVERS_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    KEY_COLUMN_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    bootstrap_servers: str
    topic: str
    format: _struct_pb2.Value
    schema: _containers.RepeatedCompositeFieldContainer[Column]
    key_column: str
    client: _containers.ScalarMap[str, str]
    def __init__(self, bootstrap_servers: _Optional[str] = ..., topic: _Optional[str] = ..., format: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., schema: _Optional[_Iterable[_Union[Column, _Mapping]]] = ..., key_column: _Optional[str] = ..., client: _Optional[_Mapping[str, str]] = ...) -> None: ...
