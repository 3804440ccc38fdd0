"""Registers the Kafka operators; everything heavy is imported when one is made."""

from __future__ import annotations

from arroyo_core.api import ConstructedOperator, OperatorConstructor, Registry
from arroyo_core.plugin import hookimpl
from arroyo_kafka.kafka_pb2 import SinkConfig


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


@hookimpl
def arroyo_register(registry: Registry) -> None:
    registry.add("kafka.sink", SinkConstructor())
