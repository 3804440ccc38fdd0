"""From configs to windows and updating aggregates: what can be checked without knowing the inputs is checked here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from arroyo_core.api import ConstructedOperator, OperatorConstructor, Registry
from arroyo_core.api.units import format_duration_us
from arroyo_core.errors import ConfigError
from arroyo_std import std_pb2
from arroyo_std.short_forms import with_aggregates
from arroyo_std.std_pb2 import (
    Aggregate,
    AssignWindowConfig,
    SessionWindowConfig,
    SlidingWindowConfig,
    TumblingWindowConfig,
    UpdatingAggregateConfig,
)

if TYPE_CHECKING:
    from arroyo_std.aggregates.registry import AggregateSpec
    from arroyo_std.windows.windowed import WindowSettings

WindowConfig = TumblingWindowConfig | SlidingWindowConfig | SessionWindowConfig


class TumblingWindowConstructor(OperatorConstructor[TumblingWindowConfig]):
    """Makes `std.tumbling_window`."""

    config_type = TumblingWindowConfig
    inputs = (1, 1)

    def config_of(self, given: Mapping[str, object]) -> Mapping[str, object]:
        return with_aggregates(given)

    def with_config(self, config: TumblingWindowConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_std.windows.tumbling import Grid, TumblingWindow

        check_positive(config.size, "size")
        grid = Grid(size_us=config.size, slide_us=config.size, offset_us=config.offset % config.size)
        settings = window_settings(config)
        if not config.HasField("early"):
            return ConstructedOperator.from_operator(TumblingWindow(grid, settings, registry))
        from arroyo_std.windows.early import EarlyTumblingWindow

        check_positive(config.early, "early")
        return ConstructedOperator.from_operator(EarlyTumblingWindow(grid, settings, registry, early_us=config.early))


class SlidingWindowConstructor(OperatorConstructor[SlidingWindowConfig]):
    """Makes `std.sliding_window`."""

    config_type = SlidingWindowConfig
    inputs = (1, 1)

    def config_of(self, given: Mapping[str, object]) -> Mapping[str, object]:
        return with_aggregates(given)

    def with_config(self, config: SlidingWindowConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_std.windows.tumbling import Grid, SlidingWindow

        check_slide(config.size, config.slide)
        grid = Grid(size_us=config.size, slide_us=config.slide, offset_us=config.offset % config.slide)
        return ConstructedOperator.from_operator(SlidingWindow(grid, window_settings(config), registry))


class AssignWindowConstructor(OperatorConstructor[AssignWindowConfig]):
    """Makes `std.assign_window`."""

    config_type = AssignWindowConfig
    inputs = (1, 1)

    def with_config(self, config: AssignWindowConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_std.windows.assign import AssignWindow
        from arroyo_std.windows.tumbling import Grid

        slide = config.slide if config.HasField("slide") else config.size
        check_slide(config.size, slide)
        return ConstructedOperator.from_operator(
            AssignWindow(Grid(size_us=config.size, slide_us=slide, offset_us=config.offset % slide))
        )


class SessionWindowConstructor(OperatorConstructor[SessionWindowConfig]):
    """Makes `std.session_window`."""

    config_type = SessionWindowConfig
    inputs = (1, 1)

    def config_of(self, given: Mapping[str, object]) -> Mapping[str, object]:
        return with_aggregates(given)

    def with_config(self, config: SessionWindowConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_std.windows.session import SessionWindow

        check_positive(config.gap, "gap")
        return ConstructedOperator.from_operator(SessionWindow(config.gap, window_settings(config), registry))


class UpdatingAggregateConstructor(OperatorConstructor[UpdatingAggregateConfig]):
    """Makes `std.updating_aggregate`."""

    config_type = UpdatingAggregateConfig
    inputs = (1, 1)

    def config_of(self, given: Mapping[str, object]) -> Mapping[str, object]:
        return with_aggregates(given)

    def with_config(self, config: UpdatingAggregateConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_std.updating.aggregate import UpdatingAggregate, UpdatingSettings

        if config.ttl < 0:
            raise ConfigError("a duration must not be negative", field="ttl", value=config.ttl)
        check_positive(config.flush_interval, "flush_interval")
        if not config.aggregates:
            raise ConfigError("'aggregates' is missing: give a list of aggregates", field="aggregates")
        if config.empty_group and config.keys:
            raise ConfigError("with keys there is no group before its first row", field="empty_group", value=True)
        settings = UpdatingSettings(
            keys=tuple(config.keys),
            aggregates=aggregate_specs(config.aggregates),
            ttl_us=config.ttl,
            flush_interval_us=config.flush_interval,
            has_empty_group=config.empty_group,
        )
        return ConstructedOperator.from_operator(UpdatingAggregate(settings, registry))


def window_settings(config: WindowConfig) -> WindowSettings:
    """What all windows are told; raises `ConfigError` at the field that is wrong."""
    from arroyo_std.windows.windowed import WindowSettings

    if config.allowed_lateness < 0:
        raise ConfigError("a duration must not be negative", field="allowed_lateness", value=config.allowed_lateness)
    is_processing_time = config.time == std_pb2.processing
    if is_processing_time and config.allowed_lateness:
        raise ConfigError(
            "rows are never late in processing time", field="allowed_lateness", value=config.allowed_lateness
        )
    keeps_late = config.late == std_pb2.side_output
    if is_processing_time and keeps_late:
        raise ConfigError("rows are never late in processing time", field="late", value="side_output")
    return WindowSettings(
        keys=tuple(config.keys),
        aggregates=aggregate_specs(config.aggregates),
        allowed_lateness_us=config.allowed_lateness,
        is_processing_time=is_processing_time,
        keeps_late=keeps_late,
    )


def aggregate_specs(aggregates: Iterable[Aggregate]) -> tuple[AggregateSpec, ...]:
    """The aggregates of a config, with their paths in it."""
    from arroyo_std.aggregates.registry import AggregateSpec
    from arroyo_std.ranking import OrderBy

    return tuple(
        AggregateSpec(
            function=each.function,
            field=f"aggregates[{position}]",
            column=each.column or None,
            # `as` is a word of Python's, so the attribute cannot be written.
            alias=getattr(each, "as") or None,
            filter=each.filter or None,
            percentile=each.percentile if each.HasField("percentile") else None,
            other=each.other or None,
            columns=tuple(each.columns),
            is_distinct=each.distinct,
            order_by=tuple(
                OrderBy(
                    column=key.column,
                    field=f"aggregates[{position}].order_by[{place}]",
                    is_descending=key.descending,
                    nulls_last=key.nulls_last if key.HasField("nulls_last") else True,
                )
                for place, key in enumerate(each.order_by)
            ),
            separator=each.separator if each.HasField("separator") else None,
        )
        for position, each in enumerate(aggregates)
    )


def check_slide(size_us: int, slide_us: int) -> None:
    """Raise `ConfigError` unless windows of this size can begin at every slide."""
    check_positive(size_us, "size")
    check_positive(slide_us, "slide")
    if size_us % slide_us:
        size, slide = format_duration_us(size_us), format_duration_us(slide_us)
        raise ConfigError(f"the slide must divide the size: {slide} does not divide {size}", field="slide", value=slide)


def check_positive(value_us: int, field: str) -> None:
    """Raise `ConfigError` at `field` unless the duration is more than zero."""
    if value_us <= 0:
        raise ConfigError("the duration must be more than zero", field=field, value=value_us)
