from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ChainReport(_message.Message):
    __slots__ = ("chain", "subtask", "attempt", "epoch", "operators", "sent", "received", "error")
    CHAIN_FIELD_NUMBER: _ClassVar[int]
    SUBTASK_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    OPERATORS_FIELD_NUMBER: _ClassVar[int]
    SENT_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    chain: int
    subtask: int
    attempt: int
    epoch: int
    operators: _containers.RepeatedCompositeFieldContainer[OperatorReport]
    sent: _containers.RepeatedCompositeFieldContainer[SentFrames]
    received: _containers.RepeatedCompositeFieldContainer[ReceivedFrames]
    error: ErrorReport
    def __init__(self, chain: _Optional[int] = ..., subtask: _Optional[int] = ..., attempt: _Optional[int] = ..., epoch: _Optional[int] = ..., operators: _Optional[_Iterable[_Union[OperatorReport, _Mapping]]] = ..., sent: _Optional[_Iterable[_Union[SentFrames, _Mapping]]] = ..., received: _Optional[_Iterable[_Union[ReceivedFrames, _Mapping]]] = ..., error: _Optional[_Union[ErrorReport, _Mapping]] = ...) -> None: ...

class TaskProgress(_message.Message):
    __slots__ = ("epoch", "wave", "subtask", "attempt", "count", "rows", "place", "chains")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    WAVE_FIELD_NUMBER: _ClassVar[int]
    SUBTASK_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    CHAINS_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    wave: int
    subtask: int
    attempt: int
    count: int
    rows: int
    place: str
    chains: _containers.RepeatedCompositeFieldContainer[ChainReport]
    def __init__(self, epoch: _Optional[int] = ..., wave: _Optional[int] = ..., subtask: _Optional[int] = ..., attempt: _Optional[int] = ..., count: _Optional[int] = ..., rows: _Optional[int] = ..., place: _Optional[str] = ..., chains: _Optional[_Iterable[_Union[ChainReport, _Mapping]]] = ...) -> None: ...

class OperatorWarning(_message.Message):
    __slots__ = ("topic", "text")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    topic: str
    text: str
    def __init__(self, topic: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class OperatorReport(_message.Message):
    __slots__ = ("operator_id", "metrics", "counters", "warnings", "finish_type", "checkpoint", "levels", "latest")
    class CountersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    OPERATOR_ID_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    FINISH_TYPE_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    LATEST_FIELD_NUMBER: _ClassVar[int]
    operator_id: str
    metrics: _containers.RepeatedScalarFieldContainer[int]
    counters: _containers.ScalarMap[str, int]
    warnings: _containers.RepeatedCompositeFieldContainer[OperatorWarning]
    finish_type: str
    checkpoint: bytes
    levels: OperatorLevels
    latest: bytes
    def __init__(self, operator_id: _Optional[str] = ..., metrics: _Optional[_Iterable[int]] = ..., counters: _Optional[_Mapping[str, int]] = ..., warnings: _Optional[_Iterable[_Union[OperatorWarning, _Mapping]]] = ..., finish_type: _Optional[str] = ..., checkpoint: _Optional[bytes] = ..., levels: _Optional[_Union[OperatorLevels, _Mapping]] = ..., latest: _Optional[bytes] = ...) -> None: ...

class Level(_message.Message):
    __slots__ = ("event_time_us", "is_idle", "furthest_us")
    EVENT_TIME_US_FIELD_NUMBER: _ClassVar[int]
    IS_IDLE_FIELD_NUMBER: _ClassVar[int]
    FURTHEST_US_FIELD_NUMBER: _ClassVar[int]
    event_time_us: int
    is_idle: bool
    furthest_us: int
    def __init__(self, event_time_us: _Optional[int] = ..., is_idle: bool = ..., furthest_us: _Optional[int] = ...) -> None: ...

class OperatorLevels(_message.Message):
    __slots__ = ("input", "output", "is_closed")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    IS_CLOSED_FIELD_NUMBER: _ClassVar[int]
    input: Level
    output: Level
    is_closed: bool
    def __init__(self, input: _Optional[_Union[Level, _Mapping]] = ..., output: _Optional[_Union[Level, _Mapping]] = ..., is_closed: bool = ...) -> None: ...

class SentFrames(_message.Message):
    __slots__ = ("chain", "input", "first_target", "frames")
    CHAIN_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    FIRST_TARGET_FIELD_NUMBER: _ClassVar[int]
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    chain: int
    input: int
    first_target: int
    frames: bytes
    def __init__(self, chain: _Optional[int] = ..., input: _Optional[int] = ..., first_target: _Optional[int] = ..., frames: _Optional[bytes] = ...) -> None: ...

class ReceivedFrames(_message.Message):
    __slots__ = ("input", "first_sender", "attempts", "frames")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    FIRST_SENDER_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    input: int
    first_sender: int
    attempts: bytes
    frames: bytes
    def __init__(self, input: _Optional[int] = ..., first_sender: _Optional[int] = ..., attempts: _Optional[bytes] = ..., frames: _Optional[bytes] = ...) -> None: ...

class InputWatermark(_message.Message):
    __slots__ = ("is_present", "is_idle", "event_time_us")
    IS_PRESENT_FIELD_NUMBER: _ClassVar[int]
    IS_IDLE_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIME_US_FIELD_NUMBER: _ClassVar[int]
    is_present: bool
    is_idle: bool
    event_time_us: int
    def __init__(self, is_present: bool = ..., is_idle: bool = ..., event_time_us: _Optional[int] = ...) -> None: ...

class ErrorReport(_message.Message):
    __slots__ = ("operator_id", "message", "traceback", "domain", "retry", "kind")
    OPERATOR_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TRACEBACK_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    operator_id: str
    message: str
    traceback: str
    domain: str
    retry: str
    kind: str
    def __init__(self, operator_id: _Optional[str] = ..., message: _Optional[str] = ..., traceback: _Optional[str] = ..., domain: _Optional[str] = ..., retry: _Optional[str] = ..., kind: _Optional[str] = ...) -> None: ...

class CarriedState(_message.Message):
    __slots__ = ("chains", "operators")
    CHAINS_FIELD_NUMBER: _ClassVar[int]
    OPERATORS_FIELD_NUMBER: _ClassVar[int]
    chains: _containers.RepeatedCompositeFieldContainer[CarriedChain]
    operators: _containers.RepeatedCompositeFieldContainer[CarriedOperator]
    def __init__(self, chains: _Optional[_Iterable[_Union[CarriedChain, _Mapping]]] = ..., operators: _Optional[_Iterable[_Union[CarriedOperator, _Mapping]]] = ...) -> None: ...

class CarriedOperator(_message.Message):
    __slots__ = ("operator_id", "subtasks")
    OPERATOR_ID_FIELD_NUMBER: _ClassVar[int]
    SUBTASKS_FIELD_NUMBER: _ClassVar[int]
    operator_id: str
    subtasks: _containers.RepeatedCompositeFieldContainer[OperatorLevels]
    def __init__(self, operator_id: _Optional[str] = ..., subtasks: _Optional[_Iterable[_Union[OperatorLevels, _Mapping]]] = ...) -> None: ...

class CarriedChain(_message.Message):
    __slots__ = ("head", "subtask", "inputs", "operators", "is_closed")
    class OperatorsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    HEAD_FIELD_NUMBER: _ClassVar[int]
    SUBTASK_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OPERATORS_FIELD_NUMBER: _ClassVar[int]
    IS_CLOSED_FIELD_NUMBER: _ClassVar[int]
    head: str
    subtask: int
    inputs: _containers.RepeatedCompositeFieldContainer[InputWatermark]
    operators: _containers.ScalarMap[str, int]
    is_closed: bool
    def __init__(self, head: _Optional[str] = ..., subtask: _Optional[int] = ..., inputs: _Optional[_Iterable[_Union[InputWatermark, _Mapping]]] = ..., operators: _Optional[_Mapping[str, int]] = ..., is_closed: bool = ...) -> None: ...
