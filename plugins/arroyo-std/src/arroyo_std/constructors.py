"""From configs to operators: what can be checked without knowing the inputs is checked here."""

from __future__ import annotations

from arroyo_core.api import ConstructedOperator, OperatorConstructor, Registry
from arroyo_core.errors import ConfigError
from arroyo_std import std_pb2
from arroyo_std.std_pb2 import (
    BlackholeConfig,
    FilterConfig,
    KeyByConfig,
    ProjectConfig,
    StdoutConfig,
    UnionConfig,
    UnnestConfig,
    WatermarkConfig,
)


class FilterConstructor(OperatorConstructor[FilterConfig]):
    """Makes `std.filter`."""

    config_type = FilterConfig
    inputs = (1, 1)

    def with_config(self, config: FilterConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_std.filter import Filter
        from arroyo_std.on_error import read_on_error

        _require(config.predicate, "predicate", "a SQL expression of type boolean")
        return ConstructedOperator.from_operator(
            Filter(config.predicate, registry, on_error=read_on_error(config.on_error))
        )


class ProjectConstructor(OperatorConstructor[ProjectConfig]):
    """Makes `std.project`."""

    config_type = ProjectConfig
    inputs = (1, 1)

    def with_config(self, config: ProjectConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_std.on_error import read_on_error
        from arroyo_std.project import Project

        if config.keep and config.drop:
            raise ConfigError("'keep' and 'drop' exclude each other", field="drop", value=list(config.drop))
        if not (config.expressions or config.keep or config.drop):
            raise ConfigError("nothing to project: give 'expressions', 'keep' or 'drop'")
        return ConstructedOperator.from_operator(
            Project(
                [(expression.name, expression.sql) for expression in config.expressions],
                keep=tuple(config.keep),
                drop=tuple(config.drop),
                registry=registry,
                on_error=read_on_error(config.on_error),
            )
        )


class KeyByConstructor(OperatorConstructor[KeyByConfig]):
    """Makes `std.key_by`."""

    config_type = KeyByConfig
    inputs = (1, 1)

    def with_config(self, config: KeyByConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_std.key_by import KeyBy

        _require(config.keys, "keys", "a list of columns")
        return ConstructedOperator.from_operator(KeyBy(tuple(config.keys)))


class WatermarkConstructor(OperatorConstructor[WatermarkConfig]):
    """Makes `std.watermark`."""

    config_type = WatermarkConfig
    inputs = (1, 1)

    def with_config(self, config: WatermarkConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_std.watermark import WatermarkGenerator, WatermarkSettings

        for field, value_us in (("max_lateness", config.max_lateness), ("period", config.period)):
            if value_us < 0:
                raise ConfigError("a duration must not be negative", field=field, value=value_us)
        if config.HasField("idle_time") and config.idle_time <= 0:
            raise ConfigError("the idle time must be more than zero", field="idle_time", value=config.idle_time)
        settings = WatermarkSettings(
            column=config.column or None,
            max_lateness_us=config.max_lateness,
            period_us=config.period,
            idle_time_us=config.idle_time if config.HasField("idle_time") else None,
            expression=config.expression or None,
        )
        return ConstructedOperator.from_operator(WatermarkGenerator(settings, registry))


class UnionConstructor(OperatorConstructor[UnionConfig]):
    """Makes `std.union`."""

    config_type = UnionConfig
    inputs = (2, None)

    def with_config(self, config: UnionConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_std.union import Union

        return ConstructedOperator.from_operator(Union())


class UnnestConstructor(OperatorConstructor[UnnestConfig]):
    """Makes `std.unnest`."""

    config_type = UnnestConfig
    inputs = (1, 1)

    def with_config(self, config: UnnestConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_std.unnest import Unnest

        _require(config.column, "column", "a column of lists or structs")
        # `as` is a word of Python's, so the attribute cannot be written.
        return ConstructedOperator.from_operator(
            Unnest(
                config.column,
                alias=getattr(config, "as") or None,
                is_outer=config.outer,
                ordinality=config.ordinality or None,
            )
        )


class StdoutConstructor(OperatorConstructor[StdoutConfig]):
    """Makes `std.stdout`."""

    config_type = StdoutConfig
    inputs = (1, 1)
    is_sink = True

    def with_config(self, config: StdoutConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_std.rendering import Format
        from arroyo_std.stdout import Stdout

        formats = {std_pb2.json: Format.JSON, std_pb2.csv: Format.CSV, std_pb2.table: Format.TABLE}
        if config.format not in formats:
            raise ConfigError("no such format", field="format", value=config.format, allowed=[*Format])
        if config.at_once and config.format == std_pb2.table:
            raise ConfigError("a table needs all rows of an epoch: at_once is for json and csv", field="at_once")
        return ConstructedOperator.from_operator(
            Stdout(
                formats[config.format],
                limit=config.limit,
                max_cell_width=config.max_cell_width,
                is_at_once=config.at_once,
            )
        )


class BlackholeConstructor(OperatorConstructor[BlackholeConfig]):
    """Makes `std.blackhole`."""

    config_type = BlackholeConfig
    inputs = (1, 1)
    is_sink = True

    def with_config(self, config: BlackholeConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_std.blackhole import Blackhole

        return ConstructedOperator.from_operator(Blackhole())


def _require(value: object, field: str, expected: str) -> None:
    # The planner checks this for YAML; configs that are made in code come here unchecked.
    if not value:
        raise ConfigError(f"{field!r} is missing: give {expected}", field=field)
