"""Sinks as tests use them: made of a config as in YAML, with clients and sessions of the test's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from arroyo_kafka.client import Client
from arroyo_kafka.commit import Limits
from arroyo_kafka.kafka_pb2 import SinkConfig
from arroyo_kafka.sessions import Sessions
from arroyo_kafka.sink import DirectSink, KafkaSink, TransactionalSink
from arroyo_kafka.sink_settings import Delivery, SinkSettings, check_sink
from arroyo_testing import ParallelHarness
from arroyo_testing.clock import FakeClock
from google.protobuf import json_format

from arroyo_core.api import ArroyoSchema, with_defaults

CommitData = Mapping[str, Mapping[int, bytes]]
#: As it is in YAML: `name: column`, in order.
_ORDERED_MAPS = ("headers",)


def sink_config(**config: Any) -> SinkConfig:
    written = {"format": "json", **config}
    for name in _ORDERED_MAPS:
        if name in written:
            written[name] = [{"name": key, "column": column} for key, column in written[name].items()]
    return with_defaults(json_format.ParseDict(written, SinkConfig()))


def sink_settings(**config: Any) -> SinkSettings:
    return check_sink(sink_config(**config))


class Sink:
    """All subtasks of a sink, and the driver that commits for them: `sessions` is what a driver's process has."""

    def __init__(
        self,
        stream: ArroyoSchema | pa.Schema,
        *,
        through: Client | None = None,
        parallelism: int = 1,
        sessions: Sessions | None = None,
        limits: Limits | None = None,
        **config: Any,
    ) -> None:
        self.settings = sink_settings(**config)
        if through is not None:
            self.use(through)
        self.sessions = sessions or Sessions()
        self._limits = limits
        self.clock = FakeClock()
        self._stream = stream if isinstance(stream, ArroyoSchema) else ArroyoSchema(stream)
        self.harness = ParallelHarness(self.make, inputs=[self._stream], parallelism=parallelism, clock=self.clock)

    def __enter__(self) -> Sink:
        return self

    def __exit__(self, *_: object) -> None:
        self.harness.close()
        self.sessions.close()

    def make(self) -> KafkaSink:
        if self.settings.delivery is Delivery.AT_LEAST_ONCE:
            return DirectSink(self.settings)
        return TransactionalSink(self.settings, self.sessions, self._limits)

    def use(self, client: Client) -> None:
        """From now on this client is used, by sinks that are made."""
        self.settings = replace(self.settings, client=client)

    def begin_process(self) -> None:
        """Another process: nothing of the last one is there, and nothing of it was closed."""
        self.sessions = Sessions()

    def stage(self, rows: pa.Table | pa.RecordBatch | Sequence[Mapping[str, Any]]) -> CommitData:
        """One epoch up to its checkpoint."""
        if not isinstance(rows, pa.Table | pa.RecordBatch):
            rows = pa.Table.from_pylist(list(rows), schema=self._stream.schema)
        for batch in rows.to_batches() if isinstance(rows, pa.Table) else [rows]:
            self.harness.process(batch)
        staged: CommitData = self.harness.checkpoint()
        return staged

    def commit(self, staged: CommitData, **token: Any) -> None:
        self.harness.commit(staged, **token)

    def write(self, rows: pa.Table | pa.RecordBatch | Sequence[Mapping[str, Any]]) -> CommitData:
        """One epoch, committed; the next one has fresh subtasks."""
        staged = self.stage(rows)
        if self.settings.delivery is Delivery.EXACTLY_ONCE:
            self.commit(staged)
        self.harness.restore()
        return staged
