"""Registers the operators, and `arroyo files`; everything heavy is imported when one is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arroyo_core.api import ConstructedOperator, OperatorConstructor, Registry
from arroyo_core.plugin import hookimpl
from arroyo_filesystem.filesystem_pb2 import SinkConfig, SourceConfig

if TYPE_CHECKING:
    from arroyo_core.cli.commands import Commands


class SourceConstructor(OperatorConstructor[SourceConfig]):
    """Makes `filesystem.source`.

    The resolved config has absolute paths and the listing, so that executors neither list again nor depend
    on their working directory.
    """

    config_type = SourceConfig
    inputs = (0, 0)

    def resolve(self, config: SourceConfig) -> SourceConfig:
        from arroyo_filesystem.source_settings import resolve_source

        return resolve_source(config)

    def with_config(self, config: SourceConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_filesystem.source import FilesystemSource
        from arroyo_filesystem.source_settings import check_source

        return ConstructedOperator.from_source(FilesystemSource(check_source(config)))


class SinkConstructor(OperatorConstructor[SinkConfig]):
    """Makes `filesystem.sink`. The resolved config has an absolute path, for executors elsewhere."""

    config_type = SinkConfig
    inputs = (1, 1)
    is_sink = True

    def resolve(self, config: SinkConfig) -> SinkConfig:
        from arroyo_filesystem.sink_settings import resolve_sink

        return resolve_sink(config)

    def with_config(self, config: SinkConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_filesystem.sink import FilesystemSink
        from arroyo_filesystem.sink_settings import check_sink

        return ConstructedOperator.from_operator(FilesystemSink(check_sink(config)))


@hookimpl
def arroyo_register(registry: Registry) -> None:
    registry.add("filesystem.source", SourceConstructor())
    registry.add("filesystem.sink", SinkConstructor())


@hookimpl
def arroyo_add_command(commands: Commands) -> None:
    # Imported here: executors load plugins too, and need no commands.
    from arroyo_filesystem.commands.command import add_command

    add_command(commands)
