"""Sinks as tests use them: made of a config as in YAML."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from arroyo_delta.delta_pb2 import SinkConfig
from arroyo_delta.sink import DeltaSink
from arroyo_delta.sink_settings import check_sink
from arroyo_testing import ParallelHarness
from google.protobuf import json_format

from arroyo_core.api import ArroyoSchema, CommitToken, with_defaults

CommitData = Mapping[str, Mapping[int, bytes]]


def sink_config(**config: Any) -> SinkConfig:
    return with_defaults(json_format.ParseDict(config, SinkConfig()))


class Sink:
    """All subtasks of a sink, and the drivers that commit for them."""

    def __init__(self, table: Path | str, schema: pa.Schema, *, parallelism: int = 2, **config: Any) -> None:
        self.table = Path(table)
        self.schema = schema
        settings = check_sink(sink_config(table=str(table), **{"if_missing": "create", **config}))
        self.harness = ParallelHarness(
            lambda: DeltaSink(settings), inputs=[ArroyoSchema(schema)], parallelism=parallelism
        )

    def __enter__(self) -> Sink:
        return self

    def __exit__(self, *_: object) -> None:
        self.harness.close()

    def stage(self, rows: list[dict[str, Any]]) -> CommitData:
        """One epoch up to its checkpoint; the next one has fresh subtasks."""
        for row in rows:
            self.harness.process(pa.RecordBatch.from_pylist([row], schema=self.schema))
        staged: CommitData = self.harness.checkpoint()
        return staged

    def restore(self) -> None:
        self.harness.restore()

    def commit(self, staged: CommitData, *, epoch: int, generation: int = 1) -> None:
        token = CommitToken("incarnation", generation, epoch)
        self.harness.commit(staged, token=token)

    def write(self, rows: list[dict[str, Any]], *, epoch: int, generation: int = 1) -> CommitData:
        staged = self.stage(rows)
        self.commit(staged, epoch=epoch, generation=generation)
        self.restore()
        return staged
