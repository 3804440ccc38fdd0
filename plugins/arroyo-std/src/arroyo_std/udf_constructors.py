"""From configs to operators that call user functions: what needs no inputs to be checked is checked here."""

from __future__ import annotations

from dataclasses import replace

from arroyo_core.api import ConstructedOperator, OperatorConstructor, Registry
from arroyo_core.errors import ConfigError
from arroyo_std.udf_pb2 import AsyncUdfConfig, MapBatchesConfig


class MapBatchesConstructor(OperatorConstructor[MapBatchesConfig]):
    """Makes `std.map_batches`."""

    config_type = MapBatchesConfig
    inputs = (1, 1)

    def with_config(self, config: MapBatchesConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_core.udf import BatchUdf
        from arroyo_std.fitting import find_function
        from arroyo_std.map_batches import MapBatches
        from arroyo_std.on_error import read_on_error

        function = find_function(config.function, BatchUdf, registry, decorator="@batch_udf")
        return ConstructedOperator.from_operator(MapBatches(function, on_error=read_on_error(config.on_error)))


class AsyncUdfConstructor(OperatorConstructor[AsyncUdfConfig]):
    """Makes `std.async_udf`."""

    config_type = AsyncUdfConfig
    inputs = (1, 1)

    def with_config(self, config: AsyncUdfConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_core.udf import AsyncUdf
        from arroyo_std.async_udf import AsyncCalls
        from arroyo_std.fitting import find_function
        from arroyo_std.on_error import read_on_error

        # `as` is a word of Python's, so the attribute cannot be written.
        alias: str = getattr(config, "as")
        if not alias:
            raise ConfigError("'as' is missing: give the result's column a name", field="as")
        for field, least in (("concurrency", 1), ("timeout", 1), ("retries", 0), ("backoff", 0)):
            value = getattr(config, field)
            if config.HasField(field) and value < least:
                what = "must be more than zero" if least else "must not be negative"
                raise ConfigError(f"{field!r} {what}", field=field, value=value)
        function = find_function(config.function, AsyncUdf, registry, decorator="@async_udf")
        names = {"concurrency": "concurrency", "timeout": "timeout_us", "retries": "retries", "backoff": "backoff_us"}
        given = {name: getattr(config, field) for field, name in names.items() if config.HasField(field)}
        if config.HasField("ordered"):
            given["is_ordered"] = config.ordered
        return ConstructedOperator.from_operator(
            AsyncCalls(
                replace(function, **given),
                arguments=tuple(config.arguments),
                alias=alias,
                on_error=read_on_error(config.on_error),
            )
        )
