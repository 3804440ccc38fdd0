from arroyo_core.proto import options_pb2 as _options_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class FeedConfig(_message.Message):
    __slots__ = ("url", "token", "follow", "page", "poll", "give_up_after")
    URL_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    POLL_FIELD_NUMBER: _ClassVar[int]
    GIVE_UP_AFTER_FIELD_NUMBER: _ClassVar[int]
    url: str
    token: str
    follow: bool
    page: int
    poll: int
    give_up_after: int
    def __init__(self, url: _Optional[str] = ..., token: _Optional[str] = ..., follow: bool = ..., page: _Optional[int] = ..., poll: _Optional[int] = ..., give_up_after: _Optional[int] = ...) -> None: ...
