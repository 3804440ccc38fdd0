"""Registers `filesystem.source` and `filesystem.sink`; everything heavy is imported when one is made."""

from __future__ import annotations

from arroyo_core.api import ConstructedOperator, OperatorConstructor, Registry
from arroyo_core.plugin import hookimpl
from arroyo_filesystem.filesystem_pb2 import SinkConfig, SourceConfig


class SourceConstructor(OperatorConstructor[SourceConfig]):
    """Makes `filesystem.source`.

    Writes the absolute path and the listing into the config itself, so that executors, which get the
    config as it is after planning, neither list again nor depend on their working directory.
    """

    config_type = SourceConfig
    inputs = (0, 0)

    def with_config(self, config: SourceConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_filesystem.source import FilesystemSource
        from arroyo_filesystem.source_settings import resolve_source

        return ConstructedOperator.from_source(FilesystemSource(resolve_source(config)))


class SinkConstructor(OperatorConstructor[SinkConfig]):
    """Makes `filesystem.sink`; writes the absolute path into the config, for executors elsewhere."""

    config_type = SinkConfig
    inputs = (1, 1)
    is_sink = True

    def with_config(self, config: SinkConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_filesystem.sink import FilesystemSink
        from arroyo_filesystem.sink_settings import resolve_sink

        return ConstructedOperator.from_operator(FilesystemSink(resolve_sink(config)))


@hookimpl
def arroyo_register(registry: Registry) -> None:
    registry.add("filesystem.source", SourceConstructor())
    registry.add("filesystem.sink", SinkConstructor())
