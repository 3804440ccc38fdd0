"""Registers the Kafka operators; everything heavy is imported when one is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arroyo_core.api import ConstructedOperator, LookupConstructor, LookupTable, OperatorConstructor, Registry
from arroyo_core.plugin import hookimpl
from arroyo_kafka.kafka_pb2 import LookupConfig, SinkConfig, SourceConfig

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


class SinkConstructor(OperatorConstructor[SinkConfig]):
    """Makes `kafka.sink`. The resolved config has the format's settings with the content of their files."""

    config_type = SinkConfig
    inputs = (1, 1)
    is_sink = True

    def resolve(self, config: SinkConfig) -> SinkConfig:
        from arroyo_kafka.sink_settings import resolve_sink

        return resolve_sink(config)

    def with_config(self, config: SinkConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_kafka.sink import make_sink
        from arroyo_kafka.sink_settings import check_sink

        return ConstructedOperator.from_operator(make_sink(check_sink(config)))


class TopicLookupConstructor(LookupConstructor[LookupConfig]):
    """Makes `kafka.lookup`. The resolved config has the format's settings with the content of their files."""

    config_type = LookupConfig

    def resolve(self, config: LookupConfig) -> LookupConfig:
        from arroyo_kafka.lookup import resolve_lookup

        return resolve_lookup(config)

    def with_config(self, config: LookupConfig, registry: Registry) -> LookupTable:
        from arroyo_kafka.lookup import KafkaLookup, check_lookup

        return KafkaLookup(check_lookup(config))


@hookimpl
def arroyo_register(registry: Registry) -> None:
    registry.add("kafka.source", SourceConstructor())
    registry.add("kafka.sink", SinkConstructor())
    registry.add_lookup("kafka.lookup", TopicLookupConstructor())


@hookimpl
def arroyo_add_command(commands: Commands) -> None:
    # Imported here: executors load plugins too, and need no commands.
    from arroyo_kafka.commands import command

    command.add_command(commands)
