"""What a source asks a cluster beside messages: topics, offsets, and what consumer groups have committed.

Every call waits in short steps and asks in between whether to go on: raises `InterruptedByControl` where not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYetError
from typing import TYPE_CHECKING, Any

from arroyo_core.errors import ExternalError
from arroyo_kafka.client import CALL_SECONDS, Client
from arroyo_kafka.partitions import Partition, Topic, TopicSelection

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, KafkaException

#: How long one step of waiting takes.
STEP_SECONDS = 0.1
#: Before the same is asked again, while a broker is not ready to answer.
PAUSE_SECONDS = 0.1
#: What librdkafka calls an offset that nobody knows is negative.
_NO_OFFSET = -1


class InterruptedByControl(Exception):  # noqa: N818 -- not an error: the epoch is over
    """The caller is to end its epoch; nothing has changed."""


class Cluster:
    """Asks the brokers of one cluster. Connections last as long as the object does."""

    def __init__(
        self, client: Client, *, is_interrupted: Callable[[], bool] = lambda: False, seconds: float = CALL_SECONDS
    ) -> None:
        """`seconds` is how long a call waits for an answer."""
        self._client = client
        self._seconds = seconds
        self._admin = client.admin(on_error=self._handle_error)
        self._is_interrupted = is_interrupted
        #: Of a connection: that it is refused for what we are, and not for now.
        self._refusal: KafkaError | None = None

    def find_topics(self, selection: TopicSelection) -> Sequence[Topic]:
        """The topics that there are of those selected, by name; brokers' own topics are never matched by a pattern."""
        is_pattern = selection.pattern is not None
        names = selection.choose(self.topic_names()) if is_pattern else selection.names
        return [topic for topic in self.describe(names, has_internal=not is_pattern) if topic.partitions]

    def topic_names(self) -> Sequence[str]:
        """All topics of the cluster."""
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + self._seconds
        while True:
            try:
                return sorted(self._admin.list_topics(timeout=STEP_SECONDS * 5).topics)
            except KafkaException as error:
                self._pause_or_raise(error, "cannot list the topics", deadline)

    def describe(self, names: Iterable[str], *, has_internal: bool = True) -> Sequence[Topic]:
        """These topics, but for those that are not there."""
        from confluent_kafka import KafkaError, TopicCollection

        wanted = sorted(set(names))
        if not wanted:
            return []
        ask = lambda: self._admin.describe_topics(TopicCollection(wanted), request_timeout=self._seconds)  # noqa: E731
        missing = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID)
        found = self._answers(ask, "cannot describe the topics", missing)
        return [
            Topic(name, str(item.topic_id), tuple(sorted(part.id for part in item.partitions)))
            for name, item in sorted(found.items())
            if has_internal or not item.is_internal
        ]

    def earliest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The offset of the first message that is left."""
        return self._offsets(partitions, lambda spec: spec.earliest(), is_committed=False)

    def latest(self, partitions: Iterable[Partition], *, is_committed: bool) -> dict[Partition, int]:
        """The offset after the last message; `is_committed` stops before the first transaction that is open."""
        return self._offsets(partitions, lambda spec: spec.latest(), is_committed=is_committed)

    def at_time(self, partitions: Iterable[Partition], time_ms: int, *, is_committed: bool) -> dict[Partition, int]:
        """The offset of the first message of that time or later; the end where there is none."""
        wanted = list(partitions)
        found = self._offsets(wanted, lambda spec: spec.for_timestamp(time_ms), is_committed=is_committed)
        ends = self.latest([part for part in wanted if found[part] < 0], is_committed=is_committed)
        return {**found, **ends}

    def group_offsets(self, group: str, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Where a consumer group is; partitions that it has no offset of are left out."""
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        places = [TopicPartition(part.topic, part.number) for part in partitions]
        if not places:
            return {}
        request = [ConsumerGroupTopicPartitions(group, places)]
        ask = lambda: self._admin.list_consumer_group_offsets(request, request_timeout=self._seconds)  # noqa: E731
        answer = self._answers(ask, f"cannot read the offsets of group {group!r}")[group]
        return {
            Partition(place.topic, place.partition): place.offset
            for place in answer.topic_partitions
            if place.offset > _NO_OFFSET and place.error is None
        }

    def commit_group(self, group: str, positions: Mapping[Partition, int]) -> None:
        """Tell a consumer group where we are; raises `ExternalError` where it is not to be told."""
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        places = [TopicPartition(part.topic, part.number, offset) for part, offset in positions.items()]
        request = [ConsumerGroupTopicPartitions(group, places)]
        ask = lambda: self._admin.alter_consumer_group_offsets(request, request_timeout=self._seconds)  # noqa: E731
        answer = self._answers(ask, f"cannot commit offsets of group {group!r}")[group]
        for place in answer.topic_partitions:
            if place.error is not None:
                where = Partition(place.topic, place.partition)
                raise self._client.translate(place.error, f"cannot commit the offset of {where} for group {group!r}")

    def _offsets(
        self, partitions: Iterable[Partition], choose: Callable[[Any], Any], *, is_committed: bool
    ) -> dict[Partition, int]:
        from confluent_kafka import IsolationLevel, TopicPartition
        from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # in its __init__, not in __all__

        spec = choose(OffsetSpec)
        wanted = {TopicPartition(part.topic, part.number): spec for part in partitions}
        if not wanted:
            return {}
        level = IsolationLevel.READ_COMMITTED if is_committed else IsolationLevel.READ_UNCOMMITTED
        answers = self._answers(
            lambda: self._admin.list_offsets(wanted, isolation_level=level, request_timeout=self._seconds),
            "cannot read the offsets of the topics",
        )
        return {Partition(place.topic, place.partition): found.offset for place, found in answers.items()}

    def _answers(
        self, ask: Callable[[], Mapping[Any, Future[Any]]], doing: str, missing: Sequence[int] = ()
    ) -> dict[Any, Any]:
        """What was asked for, by what it was asked of, without those that fail with a code of `missing`."""
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + self._seconds
        while True:
            found = {}
            try:
                for key, future in ask().items():
                    try:
                        found[key] = self._wait(future)
                    except KafkaException as error:
                        if error.args[0].code() not in missing:
                            raise
                return found
            except KafkaException as error:
                self._pause_or_raise(error, doing, deadline)

    def _wait(self, future: Future[Any]) -> Any:
        while True:
            try:
                return future.result(STEP_SECONDS)
            except NotYetError:
                self._look()

    def _pause_or_raise(self, error: KafkaException, doing: str, deadline: float) -> None:
        """Before asking again; raises what a broker said that will not change by itself, or that has lasted."""
        failure = self._client.translate(error, doing)
        if not isinstance(failure, ExternalError) or time.monotonic() > deadline:
            raise failure from error
        self._look()
        time.sleep(PAUSE_SECONDS)

    def _look(self) -> None:
        """Whether there is a reason not to wait any longer."""
        self._admin.poll(0)
        if self._refusal is not None:
            raise self._client.translate(self._refusal, "cannot connect")
        if self._is_interrupted():
            raise InterruptedByControl

    def _handle_error(self, error: KafkaError) -> None:
        from confluent_kafka import KafkaError

        if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL):
            self._refusal = error
