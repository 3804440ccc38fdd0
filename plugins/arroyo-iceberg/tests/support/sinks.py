"""Sinks as tests use them: made of a config as in YAML, with the driver that commits for all subtasks."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from arroyo_iceberg.iceberg_pb2 import SinkConfig
from arroyo_iceberg.sink import IcebergSink
from arroyo_iceberg.sink_settings import SinkSettings, check_sink
from arroyo_testing import ParallelHarness
from google.protobuf import json_format
from pyiceberg.table import Table

from arroyo_core.api import ArroyoSchema, with_defaults

from .tables import catalog_config

CommitData = Mapping[str, Mapping[int, bytes]]
TABLE = "shop.rows"


def sink_settings(catalog: Mapping[str, Any], **config: Any) -> SinkSettings:
    written: dict[str, Any] = {"catalog": dict(catalog), "table": TABLE, "if_missing": "create", **config}
    return check_sink(with_defaults(json_format.ParseDict(written, SinkConfig())))


def plan_sink(stream: ArroyoSchema | pa.Schema, folder: Path, **config: Any) -> None:
    """Plan a sink, and run nothing; raises what planning raises."""
    settings = sink_settings(**{"catalog": catalog_config(folder), **config})
    IcebergSink(settings).output_schema([stream if isinstance(stream, ArroyoSchema) else ArroyoSchema(stream)])


class Sink:
    """All subtasks of a sink."""

    def __init__(
        self,
        stream: ArroyoSchema | pa.Schema,
        *,
        folder: Path | None = None,
        catalog: Mapping[str, Any] | None = None,
        parallelism: int = 1,
        incarnation: str = "00000000000000a1",
        **config: Any,
    ) -> None:
        self.settings = sink_settings(catalog or catalog_config(folder or Path()), **config)
        self._stream = stream if isinstance(stream, ArroyoSchema) else ArroyoSchema(stream)
        self.harness = ParallelHarness(
            self.make, inputs=[self._stream], parallelism=parallelism, incarnation=incarnation
        )

    def __enter__(self) -> Sink:
        return self

    def __exit__(self, *_: object) -> None:
        self.harness.close()

    def make(self) -> IcebergSink:
        sink = IcebergSink(self.settings)
        sink.output_schema([self._stream])
        return sink

    @property
    def table(self) -> Table:
        """The table as others see it now."""
        return self.settings.catalog.load(self.settings.table)

    def rows(self, **scan: Any) -> list[dict[str, Any]]:
        return self.table.scan(**scan).to_arrow().to_pylist()

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

    def commit_at_once(self, staged: CommitData, *, drivers: int) -> None:
        """The same epoch by several drivers; none of them may fail."""
        token, together = self.harness.last_token, threading.Barrier(drivers)
        problems: list[BaseException] = []

        def commit() -> None:
            together.wait()
            try:
                self.commit(staged, token=token)
            except BaseException as error:
                problems.append(error)

        threads = [threading.Thread(target=commit) for _ in range(drivers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []
        self.harness.restore()

    def write(self, rows: pa.Table | pa.RecordBatch | Sequence[Mapping[str, Any]]) -> CommitData:
        """One epoch, committed; the next one has fresh subtasks."""
        staged = self.stage(rows)
        self.commit(staged)
        self.harness.restore()
        return staged
