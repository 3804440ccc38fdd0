"""`kafka.sink`: rows as messages, in a transaction with the epoch they belong to, or at once."""

from __future__ import annotations

import os
from abc import ABC
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    CheckpointBarrier,
    Dataset,
    DisplayableOperator,
    OperatorContext,
    TaskInfo,
)
from arroyo_core.state import global_table_config
from arroyo_kafka.client import Client
from arroyo_kafka.commit import Commit, Limits
from arroyo_kafka.messages import MessageEncoder, is_upsert
from arroyo_kafka.sending import Sender
from arroyo_kafka.sessions import Sessions
from arroyo_kafka.sink_settings import Delivery, SinkSettings
from arroyo_kafka.staging import Staged, StagedEpoch, StagedWriter

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

TABLE = "staged"


def make_sink(settings: SinkSettings) -> ArrowOperator:
    """The operator for the `delivery` that was chosen."""
    return DirectSink(settings) if settings.delivery is Delivery.AT_LEAST_ONCE else TransactionalSink(settings)


class KafkaSink(ArrowOperator, ABC):
    """What both kinds share: which rows they take, and how these become messages."""

    def __init__(self, settings: SinkSettings) -> None:
        self._settings = settings
        self._encoder: MessageEncoder | None = None

    def name(self) -> str:
        return "kafka.sink"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        MessageEncoder(self._settings, inputs[0])
        return inputs[0]

    def is_sink(self) -> bool:
        return True

    def routing_keys(self, inputs: Sequence[ArroyoSchema]) -> Sequence[tuple[str, ...] | None]:
        # The changes of a key in their order, and so in one subtask.
        return [self._settings.key_fields if is_upsert(self._settings, inputs[0]) else None]

    def display(self) -> DisplayableOperator:
        settings = self._settings
        fields = [
            ("brokers", settings.client.bootstrap_servers),
            ("topic", settings.topic or f"of column {settings.topic_field}"),
            ("format", settings.format.name),
            ("delivery", str(settings.delivery)),
        ]
        if settings.key_fields:
            fields.append(("key_fields", ", ".join(settings.key_fields)))
        if settings.client.settings:
            fields.append(("client", settings.client.display()))
        return DisplayableOperator(self.name(), fields)

    def datasets(self) -> Sequence[Dataset]:
        return [self._settings.client.dataset(self._settings.topic)] if self._settings.topic else []

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        self._encoder = MessageEncoder(self._settings, ctx.input_schemas[0])

    @property
    def _started(self) -> MessageEncoder:
        if self._encoder is None:
            raise AssertionError("on_start comes first")
        return self._encoder


class TransactionalSink(KafkaSink):
    """Stages messages with the checkpoint; the driver produces them in a transaction when it is published."""

    def __init__(self, settings: SinkSettings, sessions: Sessions | None = None, limits: Limits | None = None) -> None:
        super().__init__(settings)
        self._sessions = sessions
        self._limits = limits or Limits()
        self._writer: StagedWriter | None = None

    def is_committing(self) -> bool:
        return True

    def guarantee_reason(self) -> str:
        return "messages and the epoch's marker are one transaction; consumers must read committed messages only"

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        return dict(global_table_config(TABLE, "messages to commit", uses_two_phase_commit=True))

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        # The marker is there: under another one a commit that is repeated would not find it.
        place = self._settings.progress_topic or self._settings.topic
        return {"marker": f"{'topic' if self._settings.progress_topic else 'offset of topic'} {place}"}

    def on_start(self, ctx: OperatorContext) -> None:
        super().on_start(ctx)
        self._writer = None

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        if self._writer is None:
            self._writer = StagedWriter(self._started.schema, self._describe(ctx))
        self._writer.write(self._started.encode(batch))

    def handle_checkpoint(self, barrier: CheckpointBarrier, ctx: OperatorContext, collector: ArrowCollector) -> None:
        writer, self._writer = self._writer, None
        stream = writer.close() if writer is not None else b""
        ctx.table_manager.insert_committing_data(TABLE, stream)
        if stream and not self._has_earlier(ctx):
            # Once in an incarnation: from the next epoch on there must be a marker.
            view = ctx.table_manager.get_global_keyed_state(TABLE)
            view.insert(ctx.token.incarnation, True)

    def handle_commit(self, epoch: int, commit_data: Mapping[str, Mapping[int, bytes]], ctx: OperatorContext) -> None:
        staged = StagedEpoch(commit_data.get(TABLE, {}))
        if self._settings.topic and not self._settings.progress_topic:
            # It is in `state_settings`, so that it cannot be another one than when the messages were staged.
            staged.check_topic(self._settings.topic)
        Commit(
            settings=self._settings,
            sessions=self._sessions or process_sessions(os.getpid()),
            ctx=ctx,
            staged=staged,
            limits=self._limits,
        ).run()

    def _describe(self, ctx: OperatorContext) -> Staged:
        return Staged(
            generation=ctx.token.generation,
            time_us=ctx.clock.now_us(),
            has_earlier=self._has_earlier(ctx),
            topic=self._settings.topic,
            headers=tuple(name for name, _ in self._settings.headers),
        )

    def _has_earlier(self, ctx: OperatorContext) -> bool:
        # By incarnation: what a fork has of the other job does not count, its marker is another one.
        return ctx.token.incarnation in ctx.table_manager.get_global_keyed_state(TABLE)


class DirectSink(KafkaSink):
    """Produces messages while the epoch runs, and waits for them at its end."""

    def __init__(self, settings: SinkSettings) -> None:
        super().__init__(settings)
        self._sender: Sender | None = None
        self._staged = Staged(topic=settings.topic, headers=tuple(name for name, _ in settings.headers))

    def guarantee_reason(self) -> str:
        return "messages are produced while an epoch runs: those of an epoch that is run again come twice"

    def on_start(self, ctx: OperatorContext) -> None:
        super().on_start(ctx)
        self._sender = process_senders(os.getpid()).take(self._settings.client, ctx.task_info)
        self._sender.forget()

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        messages = self._started.encode(batch)
        with self._sending(ctx) as sender:
            sender.send(messages, self._staged)

    def handle_checkpoint(self, barrier: CheckpointBarrier, ctx: OperatorContext, collector: ArrowCollector) -> None:
        with self._sending(ctx) as sender:
            sender.flush()

    @contextmanager
    def _sending(self, ctx: OperatorContext) -> Iterator[Sender]:
        """The sender; after a failure the next epoch has another one."""
        from confluent_kafka import KafkaException

        if self._sender is None:
            raise AssertionError("on_start comes first")
        try:
            yield self._sender
        except BaseException as error:
            process_senders(os.getpid()).drop(self._settings.client, ctx.task_info)
            if isinstance(error, KafkaException):
                raise self._settings.client.translate(error, "cannot produce messages") from error
            raise


class Senders:
    """The producers of a process, by subtask: they stay from epoch to epoch."""

    def __init__(self) -> None:
        self._open: dict[Hashable, Sender] = {}

    def take(self, client: Client, task: TaskInfo) -> Sender:
        key = _key(client, task)
        if key not in self._open:
            self._open[key] = Sender(client, {"enable.idempotence": True})
        return self._open[key]

    def drop(self, client: Client, task: TaskInfo) -> None:
        self._open.pop(_key(client, task), None)


@lru_cache(maxsize=1)
def process_sessions(_pid: int) -> Sessions:
    # A forked process has none of its parent's threads, hence the process id.
    return Sessions()


@lru_cache(maxsize=1)
def process_senders(_pid: int) -> Senders:
    return Senders()


def _key(client: Client, task: TaskInfo) -> Hashable:
    return (
        client.bootstrap_servers,
        frozenset(client.settings.items()),
        task.job_id,
        task.operator_id,
        task.task_index,
    )
