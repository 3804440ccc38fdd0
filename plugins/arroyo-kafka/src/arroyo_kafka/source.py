"""`kafka.source`: reads topics, each message exactly once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from arroyo_core.api import (
    ArroyoSchema,
    Dataset,
    DisplayableOperator,
    OperatorContext,
    SourceCollector,
    SourceContext,
    SourceFinishType,
    SourceOperator,
    TaskInfo,
)
from arroyo_core.api.updating import with_updating
from arroyo_core.errors import ArroyoError
from arroyo_core.state import global_table_config
from arroyo_kafka.bad_messages import BadMessages
from arroyo_kafka.client import Client
from arroyo_kafka.cluster import Cluster, InterruptedByControl
from arroyo_kafka.decoding import MessageDecoder
from arroyo_kafka.open_consumers import OpenConsumer, open_consumers
from arroyo_kafka.partitions import Partition
from arroyo_kafka.progress import BEGUN_TABLE, POSITIONS_TABLE
from arroyo_kafka.source_epoch import SourceEpoch
from arroyo_kafka.source_settings import SourceSettings
from arroyo_kafka.staged_files import LetterFolder, StagedFile

if TYPE_CHECKING:
    from confluent_kafka import Consumer

    from arroyo_core.state import TableConfig

COMMITS_TABLE = "c"
#: How long a commit waits for the consumer group, which nobody needs.
GROUP_SECONDS = 2.0

#: What a consumer of a source is, whatever `client` says.
_OWN_SETTINGS = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    # Tells how far a partition is whose last records are no messages.
    "enable.partition.eof": True,
}
#: What it is where `client` says nothing else: little memory, short waits.
_DEFAULTS = {
    "fetch.wait.max.ms": 50,
    "queued.max.messages.kbytes": 16 << 10,
    "fetch.max.bytes": 8 << 20,
    # Default a second: a queue that was full would stay empty for so long.
    "fetch.queue.backoff.ms": 10,
}


class Moved(msgspec.Struct, frozen=True):
    """What one subtask has for the commit of an epoch."""

    #: The next offsets of partitions that have moved: topic, partition, offset.
    offsets: tuple[tuple[str, int, int], ...] = ()
    letters: StagedFile | None = None


class KafkaSource(SourceOperator):
    """Reads the messages of all partitions, each in order; without `until` it has no end."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings

    def name(self) -> str:
        return "kafka.source"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        settings = self._settings
        schema = pa.schema([*settings.schema, *settings.metadata.fields])
        stream = ArroyoSchema(schema, settings.event_time_field)
        return with_updating(stream) if settings.format.format.is_updating else stream

    def tables(self) -> dict[str, TableConfig]:
        tables = dict(global_table_config(POSITIONS_TABLE, "the next offset of every partition", is_partitioned=True))
        tables |= global_table_config(BEGUN_TABLE, "which subtasks have begun", is_partitioned=True)
        tables |= global_table_config(
            COMMITS_TABLE, "offsets for the group, and dead letters", uses_two_phase_commit=True
        )
        return tables

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        """What positions are of. Of topics that are not read any more they are forgotten."""
        return {"topics": str(self._settings.topics)}

    def is_committing(self) -> bool:
        return True

    def emits_watermarks(self) -> bool:
        return self._settings.max_lateness_us is not None

    def display(self) -> DisplayableOperator:
        settings = self._settings
        rows = [
            ("bootstrap_servers", settings.client.bootstrap_servers),
            ("topics", str(settings.topics)),
            ("format", settings.format.name),
            ("start", str(settings.start)),
            ("until", str(settings.until) if settings.until else None),
            ("group", settings.group_id or None),
            ("bad_data", str(settings.bad_data)),
            ("client", settings.client.display() or None),
        ]
        return DisplayableOperator(self.name(), [(label, value) for label, value in rows if value is not None])

    def datasets(self) -> Sequence[Dataset]:
        """None by a pattern: which topics it matches only the cluster knows."""
        return [self._settings.client.dataset(name) for name in self._settings.topics.names]

    def lives_on(self) -> bool:
        return True

    def run(self, ctx: SourceContext, collector: SourceCollector) -> SourceFinishType:
        settings = self._settings
        epoch = SourceEpoch(settings, ctx, group=self._group(ctx.task_info))
        try:
            epoch.begin()
        except InterruptedByControl:
            return _finish_type(ctx)
        if epoch.is_done:
            epoch.save()
            return SourceFinishType.FINAL
        bad = BadMessages(settings.bad_data, settings.dead_letter, ctx)
        reader = settings.format.reader(settings.schema)
        decoder = MessageDecoder(reader, settings.metadata, ctx.output_schema.schema)
        key = self._consumer_key(ctx.task_info)
        consumer = open_consumers.borrow(key, lambda: make_consumer(settings, self._group(ctx.task_info)))
        try:
            try:
                finish = epoch.read(consumer, collector, decoder, bad)
            except InterruptedByControl:
                finish = _finish_type(ctx)
            letters = bad.close()
            moved = epoch.save()
            ctx.report_backlog(epoch.backlog(consumer))
        except BaseException:
            bad.abort()
            consumer.close()
            raise
        self._give_back(key, consumer, finish)
        if moved or letters is not None:
            offsets = tuple((part.topic, part.number, offset) for part, offset in moved.items())
            ctx.table_manager.insert_committing_data(COMMITS_TABLE, msgspec.json.encode(Moved(offsets, letters)))
        return finish

    def handle_commit(self, epoch: int, commit_data: Mapping[str, Mapping[int, bytes]], ctx: OperatorContext) -> None:
        found = [msgspec.json.decode(data, type=Moved) for data in commit_data.get(COMMITS_TABLE, {}).values()]
        if self._settings.dead_letter is not None:
            folder = LetterFolder(self._settings.dead_letter, ctx)
            folder.commit([moved.letters for moved in found if moved.letters is not None])
        offsets = {Partition(topic, number): offset for moved in found for topic, number, offset in moved.offsets}
        if offsets:
            self._tell_group(offsets, ctx)

    def _tell_group(self, offsets: Mapping[Partition, int], ctx: OperatorContext) -> None:
        """For tools that show the lag of consumer groups. The job does not need it, and does not fail for it."""
        group = self._group(ctx.task_info)
        try:
            Cluster(self._settings.client, seconds=GROUP_SECONDS).commit_group(group, offsets)
        except ArroyoError as error:
            ctx.warn(f"{error}; the job itself does not need it")

    def _group(self, task: TaskInfo) -> str:
        return self._settings.group_of(task.job_id, task.operator_id)

    def _consumer_key(self, task: TaskInfo) -> Hashable:
        client = self._settings.client
        settings = (client.bootstrap_servers, frozenset(client.settings.items()), self._settings.is_read_committed)
        return (*settings, self._group(task), task.job_id, task.operator_id, task.task_index)

    def _give_back(self, key: Hashable, consumer: OpenConsumer, finish: SourceFinishType) -> None:
        if finish is SourceFinishType.CHECKPOINTED:
            open_consumers.give_back(key, consumer)
        else:
            consumer.close()


def make_consumer(settings: SourceSettings, group: str) -> Consumer:
    """A consumer that reads as a source does; it takes no part in the group."""
    level = "read_committed" if settings.is_read_committed else "read_uncommitted"
    return make_reading_consumer(settings.client, {"group.id": group, "isolation.level": level})


def make_reading_consumer(client: Client, own: Mapping[str, str]) -> Consumer:
    """A consumer that commits nothing and says where partitions end, with these settings beside."""
    return client.consumer({**_OWN_SETTINGS, **own}, defaults=_DEFAULTS)


def _finish_type(ctx: SourceContext) -> SourceFinishType:
    message = ctx.control()
    if message is None:
        raise AssertionError("only a control message interrupts")
    return message.finish_type
