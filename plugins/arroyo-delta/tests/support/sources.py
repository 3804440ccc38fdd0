"""Sources as tests use them: made of a config as in YAML, planned once or again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from arroyo_delta.delta_pb2 import SourceConfig
from arroyo_delta.source import DeltaSource
from arroyo_delta.source_settings import check_source, resolve_source
from arroyo_testing import SourceHarness
from google.protobuf import json_format

from arroyo_core.api import with_defaults


def source_config(**config: Any) -> SourceConfig:
    return with_defaults(json_format.ParseDict(config, SourceConfig()))


class Source:
    """A job with one source."""

    def __init__(self, table: Path | str, **config: Any) -> None:
        self.config = source_config(table=str(table), **config)
        self.plan()
        self.harness = SourceHarness(lambda: DeltaSource(check_source(self.planned)))

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.harness.close()

    def plan(self) -> None:
        """As a driver does that begins."""
        self.planned = resolve_source(self.config)

    def column(self, name: str, **run: Any) -> list[Any]:
        """One column of the rows of an epoch, in order of its values; it ends when there is nothing to read."""
        found = self.harness.run(ends_at_wait=True, **run).table.column(name).to_pylist()
        return sorted(found, key=repr)
