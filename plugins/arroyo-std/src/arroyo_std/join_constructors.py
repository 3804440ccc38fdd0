"""From configs to joins: what can be checked without knowing the inputs is checked here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from arroyo_core.api import (
    ConstructedOperator,
    KeyedLookupTable,
    LookupTable,
    OperatorConstructor,
    Registry,
    with_defaults,
)
from arroyo_core.api.units import parse_duration_us
from arroyo_core.api.urls import absolute_url
from arroyo_core.errors import ConfigError, PluginError
from arroyo_core.plugin import known_elsewhere
from arroyo_std import join_pb2, std_pb2
from arroyo_std.join_pb2 import (
    AsofJoinConfig,
    IntervalJoinConfig,
    JoinConfig,
    JoinKey,
    JoinPrefixes,
    LookupJoinConfig,
    WindowJoinConfig,
)
from arroyo_std.short_forms import with_join_keys
from arroyo_std.window_constructors import check_positive

if TYPE_CHECKING:
    from arroyo_std.joins.condition import Condition
    from arroyo_std.joins.layout import JoinSettings, JoinType, KeyPair

#: By the numbers of the enum `JoinType` of the configs.
_TYPES: dict[int, str] = {
    join_pb2.inner: "inner",
    join_pb2.left: "left",
    join_pb2.right: "right",
    join_pb2.full: "full",
    join_pb2.semi: "semi",
    join_pb2.anti: "anti",
}


class WindowJoinConstructor(OperatorConstructor[WindowJoinConfig]):
    """Makes `std.window_join`."""

    config_type = WindowJoinConfig
    inputs = (2, 2)

    def config_of(self, given: Mapping[str, object]) -> Mapping[str, object]:
        return with_join_keys(given)

    def with_config(self, config: WindowJoinConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_std.joins.window_join import WindowJoin, WindowJoinSettings

        size_us = config.size if config.HasField("size") else None
        if size_us is not None:
            check_positive(size_us, "size")
        elif config.offset:
            raise ConfigError("the inputs' own windows cannot be moved: give 'size', too", field="offset")
        if config.allowed_lateness < 0:
            raise ConfigError(
                "a duration must not be negative", field="allowed_lateness", value=config.allowed_lateness
            )
        window = WindowJoinSettings(
            size_us=size_us,
            offset_us=config.offset % size_us if size_us else 0,
            allowed_lateness_us=config.allowed_lateness,
        )
        return ConstructedOperator.from_operator(
            WindowJoin(
                join_settings(
                    config.type,
                    config.on,
                    config.prefixes,
                    config.late,
                    needs_keys=False,
                    condition=join_condition(config.condition, registry),
                ),
                window,
            )
        )


class JoinConstructor(OperatorConstructor[JoinConfig]):
    """Makes `std.join`."""

    config_type = JoinConfig
    inputs = (2, 2)

    def config_of(self, given: Mapping[str, object]) -> Mapping[str, object]:
        return with_join_keys(given)

    def with_config(self, config: JoinConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_std.joins.history_join import HistoryJoin

        if config.ttl < 0:
            raise ConfigError("a duration must not be negative", field="ttl", value=config.ttl)
        return ConstructedOperator.from_operator(
            HistoryJoin(
                join_settings(
                    config.type,
                    config.on,
                    config.prefixes,
                    config.late,
                    condition=join_condition(config.condition, registry),
                ),
                ttl_us=config.ttl or None,
                time_column=config.time_column,
            )
        )


class IntervalJoinConstructor(OperatorConstructor[IntervalJoinConfig]):
    """Makes `std.interval_join`."""

    config_type = IntervalJoinConfig
    inputs = (2, 2)

    def config_of(self, given: Mapping[str, object]) -> Mapping[str, object]:
        return with_join_keys(given)

    def with_config(self, config: IntervalJoinConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_std.joins.interval_join import Interval, IntervalJoin

        interval = Interval(lower_us=signed_us(config.lower, "lower"), upper_us=signed_us(config.upper, "upper"))
        if interval.width_us < 0:
            raise ConfigError(
                f"the interval ends before it begins: lower is {config.lower}, upper is {config.upper}",
                field="upper",
                value=config.upper,
            )
        return ConstructedOperator.from_operator(
            IntervalJoin(
                join_settings(
                    config.type,
                    config.on,
                    config.prefixes,
                    config.late,
                    condition=join_condition(config.condition, registry),
                ),
                interval,
                time_column=config.time_column,
            )
        )


class AsofJoinConstructor(OperatorConstructor[AsofJoinConfig]):
    """Makes `std.asof_join`."""

    config_type = AsofJoinConfig
    inputs = (2, 2)

    def config_of(self, given: Mapping[str, object]) -> Mapping[str, object]:
        return with_join_keys(given)

    def with_config(self, config: AsofJoinConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_std.joins.asof_join import AsofJoin, Direction

        if config.tolerance < 0:
            raise ConfigError("a duration must not be negative", field="tolerance", value=config.tolerance)
        directions = {join_pb2.backward: Direction.BACKWARD, join_pb2.forward: Direction.FORWARD}
        if config.direction not in directions:
            raise ConfigError("no such direction", field="direction", value=config.direction, allowed=[*Direction])
        check_type(config.type, ("inner", "left"))
        return ConstructedOperator.from_operator(
            AsofJoin(
                join_settings(config.type, config.on, config.prefixes, config.late),
                tolerance_us=config.tolerance,
                direction=directions[config.direction],
            )
        )


class LookupJoinConstructor(OperatorConstructor[LookupJoinConfig]):
    """Makes `std.lookup_join`."""

    config_type = LookupJoinConfig
    inputs = (1, 1)

    def config_of(self, given: Mapping[str, object]) -> Mapping[str, object]:
        return with_join_keys(given)

    def resolve(self, config: LookupJoinConfig) -> LookupJoinConfig:
        # Tasks have other working directories and home folders than the driver.
        resolved = LookupJoinConfig()
        resolved.CopyFrom(config)
        if config.table.path:
            resolved.table.path = absolute_url(config.table.path)
        return resolved

    def with_config(self, config: LookupJoinConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_std.joins.lookup_join import LookupJoin, NamedLookup

        table, cache = config.table, config.cache
        source = looked_up_table(table, registry) if table.lookup else file_table(table)
        lookup = NamedLookup(table.lookup, registry.lookup_origin(table.lookup)) if table.lookup else None
        if cache.max_bytes <= 0:
            raise ConfigError("the size must be more than zero", field="cache.max_bytes", value=cache.max_bytes)
        check_positive(cache.ttl, "cache.ttl")
        check_type(config.type, ("inner", "left", "semi", "anti"))
        condition = join_condition(config.condition, registry)
        return ConstructedOperator.from_operator(
            LookupJoin(
                join_settings(config.type, config.on, config.prefixes, condition=condition),
                source,
                max_bytes=cache.max_bytes,
                ttl_us=cache.ttl,
                lookup=lookup,
            )
        )


def file_table(table: join_pb2.LookupTable) -> LookupTable:
    """The table at `path`; raises `ConfigError`."""
    from arroyo_std.joins.lookup_table import TableFormat, table_source

    if not table.path:
        raise ConfigError(
            "the table is missing: give 'path', a file or a folder, or 'lookup', which reads it", field="table.path"
        )
    if table.HasField("config"):
        raise ConfigError("'config' is that of a lookup: give 'lookup', too", field="table.config")
    formats = (None, *TableFormat)
    # The planner checks this for YAML; configs that are made in code come here unchecked.
    if not 0 <= table.format < len(formats):
        raise ConfigError("no such format", field="table.format", value=table.format, allowed=[*TableFormat])
    return table_source(
        path=absolute_url(table.path),
        table_format=formats[table.format],
        storage_options=table.storage_options,
        columns=table.columns,
        empty_as_text=table.empty_as_text,
    )


def looked_up_table(table: join_pb2.LookupTable, registry: Registry) -> LookupTable | KeyedLookupTable:
    """The table that the lookup of another distribution reads; raises `ConfigError`, also for what only files have."""
    for field in ("path", "format", "storage_options", "columns", "empty_as_text"):
        if getattr(table, field):
            raise ConfigError(
                f"{field!r} is about files, and 'lookup' reads the table: give one of 'path' and 'lookup'",
                field=f"table.{field}",
            )
    try:
        constructor = registry.lookup(table.lookup)
    except PluginError as error:
        raise unknown_lookup(table.lookup, error, registry) from error
    config = constructor.config_type()
    if table.HasField("config") and not table.config.Unpack(config):
        raise ConfigError(
            f"this is the config of a {table.config.TypeName()}, and {table.lookup} has a "
            f"{constructor.config_type.DESCRIPTOR.full_name}",
            field="table.config",
        )
    try:
        made = constructor.with_config(with_defaults(config), registry)
    except ConfigError as error:
        raise error.within("table.config") from error
    if not isinstance(made, LookupTable | KeyedLookupTable):
        raise ConfigError(f"{table.lookup} can neither be read nor be asked by key", field="table.lookup")
    return made


def unknown_lookup(name: str, error: PluginError, registry: Registry) -> ConfigError:
    prefix = name.partition(".")[0]
    distribution = known_elsewhere("operators").get(prefix)
    is_installed = any(each.partition(".")[0] == prefix for each in registry.constructors)
    hint = f"; it needs the plugin {distribution}: pip install {distribution}"
    return ConfigError(
        error.message + (hint if distribution and not is_installed else ""),
        field="table.lookup",
        value=name,
        allowed=sorted(registry.lookups),
    )


def check_type(type_number: int, allowed: Sequence[str]) -> None:
    """Raise `ConfigError` for a type that keeps rows of the right side, which only answer those of the left."""
    name = _TYPES.get(type_number)
    if name is not None and name not in allowed:
        fault = "rows of the right side do not come out by themselves"
        if name in ("semi", "anti"):
            fault = "each row has at most one match here: give type inner or left, and filter what comes"
        raise ConfigError(fault, field="type", value=name, allowed=allowed)


def join_condition(sql: str, registry: Registry) -> Condition | None:
    """What is asked of two rows beside equal keys; None where nothing is."""
    from arroyo_std.joins.condition import Condition

    return Condition(sql, registry) if sql else None


def join_settings(
    type_number: int,
    on: Sequence[JoinKey],
    prefixes: JoinPrefixes,
    late: int = std_pb2.drop,
    *,
    needs_keys: bool = True,
    condition: Condition | None = None,
) -> JoinSettings:
    """What all joins are told; raises `ConfigError` at the field that is wrong."""
    from arroyo_std.joins.layout import JoinSettings

    return JoinSettings(
        type=join_type(type_number),
        on=key_pairs(on) if on or needs_keys else (),
        prefixes=(prefixes.left, prefixes.right),
        has_late_output=late == std_pb2.side_output,
        condition=condition,
    )


def join_type(number: int) -> JoinType:
    from arroyo_std.joins.layout import JoinType

    if number not in _TYPES:
        raise ConfigError("no such type of join", field="type", value=number, allowed=[*JoinType])
    return JoinType(_TYPES[number])


def key_pairs(on: Sequence[JoinKey]) -> tuple[KeyPair, ...]:
    from arroyo_std.joins.layout import KeyPair

    # The planner checks this for YAML; configs that are made in code come here unchecked.
    if not on:
        raise ConfigError("'on' is missing: give the columns that must be equal", field="on")
    for place, key in enumerate(on):
        if not key.left:
            raise ConfigError("'left' is missing: give a column of the first input", field=f"on[{place}].left")
    pairs = tuple(KeyPair(key.left, key.right or key.left) for key in on)
    for side in ("left", "right"):
        names = [str(getattr(pair, side)) for pair in pairs]
        for place, name in enumerate(names):
            if name in names[:place]:
                raise ConfigError(f"column {name!r} is listed twice", field=f"on[{place}].{side}", value=name)
    return pairs


def signed_us(text: str, field: str) -> int:
    """The microseconds of a duration that may be negative, such as -5s; raises `ConfigError` at `field`."""
    sign, rest = (-1, text.strip()[1:]) if text.strip().startswith("-") else (1, text)
    try:
        return sign * parse_duration_us(rest)
    except ValueError as error:
        raise ConfigError(str(error), field=field, value=text) from error
