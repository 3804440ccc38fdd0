"""Registers the Kafka operators; everything heavy is imported when one is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arroyo_core.api import ConstructedOperator, OperatorConstructor, Registry
from arroyo_core.plugin import hookimpl
from arroyo_kafka.kafka_pb2 import SourceConfig

if TYPE_CHECKING:
    from arroyo_core.cli.commands import Commands


class SourceConstructor(OperatorConstructor[SourceConfig]):
    """Makes `kafka.source`. The resolved config has what executors cannot find out: absolute paths, schema files."""

    config_type = SourceConfig
    inputs = (0, 0)

    def resolve(self, config: SourceConfig) -> SourceConfig:
        from arroyo_kafka.source_settings import resolve_source

        return resolve_source(config)

    def with_config(self, config: SourceConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_kafka.source import KafkaSource
        from arroyo_kafka.source_settings import check_source

        return ConstructedOperator.from_source(KafkaSource(check_source(config)))


@hookimpl
def arroyo_register(registry: Registry) -> None:
    registry.add("kafka.source", SourceConstructor())


@hookimpl
def arroyo_add_command(commands: Commands) -> None:
    # Imported here: executors load plugins too, and need no commands.
    from arroyo_kafka.commands import command

    command.add_command(commands)
