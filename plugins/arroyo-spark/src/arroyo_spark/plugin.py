"""Registers the operators of this distribution; everything heavy is imported when one is made."""

from __future__ import annotations

from arroyo_core.api import ConstructedOperator, OperatorConstructor, Registry
from arroyo_core.plugin import hookimpl
from arroyo_spark.spark_pb2 import InputConfig, SinkConfig


class InputConstructor(OperatorConstructor[InputConfig]):
    """Makes `spark.input`. The resolved config has an absolute path, where it names one."""

    config_type = InputConfig
    inputs = (0, 0)

    def resolve(self, config: InputConfig) -> InputConfig:
        from arroyo_spark.input import resolve_input

        return resolve_input(config)

    def with_config(self, config: InputConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_spark.input import SparkInput, check_input

        return ConstructedOperator.from_source(SparkInput(check_input(config), config.dataset))


class SinkConstructor(OperatorConstructor[SinkConfig]):
    """Makes `spark.sink`. The resolved config has absolute paths, for executors elsewhere."""

    config_type = SinkConfig
    inputs = (1, 1)
    is_sink = True

    def resolve(self, config: SinkConfig) -> SinkConfig:
        from arroyo_spark.sink import resolve_sink

        return resolve_sink(config)

    def with_config(self, config: SinkConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_spark.sink import SparkSink, check_sink

        return ConstructedOperator.from_operator(SparkSink(check_sink(config)))


@hookimpl
def arroyo_register(registry: Registry) -> None:
    registry.add("spark.input", InputConstructor())
    registry.add("spark.sink", SinkConstructor())
