"""One epoch of one subtask of `kafka.source`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from arroyo_core.api import SourceCollector, SourceContext, SourceFinishType
from arroyo_core.errors import ExternalError
from arroyo_kafka.assignment import Assignment
from arroyo_kafka.bad_messages import BadMessages
from arroyo_kafka.decoding import MessageDecoder, event_times_us
from arroyo_kafka.discovery import Discovery
from arroyo_kafka.event_time import EventTime, Ints
from arroyo_kafka.open_consumers import OpenConsumer
from arroyo_kafka.partitions import Partition
from arroyo_kafka.progress import Progress
from arroyo_kafka.source_settings import SourceSettings

if TYPE_CHECKING:
    from confluent_kafka import Message

#: How long to wait for messages: hardly while they come, longer while none come.
BUSY_SECONDS = 0.01
QUIET_SECONDS = 0.05


class SourceEpoch:
    """Reads the partitions of one subtask until the epoch is over: `begin`, `read`, then `save`."""

    def __init__(self, settings: SourceSettings, ctx: SourceContext, *, group: str) -> None:
        self._settings = settings
        self._ctx = ctx
        self._progress = Progress(ctx.table_manager, ctx.task_info)
        self._discovery = Discovery(settings, ctx, self._progress, group=group)
        event_time = EventTime(max_lateness_us=settings.max_lateness_us, idle_after_us=settings.idle_after_us)
        self._assignment = Assignment(event_time, now_us=ctx.clock.now_us())

    def begin(self) -> None:
        """Know the partitions; raises `InterruptedByControl` where the epoch is over before that."""
        for partition, state in self._progress.partitions().items():
            if self._settings.topics.is_selected(partition.topic):
                self._assignment.add(partition, state)
            else:
                self._progress.forget(partition)
        if not self._progress.has_begun or (self._discovery.is_due and not self.is_done):
            self._look()

    @property
    def is_done(self) -> bool:
        """Whether the data has ended. A subtask without partitions has none, if there is an end at all."""
        return self._settings.until is not None and self._assignment.is_done

    def read(
        self, consumer: OpenConsumer, collector: SourceCollector, decoder: MessageDecoder, bad: BadMessages
    ) -> SourceFinishType:
        """Until there is a control message, or the end of the data."""
        assignment, ctx = self._assignment, self._ctx
        consumer.go_to(assignment.positions())
        for partition in consumer.at_end:
            assignment.event_time[assignment.numbers[partition]].is_at_end = True
        seconds = BUSY_SECONDS
        while not self.is_done:
            self._send_watermark(collector)
            message = ctx.control()
            if message is not None:
                return message.finish_type
            if self._discovery.is_due:
                self._look()
                consumer.go_to(assignment.positions())
            limit = self._limit()
            taken = self._take(consumer, limit, seconds)
            seconds = BUSY_SECONDS if taken else QUIET_SECONDS
            messages = [item for item in taken if item.error() is None]
            if messages:
                self._handle_messages(messages, consumer, collector, decoder, bad)
            if len(messages) < len(taken):
                self._handle_events([item for item in taken if item.error() is not None], consumer)
            if len(taken) < limit:
                # All that was there is taken: who has sent nothing for long has nothing.
                assignment.event_time.check_idle(now_us=ctx.clock.now_us())
        return SourceFinishType.FINAL

    def save(self) -> Mapping[Partition, int]:
        """Keep the positions; returns those that have moved in this epoch."""
        moved = {}
        is_timed = self._settings.idle_after_us is not None
        for partition, state, has_moved in self._assignment.stored(now_us=self._ctx.clock.now_us(), is_timed=is_timed):
            self._progress.save(partition, state)
            if has_moved:
                moved[partition] = state.offset
        return moved

    def backlog(self, consumer: OpenConsumer) -> int:
        """How many offsets there are between here and the ends of the partitions, as far as they are known."""
        rows = 0
        for partition, offset in consumer.positions.items():
            end, until = consumer.end_offset(partition), self._assignment.until(partition)
            if end is not None:
                rows += max(0, (end if until is None else min(end, until)) - offset)
        return rows

    def _look(self) -> None:
        """Look for changes of the topics. Where nobody answers, what is known holds, if anything is known."""
        try:
            self._discovery.look(self._assignment)
        except ExternalError as error:
            if not self._progress.has_begun:
                raise
            self._ctx.warn(f"cannot look for new partitions: {error}")

    def _take(self, consumer: OpenConsumer, limit: int, seconds: float) -> Sequence[Message]:
        if consumer.positions:
            return consumer.take(limit, seconds)
        self._ctx.wait(QUIET_SECONDS)
        return []

    def _limit(self) -> int:
        left = self._ctx.rows_left()
        return self._settings.batch_rows if left is None else max(1, min(self._settings.batch_rows, left))

    def _handle_messages(
        self,
        messages: Sequence[Message],
        consumer: OpenConsumer,
        collector: SourceCollector,
        decoder: MessageDecoder,
        bad: BadMessages,
    ) -> None:
        number_of, count = self._assignment.numbers, len(messages)
        numbers = np.fromiter((number_of[item.topic(), item.partition()] for item in messages), np.int64, count)
        offsets = np.fromiter((item.offset() for item in messages), np.int64, count)
        is_wanted = self._assignment.is_wanted(numbers, offsets)
        self._advance(numbers, offsets + 1, consumer)
        if not is_wanted.all():
            messages = [message for message, is_kept in zip(messages, is_wanted.tolist(), strict=True) if is_kept]
            numbers = numbers[is_wanted]
        rows = decoder.decode(messages, bad)
        if rows.batch.num_rows:
            collector.collect(rows.batch)
            self._observe(rows.batch, numbers if rows.origins is None else numbers[rows.origins])

    def _advance(self, numbers: Ints, offsets: Ints, consumer: OpenConsumer) -> None:
        for partition, offset in self._assignment.advance(numbers, offsets):
            consumer.at_end.discard(partition)
            consumer.positions[partition] = offset
            if self._assignment.is_partition_done(partition):
                consumer.drop(partition)

    def _observe(self, batch: pa.RecordBatch, numbers: Ints) -> None:
        times_us = None
        if self._settings.max_lateness_us is not None:
            times = batch.column(self._settings.event_time_field)
            if times.null_count:
                self._ctx.count("null_event_times", times.null_count)
            times_us = event_times_us(times)
        self._assignment.event_time.observe(numbers, times_us, now_us=self._ctx.clock.now_us())

    def _handle_events(self, events: Sequence[Message], consumer: OpenConsumer) -> None:
        """Ends of partitions, and errors. After the messages that were taken with them: an end is after those."""
        from confluent_kafka import KafkaError

        for event in events:
            error, partition = event.error(), Partition(event.topic() or "", event.partition() or 0)
            if error is None or partition not in consumer.positions:
                continue
            if error.code() == KafkaError._PARTITION_EOF:
                self._reach_end(partition, event.offset() or 0, consumer)
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                self._discovery.recover(partition, self._assignment)
                self._go_on(partition, consumer)
            elif error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID):
                self._discovery.hurry()
            else:
                self._handle_error(self._settings.client.translate(error, f"cannot read {partition}"))

    def _reach_end(self, partition: Partition, offset: int, consumer: OpenConsumer) -> None:
        """What is between the last message and the end are records of transactions, and messages compacted away."""
        if not self._assignment.reach_end(partition, offset):
            return
        consumer.at_end.add(partition)
        consumer.positions[partition] = offset
        if self._assignment.is_partition_done(partition):
            consumer.drop(partition)

    def _go_on(self, partition: Partition, consumer: OpenConsumer) -> None:
        positions = self._assignment.positions()
        consumer.drop(partition)
        if partition in positions:
            consumer.add({partition: positions[partition]})

    def _handle_error(self, error: Exception) -> None:
        """An outage passes, and librdkafka goes on trying; anything else does not."""
        if not isinstance(error, ExternalError):
            raise error
        self._ctx.warn(str(error))

    def _send_watermark(self, collector: SourceCollector) -> None:
        watermark = self._assignment.event_time.take()
        if watermark is not None:
            collector.broadcast_watermark(watermark)
