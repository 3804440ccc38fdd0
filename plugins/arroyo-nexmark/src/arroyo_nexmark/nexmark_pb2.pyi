import datetime

from arroyo_core.proto import options_pb2 as _options_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NexmarkSource(_message.Message):
    __slots__ = ("events", "rate", "seed", "table", "fields", "event_rate", "base_time", "out_of_order_group_size", "person_proportion", "auction_proportion", "bid_proportion", "hot_auction_ratio", "hot_seller_ratio", "hot_bidder_ratio", "in_flight_auctions", "active_people", "avg_person_size", "avg_auction_size", "avg_bid_size")
    class Table(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        bid: _ClassVar[NexmarkSource.Table]
        auction: _ClassVar[NexmarkSource.Table]
        person: _ClassVar[NexmarkSource.Table]
        event: _ClassVar[NexmarkSource.Table]
    bid: NexmarkSource.Table
    auction: NexmarkSource.Table
    person: NexmarkSource.Table
    event: NexmarkSource.Table
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    EVENT_RATE_FIELD_NUMBER: _ClassVar[int]
    BASE_TIME_FIELD_NUMBER: _ClassVar[int]
    OUT_OF_ORDER_GROUP_SIZE_FIELD_NUMBER: _ClassVar[int]
    PERSON_PROPORTION_FIELD_NUMBER: _ClassVar[int]
    AUCTION_PROPORTION_FIELD_NUMBER: _ClassVar[int]
    BID_PROPORTION_FIELD_NUMBER: _ClassVar[int]
    HOT_AUCTION_RATIO_FIELD_NUMBER: _ClassVar[int]
    HOT_SELLER_RATIO_FIELD_NUMBER: _ClassVar[int]
    HOT_BIDDER_RATIO_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_AUCTIONS_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_PEOPLE_FIELD_NUMBER: _ClassVar[int]
    AVG_PERSON_SIZE_FIELD_NUMBER: _ClassVar[int]
    AVG_AUCTION_SIZE_FIELD_NUMBER: _ClassVar[int]
    AVG_BID_SIZE_FIELD_NUMBER: _ClassVar[int]
    events: int
    rate: float
    seed: int
    table: NexmarkSource.Table
    fields: _containers.RepeatedScalarFieldContainer[str]
    event_rate: int
    base_time: _timestamp_pb2.Timestamp
    out_of_order_group_size: int
    person_proportion: int
    auction_proportion: int
    bid_proportion: int
    hot_auction_ratio: int
    hot_seller_ratio: int
    hot_bidder_ratio: int
    in_flight_auctions: int
    active_people: int
    avg_person_size: int
    avg_auction_size: int
    avg_bid_size: int
    def __init__(self, events: _Optional[int] = ..., rate: _Optional[float] = ..., seed: _Optional[int] = ..., table: _Optional[_Union[NexmarkSource.Table, str]] = ..., fields: _Optional[_Iterable[str]] = ..., event_rate: _Optional[int] = ..., base_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., out_of_order_group_size: _Optional[int] = ..., person_proportion: _Optional[int] = ..., auction_proportion: _Optional[int] = ..., bid_proportion: _Optional[int] = ..., hot_auction_ratio: _Optional[int] = ..., hot_seller_ratio: _Optional[int] = ..., hot_bidder_ratio: _Optional[int] = ..., in_flight_auctions: _Optional[int] = ..., active_people: _Optional[int] = ..., avg_person_size: _Optional[int] = ..., avg_auction_size: _Optional[int] = ..., avg_bid_size: _Optional[int] = ...) -> None: ...

class ImpulseSource(_message.Message):
    __slots__ = ("count", "rate", "event_time_interval", "start_time")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIME_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    count: int
    rate: float
    event_time_interval: int
    start_time: _timestamp_pb2.Timestamp
    def __init__(self, count: _Optional[int] = ..., rate: _Optional[float] = ..., event_time_interval: _Optional[int] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
